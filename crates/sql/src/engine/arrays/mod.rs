//! Arrays in the query engine: PostgreSQL's functions and operators of them, as PostgreSQL defines them. Why those that the query engine has of
//! most of these names do not serve: `docs/decisions/0043-arrays-have-functions-of-our-own.md`.

mod coalesce;
mod compared;
mod functions;
mod make;
mod operators;
mod quantified;
mod returned;
mod subqueries;
mod typing;

pub use crate::engine::bounded::TO_ARRAY;
pub use functions::{OR_NULL, SUBSCRIPTS};
use make::make_array;
pub use operators::Planner;
pub use quantified::{list_of, name as quantified};
pub use typing::{settle, settle_plan};

use datafusion::logical_expr::ScalarUDF;
use std::sync::Arc;

const COALESCE: &str = "coalesce";

/// The query engine's functions with those of arrays.
pub fn with_functions(mut functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let nested = datafusion::functions_nested::all_default_nested_functions();
    let differs = |name: &str| nested.iter().any(|function| function.name() == name);
    functions.retain(|function| !differs(function.name()) && function.name() != COALESCE);
    functions.extend([coalesce::coalesce(), make_array()]);
    functions.extend(functions::each());
    functions.extend(quantified::Quantified::each().map(Arc::new));
    functions
}
