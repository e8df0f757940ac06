//! Aggregates in the query engine as PostgreSQL defines them, in place of the query engine's own: these wrap around where a sum is out of range, and are of
//! other types.

mod exact;
mod first_two;
mod groups;
mod intervals;
mod sum;

pub use first_two::first_two;
pub use intervals::of_intervals;

use datafusion::logical_expr::AggregateUDF;
use std::sync::Arc;

/// The query engine's aggregates with those that differ.
pub fn with_functions(mut functions: Vec<Arc<AggregateUDF>>) -> Vec<Arc<AggregateUDF>> {
    let own = sum::each();
    functions.retain(|function| !own.iter().any(|other| other.name() == function.name()));
    functions.extend(own);
    functions
}
