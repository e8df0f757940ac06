//! Questions about expressions.

use super::tree::any;
use datafusion::logical_expr::{Expr, Volatility};

/// True if its value depends on nothing but its inputs: no subquery, no clock, no chance.
pub fn is_immutable(expr: &Expr) -> bool {
    !any(expr, &mut |expr| match expr {
        Expr::ScalarFunction(function) => function.func.signature().volatility != Volatility::Immutable,
        other => is_relational(other),
    })
}

/// True if it can be evaluated row by row: it holds no subquery, aggregate or window.
pub fn is_scalar(expr: &Expr) -> bool {
    !any(expr, &mut is_relational)
}

/// True if it holds a parameter.
pub fn has_parameter(expr: &Expr) -> bool {
    any(expr, &mut |expr| matches!(expr, Expr::Placeholder(_)))
}

fn is_relational(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::ScalarSubquery(_)
            | Expr::InSubquery(_)
            | Expr::Exists(_)
            | Expr::SetComparison(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::AggregateFunction(_)
            | Expr::WindowFunction(_)
            | Expr::GroupingSet(_)
            | Expr::Unnest(_)
    )
}
