//! What plans and expressions refer to around them.

use crate::engine::tree::{any, rewrite};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use std::sync::Arc;

/// The columns around a plan that it refers to, each once.
pub fn references(plan: &LogicalPlan) -> Vec<Column> {
    let mut found = own_references(plan);
    for column in plan.inputs().into_iter().flat_map(references) {
        if !found.contains(&column) {
            found.push(column);
        }
    }
    found
}

/// True if it refers to any.
pub fn refers(plan: &LogicalPlan) -> bool {
    !own_references(plan).is_empty() || plan.inputs().into_iter().any(refers)
}

/// The same of the expressions of one node.
pub fn own_references(plan: &LogicalPlan) -> Vec<Column> {
    let mut found = Vec::new();
    for column in plan.expressions().iter().flat_map(|expr| references_of(expr, plan)) {
        if !found.contains(&column) {
            found.push(column);
        }
    }
    found
}

/// The same of one expression of a node. What a subquery within refers to may be a column of the node's own rows.
pub fn references_of(expr: &Expr, node: &LogicalPlan) -> Vec<Column> {
    let mut found = Vec::new();
    any(expr, &mut |expr| {
        match expr {
            Expr::OuterReferenceColumn(_, column) => found.push(column.clone()),
            other => {
                let within = subquery_of(other).map(|subquery| references(&subquery.subquery)).unwrap_or_default();
                found.extend(within.into_iter().filter(|column| !has_column(node, column)));
            }
        }
        false
    });
    found
}

/// True if the rows that a node reads have the column.
fn has_column(node: &LogicalPlan, column: &Column) -> bool {
    node.inputs().iter().any(|input| input.schema().has_column(column))
}

/// The subquery that an expression is, or asks.
pub fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::InSubquery(within) => Some(&within.subquery),
        Expr::SetComparison(within) => Some(&within.subquery),
        Expr::Exists(within) => Some(&within.subquery),
        _ => None,
    }
}

/// A subquery of `node` with other names for the columns around that node; another expression as it is.
pub fn with_references(expr: Expr, node: &LogicalPlan, key_of: &dyn Fn(&Column) -> Option<Column>) -> Result<Transformed<Expr>> {
    let key_of = |column: &Column| if has_column(node, column) { None } else { key_of(column) };
    match subquery_of(&expr) {
        Some(subquery) if references(&subquery.subquery).iter().any(|column| key_of(column).is_some()) => {}
        _ => return Ok(Transformed::no(expr)),
    }
    let renamed = |subquery: Subquery| {
        let plan = subquery.subquery.as_ref().clone().transform_down(|plan| {
            let node = plan.clone();
            plan.map_expressions(|expr| {
                rewrite(expr, &mut |expr| match expr {
                    Expr::OuterReferenceColumn(field, column) => Ok(match key_of(&column) {
                        Some(key) => Transformed::yes(Expr::OuterReferenceColumn(field, key)),
                        None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
                    }),
                    other => with_references(other, &node, &key_of),
                })
            })
        })?;
        let outer_ref_columns = plan.data.all_out_ref_exprs();
        Ok::<Subquery, DataFusionError>(Subquery { subquery: Arc::new(plan.data), outer_ref_columns, spans: subquery.spans })
    };
    Ok(Transformed::yes(match expr {
        Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(renamed(subquery)?),
        Expr::InSubquery(mut within) => {
            within.subquery = renamed(within.subquery)?;
            Expr::InSubquery(within)
        }
        Expr::SetComparison(mut within) => {
            within.subquery = renamed(within.subquery)?;
            Expr::SetComparison(within)
        }
        Expr::Exists(mut within) => {
            within.subquery = renamed(within.subquery)?;
            Expr::Exists(within)
        }
        other => other,
    }))
}
