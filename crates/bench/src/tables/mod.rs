//! The tables of a workload: loaded in batches, remembered in a ledger, and checked for consistency.

mod check;
pub mod ledger;
mod load;

pub use check::{CheckReport, Condition, Rule, evaluate};
pub use load::{Dataset, InitOptions, LoadMethod, LoadReport, LoadRow, TableDefinition, load};
