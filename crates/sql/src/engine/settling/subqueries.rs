//! Subqueries that stand for a value, and `EXISTS` where it is none of the conditions of `WHERE`.
//!
//! The query engine joins with a subquery that refers to what is around it, and takes only one of which it sees that it has one row at the most. So the others are made
//! to have one, of the first two values there are; which is refused where there are two, but only of rows that come as far as to be asked.

use super::correlated;
use crate::engine::aggregates::first_two;
use crate::engine::from_sql;
use crate::engine::row_function::RowFunction;
use crate::error::{SqlError, SqlState};
use crate::types::Datum;
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF, Subquery};
use std::sync::Arc;

const ONLY: &str = "rhumb_only";

/// A subquery in the place of a value, as one of which the query engine sees that it has one row at the most.
pub(super) fn of_value(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = expr else { return Ok(Transformed::no(expr)) };
    let plan = &subquery.subquery;
    let is_single = plan.max_rows().is_some_and(|rows| rows <= 1) || matches!(inner(plan), LogicalPlan::Aggregate(_));
    if subquery.outer_ref_columns.is_empty() || is_single || plan.schema().fields().len() != 1 {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    let (field, plan) = (plan.schema().field(0).as_ref().clone(), plan.as_ref().clone());
    let rows = LogicalPlanBuilder::from(plan).aggregate(Vec::<Expr>::new(), vec![first_two().call(vec![column])])?.build()?;
    let values = Expr::ScalarSubquery(Subquery { subquery: Arc::new(rows), ..subquery });
    let only = RowFunction::new(
        ONLY,
        1..=1,
        move |_| Ok(field.clone().with_nullable(true)),
        |field, values| match values {
            [Datum::List(list)] if list.len() == 1 && list.is_valid(0) => only(list.value(0).as_ref(), field.data_type()),
            [_] => Datum::try_from(field.data_type()).map_err(|error| SqlError::internal(error.to_string())),
            _ => Err(SqlError::internal("it has one argument")),
        },
    );
    Ok(Transformed::yes(ScalarUDF::from(only).call(vec![values])))
}

/// The plan below what only names or leaves out columns.
fn inner(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => inner(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => inner(&alias.input),
        LogicalPlan::Filter(filter) => inner(&filter.input),
        LogicalPlan::Sort(sort) => inner(&sort.input),
        other => other,
    }
}

fn only(values: &dyn Array, ty: &DataType) -> Result<Datum, SqlError> {
    let internal = |error: datafusion::common::DataFusionError| SqlError::internal(error.to_string());
    match values.len() {
        0 => Datum::try_from(ty).map_err(internal),
        1 => Datum::try_from_array(values, 0).map_err(internal),
        _ => {
            let message = "more than one row returned by a subquery used as an expression";
            Err(SqlError::new(SqlState::CardinalityViolation, message))
        }
    }
}

/// The same of an `EXISTS` among the conditions of `WHERE` that the query engine cannot join with.
pub(super) fn of_other_existence(expr: Expr) -> Result<Transformed<Expr>> {
    match &expr {
        Expr::Exists(exists) if !correlated::is_joinable(&exists.subquery) => of_existence(expr),
        _ => Ok(Transformed::no(expr)),
    }
}

/// `EXISTS` in the place of a value, which the query engine knows as a condition of `WHERE` alone: whether there are more than no rows.
pub(super) fn of_existence(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::Exists(Exists { subquery, negated }) = expr else { return Ok(Transformed::no(expr)) };
    if subquery.subquery.schema().fields().is_empty() {
        return Err(from_sql(SqlError::unsupported("EXISTS of rows without columns is not supported here")));
    }
    let mut rows = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    if subquery.outer_ref_columns.is_empty() {
        rows = rows.limit(0, Some(1))?;
    }
    let one = Expr::Literal(Datum::Int64(Some(1)), None);
    let rows = rows.aggregate(Vec::<Expr>::new(), vec![count_udaf().call(vec![one])])?.build()?;
    let count = Expr::ScalarSubquery(Subquery { subquery: Arc::new(rows), ..subquery });
    let none = Expr::Literal(Datum::Int64(Some(0)), None);
    let op = if negated { Operator::Eq } else { Operator::Gt };
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(count), op, Box::new(none)))))
}
