//! What a plan means for a cluster that runs: the placement now and proposed, what each region's clients wait for now and
//! then, and what exactly would change.
//!
//! As JSON it is what `rhumb plan apply` reads: [`Planned`] is the part that it needs.

use super::text::{Table, lost, ms};
use super::{Report, Summary, Terms, millis, objective_ms};
use crate::layout::course::Course;
use crate::layout::latency::{Service, service, services};
use crate::layout::proposal::{cost, is_exact};
use crate::layout::{Layout, RoleChange};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a cluster stands and where it is to go: what is kept of a plan to carry it out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Planned {
    /// The site that was asked.
    pub from: String,
    /// What the plan was made for.
    pub now: Layout,
    /// What it proposes.
    pub proposed: Layout,
}

/// A plan for a cluster that runs, told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeReport {
    /// The site that was asked.
    pub from: String,
    /// The number of the placement in force.
    pub epoch: u64,
    /// The placement in force.
    pub now: Layout,
    /// What is proposed; the same if nothing would be gained.
    pub proposed: Layout,
    /// The mean latency over all clients now.
    pub mean_now_ms: f64,
    /// The same as proposed.
    pub mean_then_ms: f64,
    /// What is saved of the mean, in percent.
    pub saved_percent: f64,
    /// Every client region, in the order of the cluster.
    pub clients: Vec<ClientChange>,
    /// The regions that hold something else.
    pub roles: Vec<RoleChange>,
    /// The regions whose reads or commits are served elsewhere.
    pub coordinators: Vec<CoordinatorChange>,
    /// The placements that the cluster goes through, the last of them as proposed.
    pub steps: Vec<Layout>,
    /// Latencies now.
    pub latency_now: Summary,
    /// Latencies as proposed.
    pub latency_then: Summary,
    /// What is made small.
    pub objective: String,
    /// How small it is now.
    pub objective_now_ms: f64,
    /// The same as proposed.
    pub objective_then_ms: f64,
    /// By how much the best placement there is may be better than the one that was found, as a share of the objective; none
    /// if that is not known.
    pub proven_gap: Option<f64>,
    /// What was asked for of the proposal, and what was assumed.
    #[serde(flatten)]
    pub terms: Terms,
    /// How the clients of a region are counted.
    #[serde(skip)]
    counted: Counted,
    /// What the search said.
    #[serde(skip)]
    found: Report,
    /// All regions, in the order of the cluster.
    #[serde(skip)]
    regions: Vec<String>,
}

/// How the clients of a region are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// By their number, or whatever weight was given.
    Clients,
    /// By transactions a second, in thousandths, as measured.
    TransactionsMilli,
}

/// What the change means for the clients of a region.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientChange {
    /// The region.
    pub region: String,
    /// How many clients they are; none if transactions were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u64>,
    /// How many transactions they ask for, if that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions_per_second: Option<f64>,
    /// The reads of an average transaction.
    pub reads_per_txn: f64,
    /// How long it takes now.
    pub now_ms: f64,
    /// How long it takes as proposed.
    pub then_ms: f64,
}

/// Who serves the clients of a region, before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoordinatorChange {
    /// The region.
    pub region: String,
    /// Who serves their reads now.
    pub read_now: String,
    /// The same as proposed.
    pub read_then: String,
    /// Who coordinates their commits now.
    pub commit_now: String,
    /// The same as proposed.
    pub commit_then: String,
}

/// What a change is told from.
pub struct Told<'t> {
    /// The clients as they are; the search may have been asked less.
    pub problem: &'t Problem,
    /// How they are counted.
    pub counted: Counted,
    /// The site that was asked.
    pub from: String,
    /// The number of the placement in force.
    pub epoch: u64,
    /// The placement in force.
    pub now: Layout,
    /// What is proposed.
    pub proposed: Layout,
    /// What the search said.
    pub found: Report,
}

impl ChangeReport {
    /// What it means to go from the one layout to the other.
    pub fn new(told: Told<'_>) -> ChangeReport {
        let Told { problem, counted, from, epoch, now, proposed, found } = told;
        let (served_now, served_then) = (services(problem, &now), services(problem, &proposed));
        let (latency_now, latency_then) = (summary(problem, &served_now), summary(problem, &served_then));
        let name = |region: usize| problem.matrix().names()[region].clone();
        let change = |((client, now), then): ((&crate::Client, &Service), &Service)| ClientChange {
            region: name(client.region),
            clients: (counted == Counted::Clients).then_some(client.clients),
            transactions_per_second: (counted == Counted::TransactionsMilli).then_some(client.clients as f64 / 1e3),
            reads_per_txn: client.reads_milli as f64 / 1e3,
            now_ms: millis(now.latency_ns),
            then_ms: millis(then.latency_ns),
        };
        ChangeReport {
            from,
            epoch,
            mean_now_ms: latency_now.mean_ms,
            mean_then_ms: latency_then.mean_ms,
            saved_percent: saved(latency_now.mean_ms, latency_then.mean_ms),
            clients: problem.clients().iter().zip(&served_now).zip(&served_then).map(change).collect(),
            roles: now.changes(&proposed),
            coordinators: coordinators(problem, &now, &proposed),
            steps: Course::new(&now, &proposed).legs().map(|(_, to)| to.clone()).collect(),
            latency_now,
            latency_then,
            objective: found.objective.clone(),
            objective_now_ms: objective_ms(problem, cost(problem, &now)),
            objective_then_ms: objective_ms(problem, cost(problem, &proposed)),
            proven_gap: is_exact(problem, &now).then_some(found.proven_gap),
            terms: found.terms.clone(),
            counted,
            found,
            regions: problem.matrix().names().to_vec(),
            now,
            proposed,
        }
    }

    /// Whether anything is proposed.
    pub fn changes_something(&self) -> bool {
        self.now != self.proposed
    }
}

fn summary(problem: &Problem, served: &[Service]) -> Summary {
    let times: Vec<u64> = served.iter().map(|service| service.latency_ns).collect();
    Summary::of_times(problem, &times)
}

fn saved(now: f64, then: f64) -> f64 {
    if now == 0.0 { 0.0 } else { 100.0 * (now - then) / now }
}

/// The regions, with clients or with coordinators that somebody named, that are served by others.
fn coordinators(problem: &Problem, now: &Layout, proposed: &Layout) -> Vec<CoordinatorChange> {
    let matrix = problem.matrix();
    let has_clients = |region: usize| problem.clients().binary_search_by_key(&region, |client| client.region).is_ok();
    let is_named = |region: usize| [now, proposed].iter().any(|layout| layout.coordinators.contains_key(&matrix.names()[region]));
    let name = |region: usize| matrix.names()[region].clone();
    let change = |region: usize| {
        let [now, then] = [now, proposed].map(|layout| service(matrix, problem.model(), layout, region, 0));
        ((now.read, now.commit) != (then.read, then.commit)).then(|| CoordinatorChange {
            region: name(region),
            read_now: name(now.read),
            read_then: name(then.read),
            commit_now: name(now.commit),
            commit_then: name(then.commit),
        })
    };
    (0..matrix.regions()).filter(|&region| has_clients(region) || is_named(region)).filter_map(change).collect()
}

impl fmt::Display for ChangeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "now       epoch {}: {}", self.epoch, self.told(&self.now))?;
        if self.changes_something() {
            writeln!(f, "proposed  {}", self.told(&self.proposed))?;
            let (votes, votes_now, regions) = (self.proposed.active.len(), self.now.active.len(), self.regions.len());
            let faults_now = votes_now.saturating_sub(1) / 2;
            let before = if faults_now == self.terms.faults { String::new() } else { format!(", now {}", lost(faults_now)) };
            writeln!(f, "{votes} of {regions} regions vote as proposed, {votes_now} do now; {}{before}", lost(self.terms.faults))?;
        }
        self.found.write_terms(f)?;
        write!(f, "\n{}\n", self.table())?;
        if !self.changes_something() {
            write!(f, "Nothing would be gained by a move. {}", self.proof())?;
            return self.write_way_out(f);
        }
        let (now, then) = (self.mean_now_ms, self.mean_then_ms);
        let verdict = if then <= now { "saved" } else { "more" };
        let percent = self.saved_percent.abs();
        writeln!(f, "Mean {} ms now, {} ms then: {percent:.1} % {verdict}. {}", ms(now), ms(then), self.proof().trim_end())?;
        writeln!(f, "\nWhat would change, in {}:", steps(self.steps.len()))?;
        self.roles.iter().try_for_each(|RoleChange { region, from, to }| writeln!(f, "  {region}: {from} → {to}"))?;
        self.coordinators.iter().try_for_each(|change| writeln!(f, "  {change}"))
    }
}

impl ChangeReport {
    /// If there was no choice: what would give one.
    fn write_way_out(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, faults) = (self.regions.len(), self.terms.faults);
        if self.proposed.active.len() < all || faults == 0 {
            return Ok(());
        }
        let (fewer, enough) = (faults - 1, 2 * faults - 1);
        writeln!(f, "All {all} regions must vote if {}; with --faults {fewer} it takes {enough} of them.", lost(faults))
    }

    /// A layout, its regions in the order of the cluster.
    fn told(&self, layout: &Layout) -> String {
        let in_order = |some: &std::collections::BTreeSet<String>| {
            self.regions.iter().filter(|region| some.contains(*region)).map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let passive = if layout.passive.is_empty() { String::new() } else { format!("; passive {}", in_order(&layout.passive)) };
        format!("active {}{passive}", in_order(&layout.active))
    }

    fn table(&self) -> Table {
        let reads = self.clients.iter().any(|client| client.reads_per_txn > 0.0);
        let mut titles = vec!["clients in"];
        titles.push(if self.counted == Counted::Clients { "clients" } else { "txn/s" });
        titles.extend(reads.then_some("reads"));
        let blanks = titles.len() - 1;
        titles.extend(["latency ms now", "then", "saved"]);
        let mut table = Table::new(1, &titles);
        let times = |now: f64, then: f64| [ms(now), ms(then), ms(now - then)];
        for client in &self.clients {
            let many = client.transactions_per_second.map(|rate| format!("{rate:.2}"));
            let mut cells = vec![client.region.clone(), many.unwrap_or_else(|| client.clients.unwrap_or(0).to_string())];
            cells.extend(reads.then(|| format!("{:.1}", client.reads_per_txn)));
            cells.extend(times(client.now_ms, client.then_ms));
            table.row(cells);
        }
        table.row(Vec::new());
        let (now, then) = (self.latency_now, self.latency_then);
        let rows = [("mean", now.mean_ms, then.mean_ms), ("p95", now.p95_ms, then.p95_ms), ("worst", now.worst_ms, then.worst_ms)];
        for (title, now, then) in rows {
            let mut cells = vec![title.to_owned()];
            cells.extend(std::iter::repeat_n(String::new(), blanks));
            cells.extend(times(now, then));
            table.row(cells);
        }
        table
    }

    fn proof(&self) -> String {
        match self.proven_gap {
            Some(_) => self.found.proof(),
            None => "Not proven: the search leaves out that passive copies are read from other regions.\n".to_owned(),
        }
    }
}

impl fmt::Display for CoordinatorChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CoordinatorChange { region, read_now, read_then, commit_now, commit_then } = self;
        let mut parts = Vec::new();
        if read_now != read_then {
            parts.push(format!("reads at {read_now} → {read_then}"));
        }
        if commit_now != commit_then {
            parts.push(format!("commits by {commit_now} → {commit_then}"));
        }
        write!(f, "clients in {region}: {}", parts.join(", "))
    }
}

fn steps(count: usize) -> String {
    if count == 1 { "one step".to_owned() } else { format!("{count} steps") }
}
