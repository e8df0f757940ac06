//! SELECT of expressions without a table: one row. Clients send `SELECT 1` to learn whether the server is there.

use super::Planning;
use super::expression::{Expressions, holds_query};
use super::parameters::Parameters;
use crate::engine::analyze;
use crate::error::SqlResult;
use crate::executor::evaluate::Scope;
use crate::executor::result::ResultColumn;
use crate::executor::singleton::SingletonPlan;
use crate::executor::{Body, Plan};
use crate::parser::names;
use datafusion::sql::sqlparser::ast::{self, SelectItem};
use std::sync::Arc;

/// Plans a query here, or says `None`: it is another one.
pub fn plan(cx: Planning<'_>, query: &ast::Query) -> SqlResult<Option<Plan>> {
    let Some(items) = items_of(query) else { return Ok(None) };
    let mut expressions = Expressions::new(cx, Scope::default(), Parameters::of(query, cx.hints)?)?;
    let mut planned = Vec::with_capacity(items.len());
    for (name, expr) in items {
        let expr = expressions.plan_any(expr, None)?;
        if !analyze::is_scalar(&expr) {
            return Ok(None);
        }
        planned.push((name, expr));
    }
    let compiler = expressions.finish();
    let row = planned
        .into_iter()
        .map(|(name, expr)| {
            let ty = compiler.type_of(&expr)?;
            Ok((compiler.compile(expr)?, ResultColumn { name, ty }))
        })
        .collect::<SqlResult<Vec<_>>>()?;
    let columns: Arc<[ResultColumn]> = row.iter().map(|(_, column)| column.clone()).collect();
    let body = Body::Singleton(SingletonPlan(row));
    Ok(Some(Plan::of(Vec::new(), compiler.parameters, Some(columns), body)))
}

/// The named expressions of `SELECT …` with nothing after them.
fn items_of(query: &ast::Query) -> Option<Vec<(String, &ast::Expr)>> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else { return None };
    if names::select(select.projection.clone(), Vec::new(), None) != *query {
        return None;
    }
    select
        .projection
        .iter()
        .map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if !holds_query(expr) => Some((names::shown(&crate::parser::fold(alias)), expr)),
            _ => None,
        })
        .collect()
}
