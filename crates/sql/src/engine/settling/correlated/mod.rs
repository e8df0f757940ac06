//! Subqueries that refer to the rows around them by more than equalities: the query engine turns into a join only those that do so by nothing else.
//!
//! ```text
//!   o.id, (SELECT count(*) FROM p WHERE p.at < o.at)  FROM o
//!
//!   Projection: o.id, value                      each row of o with the value that its `at` has
//!     Left Join: o.at = at, NULLs being equal
//!       o
//!       Aggregate: group by at, count(*)         one value for each `at`
//!         Filter: p.at < at
//!           Cross Join
//!             Distinct: o.at                     the domain: what the subquery may be asked with
//!             p
//! ```
//! After T. Neumann and A. Kemper, "Unnesting Arbitrary Queries" (BTW 2015), without moving the domain further up than the leaves.
//!
//! Invariants:
//! - Each rewritten node has the columns of the domain, and then those that it had.
//! - For each row of the domain it has the rows that the node has when asked with that row.

mod domain;
mod references;

pub(super) use references::{references, subquery_of};

use crate::engine::from_sql;
use crate::engine::tree::any;
use crate::error::SqlError;
use datafusion::common::{Column, DataFusionError, JoinType, NullEquality, Result};
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery};
use domain::{Domain, Settle};
use references::{own_references, references_of, refers};

/// True if the query engine cannot join with the subquery.
pub(super) fn is_hard(subquery: &Subquery) -> bool {
    refers(&subquery.subquery) && !is_easy(&subquery.subquery, false)
}

fn is_easy(plan: &LogicalPlan, is_grouped: bool) -> bool {
    if !refers(plan) {
        return true;
    }
    let has_own = !own_references(plan).is_empty();
    match plan {
        LogicalPlan::Filter(filter) => {
            let is_easy_condition = |condition: &Expr| is_equality(condition) || references_of(condition, plan).is_empty();
            split_conjunction(&filter.predicate).into_iter().all(is_easy_condition) && is_easy(&filter.input, is_grouped)
        }
        LogicalPlan::Projection(projection) => !has_own && is_easy(&projection.input, is_grouped),
        LogicalPlan::SubqueryAlias(alias) => is_easy(&alias.input, is_grouped),
        LogicalPlan::Aggregate(aggregate) => !has_own && !is_grouped && is_easy(&aggregate.input, true),
        LogicalPlan::Join(join) => {
            !has_own && join.join_type == JoinType::Inner && is_easy(&join.left, is_grouped) && is_easy(&join.right, is_grouped)
        }
        _ => false,
    }
}

/// True for a condition that a column around is equal to what is within.
fn is_equality(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return false };
    let is_around = |expr: &Expr| matches!(expr, Expr::OuterReferenceColumn(..));
    let is_within = |expr: &Expr| {
        let is_other = |expr: &Expr| is_around(expr) || subquery_of(expr).is_some();
        any(expr, &mut |expr| matches!(expr, Expr::Column(_))) && !any(expr, &mut |expr| is_other(expr))
    };
    is_within(left) && is_around(right) || is_around(left) && is_within(right)
}

/// True if the query engine may join rows with those for which a subquery of `EXISTS` or `IN` has one. It looks through what only chooses rows, and computes
/// an aggregate, a window or an `OFFSET` within for all rows together.
pub(super) fn is_joinable(subquery: &Subquery) -> bool {
    only_chooses(&subquery.subquery)
}

fn only_chooses(plan: &LogicalPlan) -> bool {
    if !refers(plan) {
        return true;
    }
    let asks_around = |expr: &Expr| any(expr, &mut |expr| subquery_of(expr).is_some() && !references_of(expr, plan).is_empty());
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Distinct(Distinct::All(_)) => {}
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {}
        _ => return false,
    }
    !plan.expressions().iter().any(asks_around) && plan.inputs().into_iter().all(only_chooses)
}

/// The rows of `around`, and the value that the subquery has for each as the column `name` after theirs. Error 0A000.
pub(super) fn joined(around: &LogicalPlan, subquery: &Subquery, name: &str, settle: Settle) -> Result<LogicalPlan> {
    let domain = Domain::new(around, &subquery.subquery, settle)?;
    let (keys, values) = (domain.keys(), domain.over(&subquery.subquery)?);
    let Some(value) = values.schema().columns().into_iter().nth(keys.len()) else {
        return Err(from_sql(SqlError::internal("a subquery has a column")));
    };
    let columns = keys.iter().cloned().map(Expr::Column).chain([Expr::Column(value).alias(name)]);
    let values = LogicalPlanBuilder::from(values).project(columns)?.build()?;
    LogicalPlanBuilder::from(around.clone())
        .join_detailed(values, JoinType::Left, (domain.references, keys), None, NullEquality::NullEqualsNull)?
        .build()
}

/// A join with what is `LATERAL` to its left side, by what that may be asked with; `None`: it is another one, or one of the query engine's. Error 0A000.
pub(super) fn lateral(join: &Join, settle: Settle) -> Result<Option<LogicalPlan>> {
    let (subquery, alias) = match join.right.as_ref() {
        LogicalPlan::Subquery(subquery) => (subquery, None),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => (subquery, Some(alias)),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let is_of_left = |column: &Column| join.left.schema().has_column(column);
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left)
        || !is_hard(subquery)
        || !references(&subquery.subquery).iter().any(is_of_left)
    {
        return Ok(None);
    }
    let domain = Domain::new(&join.left, &subquery.subquery, settle)?;
    let rows = domain.over(&subquery.subquery)?;
    let rows = match alias {
        Some(alias) => domain.named(rows, &alias.schema)?,
        None => rows,
    };
    let pairs = join.on.iter().map(|(one, other)| one.clone().eq(other.clone()));
    let filter = conjunction(pairs.chain(join.filter.clone()));
    let keys = domain.keys();
    LogicalPlanBuilder::from(join.left.as_ref().clone())
        .join_detailed(rows, join.join_type, (domain.references, keys), filter, NullEquality::NullEqualsNull)?
        .project(join.schema.columns().into_iter().map(Expr::Column))?
        .build()
        .map(Some)
}

fn unsupported(what: &str) -> DataFusionError {
    from_sql(SqlError::unsupported(what).with_hint("Join with its table instead, and group or filter what comes of that."))
}
