//! Subqueries that stand where the query engine takes none: in `GROUP BY`, in an aggregate or a window, in the condition of a join, in `ORDER BY`.
//!
//! ```text
//!   Aggregate: group by (SELECT …)          Projection: the columns there were
//!     rows                            →       Aggregate: group by rhumb_below_0
//!                                               Projection: *, (SELECT …) AS rhumb_below_0
//!                                                 rows
//! ```
//! In the select list it takes them, if it can join with them; [`correlated`] has the others. So each becomes a column of the rows below.

use super::correlated;
use crate::engine::from_sql;
use crate::engine::tree::{any, rewrite, window_of};
use crate::error::SqlError;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::logical_expr::logical_plan::{Aggregate, Filter, Join, Projection, Sort, Window};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use std::sync::Arc;

/// The node without subqueries of its own; `None`: it has none, or may have them.
pub(super) fn hoisted(node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    if let LogicalPlan::Join(join) = node
        && let Some(made) = correlated::lateral(join, hoisted)?
    {
        return Ok(Some(made));
    }
    if !matches!(node, LogicalPlan::Window(_)) && !has_subquery(node)? {
        return Ok(None);
    }
    let is_hard = |subquery: &Subquery| node.inputs().iter().any(|input| is_of(subquery, input.schema())) && correlated::is_hard(subquery);
    match node {
        LogicalPlan::Projection(projection) => {
            let mut taken = Taken::default();
            let items = taken.all_of(&projection.expr, &is_hard)?;
            let Some(input) = taken.below(&projection.input)? else { return Ok(None) };
            with_columns_of(node, LogicalPlan::Projection(Projection::try_new(items, input)?), |_| false).map(Some)
        }
        LogicalPlan::Filter(filter) => {
            let mut taken = Taken::default();
            let predicate = taken.of(filter.predicate.clone(), &is_hard)?;
            let Some(input) = taken.below(&filter.input)? else { return Ok(None) };
            let own = filter.input.schema().fields().len();
            let made = LogicalPlan::Filter(Filter::try_new(predicate, input)?);
            with_columns_of(node, made, |place| (own..own + taken.0.len()).contains(&place)).map(Some)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let mut taken = Taken::default();
            let group = taken.all_of(&aggregate.group_expr, &is_correlated)?;
            let calls = taken.all_of(&aggregate.aggr_expr, &is_correlated)?;
            let Some(input) = taken.below(&aggregate.input)? else { return Ok(None) };
            if group.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
                let error = SqlError::unsupported("a subquery that refers to what is around it beside GROUPING SETS, ROLLUP or CUBE");
                return Err(from_sql(error.with_hint("Compute it in a subquery in FROM, and group that.")));
            }
            let made = LogicalPlan::Aggregate(Aggregate::try_new(input, group, calls)?);
            with_columns_of(node, made, |_| false).map(Some)
        }
        LogicalPlan::Window(window) => {
            let mut taken = Taken::default();
            let mut calls = window.window_expr.clone();
            calls.iter_mut().for_each(|call| taken.keys_of(call));
            let calls = taken.all_of(&calls, &|_| true)?;
            let Some(input) = taken.below(&window.input)? else { return Ok(None) };
            let own = window.input.schema().fields().len();
            let made = LogicalPlan::Window(Window::try_new(calls, input)?);
            with_columns_of(node, made, |place| (own..own + taken.0.len()).contains(&place)).map(Some)
        }
        LogicalPlan::Sort(sort) => {
            let (mut taken, mut by) = (Taken::default(), sort.expr.clone());
            for key in &mut by {
                key.expr = taken.of(key.expr.clone(), &|_| true)?;
            }
            let Some(input) = taken.below(&sort.input)? else { return Ok(None) };
            let own = sort.input.schema().fields().len();
            let made = LogicalPlan::Sort(Sort { expr: by, input, fetch: sort.fetch });
            with_columns_of(node, made, |place| (own..own + taken.0.len()).contains(&place)).map(Some)
        }
        LogicalPlan::Join(join) => of_join(node, join),
        _ => Ok(None),
    }
}

fn has_subquery(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= any(expr, &mut |expr| matches!(expr, Expr::ScalarSubquery(_)));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// An inner join without the conditions that have subqueries, and those: they may as well be met by what is joined.
pub(super) fn conditions_after(join: &Join) -> Result<Option<(LogicalPlan, Expr)>> {
    let Some(filter) = join.filter.as_ref().filter(|filter| join.join_type == JoinType::Inner && asks(filter)) else { return Ok(None) };
    let (after, within): (Vec<Expr>, Vec<Expr>) = split_conjunction_owned(filter.clone()).into_iter().partition(asks);
    let joined = LogicalPlan::Join(Join { filter: conjunction(within), ..join.clone() });
    Ok(conjunction(after).map(|after| (joined, after)))
}

fn asks(expr: &Expr) -> bool {
    any(expr, &mut |expr| correlated::subquery_of(expr).is_some())
}

/// In the condition of any other join they go below its left side or its right.
fn of_join(node: &LogicalPlan, join: &Join) -> Result<Option<LogicalPlan>> {
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    let (mut left, mut right) = (Taken::default(), Taken::default());
    let mut of_both = |expr: Expr| {
        let expr = left.of(expr, &|subquery| is_of(subquery, left_schema) && !is_of(subquery, right_schema))?;
        right.of(expr, &|subquery| is_of(subquery, right_schema) && !is_of(subquery, left_schema))
    };
    let mut on = Vec::with_capacity(join.on.len());
    for (one, other) in &join.on {
        on.push((of_both(one.clone())?, of_both(other.clone())?));
    }
    let filter = join.filter.clone().map(&mut of_both).transpose()?;
    let is_of_both =
        |expr: &Expr| matches!(expr, Expr::ScalarSubquery(subquery) if is_of(subquery, left_schema) && is_of(subquery, right_schema));
    if filter.iter().any(|filter| any(filter, &mut |expr| is_of_both(expr))) {
        let error = SqlError::unsupported("a subquery in ON that refers to both sides of an outer join");
        return Err(from_sql(error.with_hint("Join with the subquery's table first, or use WHERE.")));
    }
    let (below_left, below_right) = (left.below(&join.left)?, right.below(&join.right)?);
    if below_left.is_none() && below_right.is_none() {
        return Ok(None);
    }
    let changed = Join {
        left: below_left.unwrap_or_else(|| join.left.clone()),
        right: below_right.unwrap_or_else(|| join.right.clone()),
        on,
        filter,
        ..join.clone()
    };
    let made = LogicalPlan::Join(changed).recompute_schema()?;
    let first = left_schema.fields().len();
    let second = first + left.0.len() + right_schema.fields().len();
    let is_taken = |place| (first..first + left.0.len()).contains(&place) || (second..second + right.0.len()).contains(&place);
    with_columns_of(node, made, is_taken).map(Some)
}

/// True if the subquery refers to columns of this schema.
fn is_of(subquery: &Subquery, schema: &DFSchema) -> bool {
    correlated::references(&subquery.subquery).iter().any(|column| schema.has_column(column))
}

fn is_correlated(subquery: &Subquery) -> bool {
    !correlated::references(&subquery.subquery).is_empty()
}

/// What becomes columns.
#[derive(Default)]
struct Taken(Vec<Expr>);

impl Taken {
    fn name(place: usize) -> String {
        format!("rhumb_below_{place}")
    }

    /// The column that this one becomes.
    fn column(&mut self, expr: Expr) -> Expr {
        let place = self.0.iter().position(|taken| *taken == expr).unwrap_or(self.0.len());
        if place == self.0.len() {
            self.0.push(expr);
        }
        Expr::Column(Column::new_unqualified(Taken::name(place)))
    }

    /// What the rows of a window are divided and sorted by. The query engine may not know rows again that it has sorted by `f(a) > 1`.
    fn keys_of(&mut self, call: &mut Expr) {
        let Some(function) = window_of(call) else { return };
        let by = function.params.order_by.iter_mut().map(|key| &mut key.expr);
        for key in by.chain(&mut function.params.partition_by) {
            if !matches!(key, Expr::Column(_) | Expr::Literal(..)) {
                *key = self.column(key.clone());
            }
        }
    }

    /// The expression with a column for each of its subqueries that `is_taken`.
    fn of(&mut self, expr: Expr, is_taken: &dyn Fn(&Subquery) -> bool) -> Result<Expr> {
        let changed = rewrite(expr, &mut |expr| match expr {
            Expr::ScalarSubquery(subquery) if is_taken(&subquery) => Ok(Transformed::yes(self.column(Expr::ScalarSubquery(subquery)))),
            other => Ok(Transformed::no(other)),
        })?;
        Ok(changed.data)
    }

    fn all_of(&mut self, exprs: &[Expr], is_taken: &dyn Fn(&Subquery) -> bool) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.of(expr.clone(), is_taken)).collect()
    }

    /// The rows of `input` with these columns at their end; `None`: there are none.
    fn below(&self, input: &Arc<LogicalPlan>) -> Result<Option<Arc<LogicalPlan>>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        let mut rows = input.as_ref().clone();
        for (place, expr) in self.0.iter().enumerate() {
            let name = Taken::name(place);
            match expr {
                Expr::ScalarSubquery(subquery) if is_of(subquery, input.schema()) && correlated::is_hard(subquery) => {
                    rows = correlated::joined(&rows, subquery, &name, hoisted)?;
                    columns.push(Expr::Column(Column::new_unqualified(name)));
                }
                other => columns.push(other.clone().alias(name)),
            }
        }
        let made = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(rows))?);
        // The keys of a window may have subqueries of their own.
        Ok(Some(Arc::new(hoisted(&made)?.unwrap_or(made))))
    }
}

/// The rows of `made` by the names of `node`'s columns, without those of its columns whose place `is_left_out`.
fn with_columns_of(node: &LogicalPlan, made: LogicalPlan, is_left_out: impl Fn(usize) -> bool) -> Result<LogicalPlan> {
    let kept = made.schema().columns().into_iter().enumerate().filter(|(place, _)| !is_left_out(*place));
    let named = kept.zip(node.schema().iter()).map(|((_, column), (table, field))| {
        let is_same = column.relation.as_ref() == table && column.name == *field.name();
        let column = Expr::Column(column);
        if is_same { column } else { column.alias_qualified(table.cloned(), field.name()) }
    });
    Projection::try_new(named.collect(), Arc::new(made)).map(LogicalPlan::Projection)
}

/// Rows for which a condition is true.
pub(super) fn filtered(input: LogicalPlan, condition: Expr) -> Result<LogicalPlan> {
    Filter::try_new(condition, Arc::new(input)).map(LogicalPlan::Filter)
}
