//! Questions about expressions.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, Volatility};

/// True if its value depends on nothing but its inputs: no subquery, no clock, no chance.
pub fn is_immutable(expr: &Expr) -> bool {
    !any(expr, |expr| match expr {
        Expr::ScalarFunction(function) => function.func.signature().volatility != Volatility::Immutable,
        other => is_relational(other),
    })
}

/// True if it can be evaluated row by row: it holds no subquery, aggregate or window.
pub fn is_scalar(expr: &Expr) -> bool {
    !any(expr, is_relational)
}

/// True if it holds a parameter.
pub fn has_parameter(expr: &Expr) -> bool {
    any(expr, |expr| matches!(expr, Expr::Placeholder(_)))
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

fn any(expr: &Expr, mut test: impl FnMut(&Expr) -> bool) -> bool {
    let mut found = false;
    let walked = expr.apply(|expr| {
        found |= test(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}
