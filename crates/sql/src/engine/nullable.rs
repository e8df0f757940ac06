//! Scalar subqueries: without a row one is NULL, which the query engine does not expect of a column that is never NULL.

use super::row_function::RowFunction;
use crate::error::SqlError;
use datafusion::common::Result;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Subquery};
use std::sync::Arc;

const NULLABLE: &str = "rhumb_nullable";

/// The same subquery with a column that may be NULL; `None` if it has one, always has a row, or refers to what is around it: then it becomes a join.
pub fn made_nullable(subquery: &Subquery) -> Result<Option<Subquery>> {
    let plan = &subquery.subquery;
    let [field] = plan.schema().fields().as_ref() else { return Ok(None) };
    if field.is_nullable() || !subquery.outer_ref_columns.is_empty() || always_has_a_row(plan) {
        return Ok(None);
    }
    let columns = plan.schema().columns().into_iter();
    let nullable = columns.map(|column| {
        let name = column.name.clone();
        ScalarUDF::from(function()).call(vec![Expr::Column(column)]).alias(name)
    });
    let plan = LogicalPlanBuilder::from(plan.as_ref().clone()).project(nullable)?.build()?;
    Ok(Some(Subquery { subquery: Arc::new(plan), ..subquery.clone() }))
}

fn always_has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => always_has_a_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => always_has_a_row(&alias.input),
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.is_empty(),
        LogicalPlan::EmptyRelation(relation) => relation.produce_one_row,
        _ => false,
    }
}

/// Its argument.
fn function() -> RowFunction {
    RowFunction::new(
        NULLABLE,
        1..=1,
        |arguments| Ok(arguments.arg_fields[0].as_ref().clone().with_nullable(true)),
        |_, values| values.first().cloned().ok_or_else(|| SqlError::internal("it has one argument")),
    )
}
