//! Arrays in the query engine: PostgreSQL's functions and operators of them, as PostgreSQL defines them. Why those that the query engine has of
//! most of these names do not serve: `docs/decisions/0043-arrays-have-functions-of-our-own.md`.

mod coalesce;
mod compared;
mod functions;
mod make;
mod quantified;
mod returned;
pub mod subqueries;
pub mod typing;

pub use crate::engine::bounded::TO_ARRAY;
pub use functions::{BEFORE, OR_NULL, SUBSCRIPTS, function};
pub use make::make_array;
pub use quantified::{Quantified, list_of, name as quantified};

use crate::engine::row_function::MADE_BYTES_MAX;
use datafusion::logical_expr::{Expr, ScalarUDF};
use std::sync::Arc;

/// The function that is one of arrays, too.
pub const COALESCE: &str = "coalesce";

/// The query engine's functions with those of arrays.
pub fn with_functions(mut functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let nested = datafusion::functions_nested::all_default_nested_functions();
    let differs = |name: &str| nested.iter().any(|function| function.name() == name);
    functions.retain(|function| !differs(function.name()) && function.name() != COALESCE);
    functions.extend([coalesce::coalesce(), make_array()]);
    functions.extend(functions::each());
    functions.extend(Quantified::each().map(Arc::new));
    functions
}

/// The text of an array, as PostgreSQL prints it.
pub fn text_of_array(array: Expr) -> Expr {
    function(functions::TO_TEXT, MADE_BYTES_MAX).call(vec![array])
}
