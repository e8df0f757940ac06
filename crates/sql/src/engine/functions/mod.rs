//! Functions of PostgreSQL that the query engine has not, or has with other results.

mod bytes;
mod intervals;
mod moments;
mod numbers;
mod texts;
mod values;

use datafusion::logical_expr::ScalarUDF;
use std::sync::Arc;

pub use intervals::MAKE_INTERVAL;
pub use moments::EXTRACT;
pub use values::DISAMBIGUATED;

/// The query engine's functions with these in the place of those that differ.
pub fn with_functions(mut functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let own: Vec<Arc<ScalarUDF>> = [bytes::each(), intervals::each(), moments::each(), numbers::each(), texts::each(), values::each()]
        .into_iter()
        .flatten()
        .map(|function| Arc::new(function.into()))
        .collect();
    functions.retain(|function| !own.iter().any(|other| other.name() == function.name()));
    functions.extend(own);
    functions
}
