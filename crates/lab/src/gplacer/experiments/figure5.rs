//! Figure 5: the best places for replicas need not be where the clients are. The paper shows one example whose numbers of
//! clients it does not print, so here all choices of a few client regions are gone through.

use super::super::idle::Idle;
use super::super::lab::Lab;
use super::super::placed::{self, commits};
use super::common::lower;
use crate::experiment::{Failure, Finding, Outcome, Progress, Sheet, percent};
use rhumb_commit::transaction::CommitOptions;
use rhumb_core::RttMatrix;
use rhumb_plan::{Constraint, Evaluation, Problem, Protocol, Request, evaluate, exhaustive};

/// So many regions have clients, as many in each.
const CLIENT_REGIONS: std::ops::RangeInclusive<u32> = 2..=4;
const FAULTS: usize = 2;
/// What avoiding the clients is to save in some case, in per cent.
const SAVED_MIN: f64 = 1.0;

/// One choice of client regions.
struct Case {
    clients: Vec<usize>,
    best: Evaluation,
    /// The best of the placements that have a replica wherever there are clients.
    intuitive: Evaluation,
}

impl Case {
    fn new(rtt: &RttMatrix, clients: Vec<usize>) -> Case {
        let weights: Vec<(usize, u64)> = clients.iter().map(|&region| (region, 1)).collect();
        let problem = placed::problem(rtt, commits(Protocol::TwoRounds, true), FAULTS, &weights);
        let constraints = clients.iter().map(|&region| Constraint::Required(region)).collect();
        let tied = Problem::new(Request { constraints, ..problem.request().clone() }).expect("five replicas, four clients at most");
        let best = evaluate(&problem, &exhaustive(&problem).replicas);
        let intuitive = evaluate(&problem, &exhaustive(&tied).replicas);
        Case { clients, best, intuitive }
    }

    fn saved(&self) -> f64 {
        lower(self.intuitive.mean_ns as f64, self.best.mean_ns as f64)
    }

    fn avoids_clients(&self) -> bool {
        self.clients.iter().all(|region| !self.best.replicas.contains(region))
    }
}

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let rtt = placed::nine();
    progress.begin("choices of client regions");
    let regions = rtt.names().len();
    let chosen: Vec<u32> = (0..1_u32 << regions).filter(|set| CLIENT_REGIONS.contains(&set.count_ones())).collect();
    let mut cases = Vec::new();
    for (index, set) in chosen.iter().enumerate() {
        cases.push(Case::new(&rtt, (0..regions).filter(|region| set & 1 << region != 0).collect()));
        progress.passed(index as u64 + 1, chosen.len() as u64);
    }
    let columns = ["client regions", "choices", "no replica where clients are", "tied to clients is worse", "at the most by"];
    let mut sheet = Sheet::new("Five replicas in nine regions, commits of two rounds with handoff", &columns);
    for count in CLIENT_REGIONS {
        let of: Vec<&Case> = cases.iter().filter(|case| case.clients.len() == count as usize).collect();
        let share = |holds: &dyn Fn(&Case) -> bool| percent(of.iter().filter(|case| holds(case)).count() as f64 / of.len() as f64);
        let most = of.iter().map(|case| case.saved()).fold(0.0, f64::max);
        sheet.row([
            count.to_string(),
            of.len().to_string(),
            share(&Case::avoids_clients),
            share(&|case| case.best.cost < case.intuitive.cost),
            format!("{most:.1} %"),
        ]);
    }
    let mut outcome = Outcome { sheets: vec![sheet], ..Outcome::default() };
    // Of equals, the first.
    let avoiding = cases.iter().filter(|case| case.avoids_clients());
    let example = avoiding.reduce(|best, case| if case.saved() > best.saved() { case } else { best });
    if let Some(example) = example {
        outcome.sheets.push(compare(&rtt, example, lab.seed())?);
    }
    let found = example.map_or(0.0, Case::saved);
    let what = "with no replica where clients are, mean commit latency is lower than with one wherever they are, by";
    outcome.findings.push(Finding::at_least(what, "it can be", found, SAVED_MIN, " %"));
    Ok(outcome)
}

/// An example on the engine: where the replicas are, and the mean over its clients.
fn compare(rtt: &RttMatrix, case: &Case, seed: u64) -> Result<Sheet, Failure> {
    let names = |regions: &[usize]| {
        let names: Vec<&str> = regions.iter().map(|&region| rtt.names()[region].as_str()).collect();
        names.join(", ")
    };
    let title = format!("Clients in {}", names(&case.clients));
    let mut sheet = Sheet::new(title, &["replicas", "in", "planned ms", "measured ms"]);
    for (what, evaluation) in [("where clients are", &case.intuitive), ("where it is best", &case.best)] {
        let placement = placed::place(rtt.names().len(), &evaluation.replicas, false, placed::coordinators(evaluation));
        let mut idle = Idle::new(rtt.clone(), placement, seed)?;
        let mut total_ms = 0.0;
        for &region in &case.clients {
            total_ms += idle.commit(placed::id(region), CommitOptions { two_rounds: true, handoff: true })?.as_millis_f64();
        }
        let measured_ms = total_ms / case.clients.len() as f64;
        let planned_ms = evaluation.mean_ns as f64 / 1e6;
        sheet.row([what.to_owned(), names(&evaluation.replicas), format!("{planned_ms:.1}"), format!("{measured_ms:.1}")]);
    }
    Ok(sheet)
}
