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

pub(super) use references::references;

use crate::engine::from_sql;
use crate::engine::tree::any;
use crate::error::SqlError;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery};
use domain::Domain;
use references::{own_references, references_of, refers, subquery_of};

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

/// The rows of `around`, and the value that the subquery has for each as the column `name` after theirs. Error 0A000.
pub(super) fn joined(around: &LogicalPlan, subquery: &Subquery, name: &str) -> Result<LogicalPlan> {
    let mut references = references(&subquery.subquery);
    references.retain(|column| around.schema().has_column(column));
    if around.exists(|node| Ok(node.expressions().iter().any(Expr::is_volatile)))? {
        return Err(unsupported("a subquery that refers to rows around it that are not the same each time they are read"));
    }
    let domain = Domain::new(around, &subquery.subquery, references)?;
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

fn unsupported(what: &str) -> DataFusionError {
    from_sql(SqlError::unsupported(what).with_hint("Join with its table instead, and group or filter what comes of that."))
}
