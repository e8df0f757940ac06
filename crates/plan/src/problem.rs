//! A placement problem: who the clients are, how transactions run, how many faults to survive, what to keep to and what
//! to make small.

use crate::constraints::{Constraint, Groups};
use crate::feasibility::{Terms, conflict};
use crate::matrix::Matrix;
use crate::model::{Model, Protocol};
use crate::objective::Objective;
use crate::request::{Client, Request};
use thiserror::Error;

/// The most faults that a plan is made for.
pub const FAULTS_MAX: usize = 15;
/// The most replicas of a placement, 2f + 1: arrays of the inner loops have this length.
pub const REPLICAS_MAX: usize = 2 * FAULTS_MAX + 1;
/// How many constraints may limit groups; two are a matter of flows, three would be of search.
pub const GROUPINGS_MAX: usize = 2;

/// A problem that was checked: it makes sense, its sums fit 64 bits, and some placement satisfies its constraints.
#[derive(Clone, Debug)]
pub struct Problem {
    request: Request,
    terms: Terms,
    /// The number of clients of each client region, for the objective.
    weights: Vec<u64>,
}

/// Why there is no plan.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ProblemError {
    #[error("to survive {faults} lost regions takes {} replicas, but there are {regions} regions: at most {} can be survived",
        2 * faults + 1, regions.saturating_sub(1) / 2)]
    TooManyFaults { faults: usize, regions: usize },
    #[error("{faults} faults are more than a plan is made for ({FAULTS_MAX})")]
    FaultsBeyondBound { faults: usize },
    #[error("no region has clients; a plan needs at least one")]
    NoClients,
    #[error("the counts of the workload are too large to add up; give them in thousands")]
    TooManyClients,
    #[error("a percentile is between 1 and 1000 thousandths, not {milli}")]
    Percentile { milli: u32 },
    #[error("a share of transactions is at most 1000 thousandths, not {milli}")]
    Share { milli: u32 },
    #[error("{groupings} constraints limit groups of regions; at most {GROUPINGS_MAX} can be combined")]
    TooManyGroupings { groupings: usize },
    #[error("no placement of {replicas} replicas satisfies all of: {}; give up one of these", constraints.join("; "))]
    Infeasible {
        replicas: usize,
        /// Which of the request's constraints: by index, as few as conflict.
        conflicting: Vec<usize>,
        /// The same in words.
        constraints: Vec<String>,
    },
}

impl Problem {
    /// Checks a request.
    pub fn new(request: Request) -> Result<Problem, ProblemError> {
        check(&request)?;
        if let Some(conflicting) = conflict(&request) {
            let constraints = conflicting.iter().map(|&index| request.constraints[index].describe(&request.matrix)).collect();
            return Err(ProblemError::Infeasible { replicas: 2 * request.faults + 1, conflicting, constraints });
        }
        let terms = Terms::new(&request, request.constraints.iter());
        let weights = request.clients.iter().map(|client| client.clients).collect();
        Ok(Problem { request, terms, weights })
    }

    /// What was asked.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The round trips.
    pub fn matrix(&self) -> &Matrix {
        &self.request.matrix
    }

    /// The client regions, ascending.
    pub fn clients(&self) -> &[Client] {
        &self.request.clients
    }

    /// The number of clients of each client region, in the order of [`Problem::clients`].
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// How transactions run.
    pub fn model(&self) -> Model {
        self.request.model
    }

    /// What is minimized.
    pub fn objective(&self) -> Objective {
        self.request.objective
    }

    /// The number of replicas, 2f + 1.
    pub fn replicas(&self) -> usize {
        2 * self.request.faults + 1
    }

    /// The regions that may hold a replica by every constraint on single regions (required ones included), ascending.
    pub fn candidates(&self) -> &[usize] {
        &self.terms.candidates
    }

    /// The regions that must hold a replica, ascending.
    pub fn required(&self) -> &[usize] {
        &self.terms.required
    }

    /// How many replicas a group of regions may hold, for each division into groups.
    pub fn limits(&self) -> &[(u32, Groups)] {
        &self.terms.limits
    }

    /// What the replicas may cost per month, in millionths of a dollar.
    pub fn budget(&self) -> Option<u64> {
        self.terms.budget
    }

    /// What a replica in `region` costs per month, in millionths of a dollar.
    pub fn price(&self, region: usize) -> u64 {
        self.request.prices.get(region).copied().unwrap_or(0)
    }

    /// What `replicas` cost together per month, in millionths of a dollar.
    pub fn price_of(&self, replicas: &[usize]) -> u64 {
        replicas.iter().map(|&region| self.price(region)).sum()
    }

    /// Whether some placement holds all of `chosen`, which are distinct: decided exactly, not by a bound.
    pub fn extendable(&self, chosen: &[usize]) -> bool {
        self.terms.satisfiable(self.replicas(), chosen, |region| self.price(region))
    }

    /// Whether `replicas`, ascending and each once, are a placement: as many as must be, and all constraints satisfied.
    pub fn admits(&self, replicas: &[usize]) -> bool {
        replicas.len() == self.replicas()
            && replicas.iter().all(|region| self.terms.candidates.binary_search(region).is_ok())
            && self.admits_candidates(replicas)
    }

    /// Whether `replicas`, known to be as many candidates as must be, ascending and each once, satisfy what constraints ask
    /// of them together.
    pub fn admits_candidates(&self, replicas: &[usize]) -> bool {
        self.terms.hold_together(replicas, |region| self.price(region))
    }

    /// The constraints that `replicas`, each once, do not satisfy, in words.
    pub fn violated(&self, replicas: &[usize]) -> Vec<String> {
        let holds = |constraint: &&Constraint| {
            let terms = Terms::new(&self.request, std::iter::once(*constraint));
            let may = replicas.iter().all(|region| terms.candidates.binary_search(region).is_ok());
            may && terms.hold_together(replicas, |region| self.price(region))
        };
        let violated = self.request.constraints.iter().filter(|constraint| !holds(constraint));
        violated.map(|constraint| constraint.describe(self.matrix())).collect()
    }
}

/// What must be so for a request to make sense, before its constraints are looked at.
fn check(request: &Request) -> Result<(), ProblemError> {
    let regions = request.matrix.regions();
    assert!(request.clients.windows(2).all(|pair| pair[0].region < pair[1].region), "client regions are ascending, each once");
    assert!(request.clients.iter().all(|client| client.region < regions && client.clients > 0), "clients are in known regions");
    assert!(request.prices.is_empty() || request.prices.len() == regions, "every region has a price, or none");
    if request.faults > FAULTS_MAX {
        return Err(ProblemError::FaultsBeyondBound { faults: request.faults });
    }
    if 2 * request.faults + 1 > regions {
        return Err(ProblemError::TooManyFaults { faults: request.faults, regions });
    }
    if request.clients.is_empty() {
        return Err(ProblemError::NoClients);
    }
    if let Objective::Percentile(milli) = request.objective
        && !(1..=1_000).contains(&milli)
    {
        return Err(ProblemError::Percentile { milli });
    }
    if let Protocol::SpreadLeaders { multi_partition_milli: milli, .. } = request.model.protocol
        && milli > 1_000
    {
        return Err(ProblemError::Share { milli });
    }
    let groupings = request.constraints.iter().filter(|constraint| matches!(constraint, Constraint::AtMost { .. })).count();
    if groupings > GROUPINGS_MAX {
        return Err(ProblemError::TooManyGroupings { groupings });
    }
    // No latency of the model has more than these round trips: one per read; a hop, a majority and two to a leader.
    let longest = u128::from(request.matrix.longest_us());
    let most: u128 = request
        .clients
        .iter()
        .map(|client| {
            let read = longest + u128::from(request.model.read_processing_us);
            u128::from(client.clients) * (1 + u128::from(client.reads_milli) * read + 1_000 * 4 * longest)
        })
        .sum();
    let prices: u128 = request.prices.iter().map(|&price| u128::from(price)).sum();
    if most.max(prices) > u128::from(u64::MAX) { Err(ProblemError::TooManyClients) } else { Ok(()) }
}
