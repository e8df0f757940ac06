//! What a plan says to people and to programs: names instead of indices, milliseconds instead of nanoseconds.
//!
//! A [`Report`] serializes with the fields in the order in which they stand here, and displays as a table (`text`). The
//! figures are rounded for display alone. What a plan means for a cluster that runs is a [`change::ChangeReport`].

pub mod change;
mod terms;
#[cfg(test)]
mod tests;
mod text;
mod words;

use crate::evaluate::{ClientPlan, Evaluation, evaluate};
use crate::finding::{Effort, Finding};
use crate::objective::Objective;
use crate::pareto::FrontPoint;
use crate::problem::Problem;
use serde::Serialize;
pub use terms::Terms;
use words::objective_name;

/// A plan, told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The regions chosen, in the order of the matrix.
    pub replicas: Vec<String>,
    /// The mean latency over all clients.
    pub mean_ms: f64,
    /// By how much the best placement there is may be better, as a share of the objective; 0 if this is proven to be it.
    pub proven_gap: f64,
    /// Every client region, in the order of the matrix.
    pub clients: Vec<ClientReport>,
    /// The latency of the client region that is worst off.
    pub worst_ms: f64,
    /// The latency that 95 of 100 clients do not exceed.
    pub p95_ms: f64,
    /// What is made small.
    pub objective: String,
    /// How small it is.
    pub objective_ms: f64,
    /// What no placement goes below, as far as is proven.
    pub bound_ms: f64,
    /// The search: `exact`, `exhaustive`, `greedy` or `weighted`.
    pub method: &'static str,
    /// Nodes or placements that it looked at; none for a heuristic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<u64>,
    /// How many regions there are to choose from.
    pub regions: usize,
    /// What was asked for, and what was assumed.
    #[serde(flatten)]
    pub terms: Terms,
    /// What the replicas cost a month, in dollars; none if nothing has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_month: Option<f64>,
    /// Given placements, to hold against the best.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Compared>,
    /// Price against latency, the best placement first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub front: Vec<FrontReport>,
    /// Whether these are all there are, and each proven; none without a front.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub front_complete: Option<bool>,
    #[serde(skip)]
    floors: Summary,
}

/// What a plan means for the clients of a region.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientReport {
    /// The region.
    pub region: String,
    /// Who serves their reads.
    pub read_coordinator: String,
    /// Who coordinates their commits.
    pub commit_coordinator: String,
    /// How long an average transaction takes.
    pub latency_ms: f64,
    /// What no placement of as many replicas can go below for them.
    pub floor_ms: f64,
    /// How many they are.
    pub clients: u64,
    /// The reads of an average transaction.
    pub reads_per_txn: f64,
}

/// A given placement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The regions.
    pub replicas: Vec<String>,
    /// The objective there.
    pub objective_ms: f64,
    /// Its latencies.
    #[serde(flatten)]
    pub summary: Summary,
    /// What it costs a month, in dollars; none if nothing has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_month: Option<f64>,
    /// The constraints that it does not satisfy, in words.
    pub violates: Vec<String>,
}

/// A placement that no other beats both at the price and at the objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrontReport {
    /// What it costs a month, in dollars.
    pub price_month: f64,
    /// The objective there.
    pub objective_ms: f64,
    /// The regions.
    pub replicas: Vec<String>,
}

/// Latencies over all clients, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The mean.
    pub mean_ms: f64,
    /// Of the region that is worst off.
    pub worst_ms: f64,
    /// What 95 of 100 do not exceed.
    pub p95_ms: f64,
}

impl Report {
    /// What `finding` says of `problem`.
    pub fn new(problem: &Problem, finding: &Finding) -> Report {
        let evaluation = evaluate(problem, &finding.best.replicas);
        let Summary { mean_ms, worst_ms, p95_ms } = Summary::of(problem, &evaluation, |client| client.latency_ns);
        let (method, looked_at) = match finding.effort {
            Effort::Exact { nodes } => ("exact", Some(nodes)),
            Effort::Exhaustive { placements } => ("exhaustive", Some(placements)),
            Effort::Greedy => ("greedy", None),
            Effort::Weighted => ("weighted", None),
        };
        Report {
            replicas: names(problem, &evaluation.replicas),
            mean_ms,
            proven_gap: finding.gap(),
            clients: client_reports(problem, &evaluation),
            worst_ms,
            p95_ms,
            objective: objective_name(problem.request().objective),
            objective_ms: objective_ms(problem, finding.best.cost),
            bound_ms: objective_ms(problem, finding.bound),
            method,
            looked_at,
            regions: problem.matrix().regions(),
            terms: Terms::new(problem),
            price_month: price_month(problem, evaluation.price),
            compared: Vec::new(),
            front: Vec::new(),
            front_complete: None,
            floors: Summary::of(problem, &evaluation, |client| client.floor_ns),
        }
    }

    /// Says besides what was assumed.
    pub fn assume(&mut self, what: &str) {
        self.terms.assumptions.push(what.to_owned());
    }

    /// Holds `replicas` (ascending, each once) against the best.
    pub fn compare(&mut self, problem: &Problem, replicas: &[usize]) {
        let evaluation = evaluate(problem, replicas);
        self.compared.push(Compared {
            replicas: names(problem, replicas),
            objective_ms: objective_ms(problem, evaluation.cost),
            summary: Summary::of(problem, &evaluation, |client| client.latency_ns),
            price_month: price_month(problem, evaluation.price),
            violates: problem.violated(replicas),
        });
    }

    /// Adds the front of price and latency, `complete` if no point is missing and each is proven.
    pub fn show_front(&mut self, problem: &Problem, front: &[FrontPoint], complete: bool) {
        let point = |point: &FrontPoint| FrontReport {
            price_month: dollars(point.price),
            objective_ms: objective_ms(problem, point.best.cost),
            replicas: names(problem, &point.best.replicas),
        };
        self.front = front.iter().map(point).collect();
        self.front_complete = Some(complete);
    }

    /// Whether no placement is better.
    pub fn is_proven(&self) -> bool {
        self.proven_gap == 0.0
    }
}

impl Summary {
    /// Of the time that `of_client` takes from each client region.
    fn of(problem: &Problem, evaluation: &Evaluation, of_client: impl Fn(&ClientPlan) -> u64) -> Summary {
        Summary::of_times(problem, &evaluation.clients.iter().map(of_client).collect::<Vec<u64>>())
    }

    /// Of these times, one for each client region, in nanoseconds.
    fn of_times(problem: &Problem, times: &[u64]) -> Summary {
        let value = |objective: Objective| objective.value(times, problem.weights(), &mut Vec::new());
        let clients: u64 = problem.weights().iter().sum();
        Summary {
            mean_ms: millis(value(Objective::Mean)) / clients as f64,
            worst_ms: millis(value(Objective::Worst)),
            p95_ms: millis(value(Objective::Percentile(950))),
        }
    }
}

fn client_reports(problem: &Problem, evaluation: &Evaluation) -> Vec<ClientReport> {
    let name = |region: usize| problem.matrix().names()[region].clone();
    let told = |(plan, reads_milli): (&ClientPlan, u64)| ClientReport {
        region: name(plan.region),
        read_coordinator: name(plan.read_coordinator),
        commit_coordinator: name(plan.commit_coordinator),
        latency_ms: millis(plan.latency_ns),
        floor_ms: millis(plan.floor_ns),
        clients: plan.clients,
        reads_per_txn: reads_milli as f64 / 1e3,
    };
    let reads = problem.clients().iter().map(|client| client.reads_milli);
    evaluation.clients.iter().zip(reads).map(told).collect()
}

fn names(problem: &Problem, regions: &[usize]) -> Vec<String> {
    regions.iter().map(|&region| problem.matrix().names()[region].clone()).collect()
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn dollars(micro_dollars: u64) -> f64 {
    micro_dollars as f64 / 1e6
}

fn price_month(problem: &Problem, micro_dollars: u64) -> Option<f64> {
    (!problem.request().prices.is_empty()).then(|| dollars(micro_dollars))
}

/// The objective in milliseconds: a sum over clients or regions as the mean that it stands for.
fn objective_ms(problem: &Problem, cost: u64) -> f64 {
    let among = match problem.objective() {
        Objective::Mean => problem.weights().iter().sum(),
        Objective::RegionMean => problem.weights().len() as u64,
        Objective::Worst | Objective::Percentile(_) => 1,
    };
    millis(cost) / among as f64
}
