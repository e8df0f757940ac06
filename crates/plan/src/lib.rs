//! The placement planner: which regions hold replicas, who coordinates whose commits, and how long transactions then take.
//!
//! It answers from round-trip times and a workload alone (GPlacer: Zakhary et al., *Global-Scale Placement of
//! Transactional Data Stores*, EDBT 2018), without I/O, clock or randomness, and in integers throughout: two searches for
//! the best placement agree exactly or one of them is wrong.

pub mod constraints;
pub mod evaluate;
pub mod exhaustive;
pub mod floor;
pub mod matrix;
pub mod model;
pub mod objective;
pub mod problem;

pub use constraints::{Constraint, Groups};
pub use evaluate::{ClientPlan, Evaluation, Evaluator, evaluate};
pub use exhaustive::{Best, Exhausted, exhaustive, exhaustive_until};
pub use matrix::Matrix;
pub use model::{Model, Protocol, Reads, TwoPhase};
pub use objective::Objective;
pub use problem::{Client, Problem, ProblemError, Request};
