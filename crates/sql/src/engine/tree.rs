//! Walks over the query engine's expressions and plans.
//!
//! The engine's own walks are generic: each closure compiles them anew, for all that an expression may consist of. Here they do not know which
//! closure they have, so there is one of each.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Shows `seen` all parts of an expression, each before its own parts.
pub fn visit(expr: &Expr, seen: &mut dyn FnMut(&Expr) -> Result<TreeNodeRecursion>) -> Result<()> {
    expr.apply(seen).map(|_| ())
}

/// True if an expression or a part of it passes `test`.
pub fn any(expr: &Expr, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
    let mut found = false;
    let walked = visit(expr, &mut |expr| {
        found |= test(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}

/// An expression with `change` made to each of its parts, and then to itself.
pub fn rewrite(expr: Expr, change: &mut dyn FnMut(Expr) -> Result<Transformed<Expr>>) -> Result<Transformed<Expr>> {
    expr.transform_up(change)
}

/// A plan with `change` made to each of its parts, subqueries among them, and then to itself.
pub fn rewrite_plan(plan: LogicalPlan, change: &mut dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>) -> Result<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(change)?.data)
}

/// The window of one of a node's expressions.
pub fn window_of(call: &mut Expr) -> Option<&mut WindowFunction> {
    match call {
        Expr::Alias(alias) => window_of(&mut alias.expr),
        Expr::WindowFunction(function) => Some(function),
        _ => None,
    }
}
