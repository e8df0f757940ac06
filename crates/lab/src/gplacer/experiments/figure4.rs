//! Figure 4 and the examples of section 4.1: commits run by the client's own region, and by the one that ends them soonest.

use super::super::idle::Idle;
use super::super::lab::Lab;
use super::super::parameters::REGIONS;
use super::super::placed::{self, commits, one_each};
use super::common::lower;
use crate::experiment::{Failure, Finding, Outcome, Progress, Sheet};
use rhumb_commit::transaction::CommitOptions;
use rhumb_core::RegionId;
use rhumb_plan::two_phase::two_phase_commit;
use rhumb_plan::{Matrix, Protocol, TwoPhase, evaluate};

/// Latencies of the paper, in milliseconds: from São Paulo by itself, and handed to Virginia.
const PAPER_MS: (f64, f64) = (364.0, 267.0);
/// What handling a commit takes beside the wide area, at the most: two syncs and some steps.
const HANDLING_MS: f64 = 5.0;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    progress.begin("commits");
    let rtt = placed::five();
    let replicas: Vec<usize> = (0..REGIONS.len()).collect();
    let plan = |handoff| {
        let problem = placed::problem(&rtt, commits(Protocol::TwoRounds, handoff), 2, &one_each(REGIONS.len()));
        evaluate(&problem, &replicas)
    };
    let (own, handed) = (plan(false), plan(true));
    let placement = placed::place(REGIONS.len(), &replicas, false, placed::coordinators(&handed));
    let mut idle = Idle::new(rtt.clone(), placement, lab.seed())?;
    let columns = ["commits from", "run by", "own, planned ms", "own, measured ms", "best, planned ms", "best, measured ms"];
    let mut sheet = Sheet::new("Commits of two rounds, five replicas", &columns);
    let mut outcome = Outcome::default();
    for (own, handed) in own.clients.iter().zip(&handed.clients) {
        let region: RegionId = placed::id(own.region);
        let mut measure = |handoff| idle.commit(region, CommitOptions { two_rounds: true, handoff }).map(|took| took.as_millis_f64());
        let (own_ms, handed_ms) = (measure(false)?, measure(true)?);
        let planned = |ns: u64| format!("{:.1}", ns as f64 / 1e6);
        sheet.row([
            REGIONS[own.region].to_owned(),
            REGIONS[handed.commit_coordinator].to_owned(),
            planned(own.latency_ns),
            format!("{own_ms:.1}"),
            planned(handed.latency_ns),
            format!("{handed_ms:.1}"),
        ]);
        if REGIONS[own.region] == "sao-paulo" {
            let near = |what: &str, paper_ms: f64, value| {
                Finding::between(what, &format!("{paper_ms:.0} ms"), value, paper_ms, paper_ms + HANDLING_MS, " ms")
            };
            outcome.findings.push(near("a commit from São Paulo by itself", PAPER_MS.0, own_ms));
            outcome.findings.push(near("the same handed to Virginia", PAPER_MS.1, handed_ms));
            outcome.findings.push(Finding::between("saved by it", "26.6 %", lower(own_ms, handed_ms), 26.0, 27.0, " %"));
        }
        progress.passed(own.region as u64 + 1, REGIONS.len() as u64);
    }
    outcome.sheets.push(sheet);
    outcome.findings.extend(two_phase());
    outcome.note("Two-phase commit is planned only: the engine has no leaders. Measured commits have syncs and steps of sites in them.");
    Ok(outcome)
}

/// The example of two-phase commit among partitions led from São Paulo, Virginia and Ireland, for a client in Ireland.
fn two_phase() -> impl Iterator<Item = Finding> {
    let matrix = Matrix::try_from(&placed::five()).expect("five regions");
    let place = |name| matrix.region(name).expect("one of the five");
    let participants = [place("sao-paulo"), place("virginia"), place("ireland")];
    let cases = [
        ("two-phase commit from Ireland by Ireland", TwoPhase::OwnLeader, 370.0),
        ("the same by Virginia", TwoPhase::BestLeader, 315.0),
        ("the same, and Ireland's leader tells the client", TwoPhase::LocalParticipantTells, 194.0),
    ];
    cases.into_iter().map(move |(what, two_phase, paper_ms)| {
        let (_, half_us) = two_phase_commit(&matrix, &participants, 2, two_phase);
        let planned_ms = half_us as f64 / 2_000.0;
        Finding::between(format!("{what}, planned"), &format!("{paper_ms:.0} ms"), planned_ms, paper_ms - 0.5, paper_ms + 0.5, " ms")
    })
}
