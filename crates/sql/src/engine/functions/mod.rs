//! Functions of PostgreSQL that the query engine has not, or has with other results.

mod moments;
mod texts;
mod values;

use datafusion::logical_expr::ScalarUDF;
use std::sync::Arc;

pub use moments::EXTRACT;

/// The query engine's functions with these in the place of those that differ.
pub fn with_functions(mut functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let own: Vec<Arc<ScalarUDF>> =
        [moments::each(), texts::each(), values::each()].into_iter().flatten().map(|function| Arc::new(function.into())).collect();
    functions.retain(|function| !own.iter().any(|other| other.name() == function.name()));
    functions.extend(own);
    functions
}
