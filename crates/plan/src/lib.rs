//! The placement planner: which regions hold replicas, who coordinates whose commits, and how long transactions then take.
//!
//! It answers from round-trip times and a workload alone (GPlacer: Zakhary et al., *Global-Scale Placement of
//! Transactional Data Stores*, EDBT 2018), without I/O, clock or randomness, and in integers throughout: two searches for
//! the best placement agree exactly or one of them is wrong.
//!
//! | section | rule | code |
//! |---|---|---|
//! | 2.1, 3.1 | the latency of a transaction | `model.rs`; `evaluate.rs`: `evaluate` |
//! | 3.1, Algorithm 1 | exhaustive search | `exhaustive.rs`: `exhaustive` |
//! | 3.2, Algorithm 2 | greedy | `greedy.rs`: `greedy` |
//! | 3.2, Algorithm 3 | weights flow to majorities | `weighted.rs`: `weighted` |
//! | 4.1 | commit here, or hand off | `evaluate.rs`: `choose`; carried out by `replicated-commit/src/gateway/handoff.rs` |
//! | 4.1 | two-phase commit among leaders | `two_phase.rs` |
//! | 6.1, Algorithms 4 and 5 | where leaders stand | `leaders.rs` |
//! | beyond it | branch and bound, the default of `rhumb plan`: the optimum with a proof, or a gap | `exact/mod.rs`: `branch_and_bound` |
//! | beyond it | the lower bounds that cut branches off | the table at the head of `exact/mod.rs` |

pub mod capacity;
mod columns;
pub mod constraints;
pub mod decimal;
pub mod evaluate;
pub mod exact;
pub mod exhaustive;
mod feasibility;
pub mod finding;
pub mod floor;
pub mod greedy;
pub mod layout;
pub mod leaders;
pub mod matrix;
pub mod model;
pub mod objective;
pub mod pareto;
pub mod places;
pub mod prices;
pub mod problem;
pub mod report;
mod request;
mod table;
pub mod two_phase;
pub mod weighted;
pub mod workload;

pub use constraints::{Constraint, Groups};
pub use evaluate::{ClientPlan, Evaluation, Evaluator, evaluate};
pub use exact::{Bounds, Counters, Progress, Proof, branch_and_bound, exact};
pub use exhaustive::{Best, Exhausted, exhaustive, exhaustive_until, exhaustive_while};
pub use finding::{Effort, Finding};
pub use greedy::greedy;
pub use layout::Layout;
pub use leaders::{Heuristic, LeaderPlan, LeaderProblem, Partition, leader_plans, place_leaders};
pub use matrix::Matrix;
pub use model::{Model, Protocol, Reads, TwoPhase};
pub use objective::Objective;
pub use pareto::{FrontPoint, pareto};
pub use prices::Prices;
pub use problem::{Problem, ProblemError};
pub use report::Report;
pub use report::change::ChangeReport;
pub use request::{Client, Request};
pub use table::TableError;
pub use weighted::weighted;
