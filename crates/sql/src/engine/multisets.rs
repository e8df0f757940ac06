//! `INTERSECT ALL` and `EXCEPT ALL`: the query engine looks whether a row is on the other side, and not how often.

use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

/// The column that tells equal rows apart.
const NUMBER: &str = "rhumb_number_of_equal_row";

/// Such an operation with the equal rows of each side numbered, so that each finds its own counterpart; `None` if the node is something else.
///
/// To the query engine it is a join that takes NULLs for equal, as no other is; without `ALL` its left side is distinct.
pub fn counted(node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Join(join) = node else { return Ok(None) };
    let is_set_operation =
        matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) && join.null_equality == NullEquality::NullEqualsNull;
    if !is_set_operation || matches!(join.left.as_ref(), LogicalPlan::Distinct(_)) {
        return Ok(None);
    }
    let (left, right) = (numbered(&join.left)?, numbered(&join.right)?);
    let keys: (Vec<Column>, Vec<Column>) = (left.schema().columns(), right.schema().columns());
    LogicalPlanBuilder::from(left)
        .join_detailed(right, join.join_type, keys, None, NullEquality::NullEqualsNull)?
        .project(join.left.schema().columns().into_iter().map(Expr::Column))?
        .build()
        .map(Some)
}

fn numbered(side: &Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let columns = side.schema().columns().into_iter().map(Expr::Column).collect();
    let number = row_number().partition_by(columns).build()?.alias(NUMBER);
    LogicalPlanBuilder::from(side.as_ref().clone()).window([number])?.build()
}
