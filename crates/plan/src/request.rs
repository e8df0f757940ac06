//! What is asked of the planner: the clients, how their transactions run, what to keep to and what to make small.

use crate::constraints::Constraint;
use crate::matrix::Matrix;
use crate::model::Model;
use crate::objective::Objective;
use std::sync::Arc;

/// The clients of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The region.
    pub region: usize,
    /// How many clients are there: its weight. At least one.
    pub clients: u64,
    /// The reads of an average transaction there, in thousandths.
    pub reads_milli: u64,
}

/// What is asked of the planner.
#[derive(Clone, Debug)]
pub struct Request {
    /// The round trips.
    pub matrix: Arc<Matrix>,
    /// The client regions, ascending, each once.
    pub clients: Vec<Client>,
    /// How transactions run.
    pub model: Model,
    /// f: how many regions may be lost. A placement has 2f + 1 replicas.
    pub faults: usize,
    /// What is minimized.
    pub objective: Objective,
    /// What to keep to.
    pub constraints: Vec<Constraint>,
    /// What a replica costs per month in each region, in millionths of a dollar; empty if nothing costs anything.
    pub prices: Vec<u64>,
}
