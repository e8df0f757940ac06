//! The values of columns that a statement gives none.

use super::Planning;
use super::expression::Expressions;
use super::parameters::Parameters;
use crate::context::Facts;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::executor::Defaults;
use crate::executor::evaluate::{Compiled, Scope};
use crate::parser;
use crate::schema::{Column, TableDescriptor};
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

/// The defaults of `table`, of whose columns `columns` are given.
pub fn defaults(engine: &Engine, facts: &Facts, table: &Arc<TableDescriptor>, columns: &[usize]) -> SqlResult<Defaults> {
    let cx = Planning { engine, facts, hints: &[] };
    let given = (0..table.columns.len()).map(|column| columns.contains(&column)).collect();
    let expr = |column: &Column| column.default.as_ref().map(|text| parsed(cx, text)).transpose();
    let exprs: Vec<Option<ast::Expr>> = table.columns.iter().map(expr).collect::<SqlResult<_>>()?;
    // All of them are made for one row.
    let parameters = Parameters::of(&exprs, &[])?;
    let value = |expr: Option<ast::Expr>| expr.map(|expr| compiled(cx, &expr, parameters.clone())).transpose();
    let values = exprs.into_iter().map(value).collect::<SqlResult<_>>()?;
    Ok(Defaults { table: table.clone(), values, given })
}

/// True if a default has another value for each row.
pub fn varies_by_row(cx: Planning<'_>, default: &str) -> SqlResult<bool> {
    let expr = parsed(cx, default)?;
    let mut expressions = Expressions::new(cx, Scope::default(), Parameters::of(&expr, &[])?)?;
    let varies = expressions.plan(&expr, None, "DEFAULT")?.is_volatile();
    expressions.finish_definition().map(|_| varies)
}

fn parsed(cx: Planning<'_>, text: &str) -> SqlResult<ast::Expr> {
    let invalid = |error| SqlError::corrupted(format!("the default {text}"), error);
    let mut expr = parser::expression(text).map_err(invalid)?;
    super::rewrite::rewrite(&mut expr, cx.facts)?;
    Ok(expr)
}

fn compiled(cx: Planning<'_>, expr: &ast::Expr, parameters: Parameters) -> SqlResult<Compiled> {
    let mut expressions = Expressions::new(cx, Scope::default(), parameters)?;
    let planned = expressions.plan(expr, None, "DEFAULT")?;
    expressions.finish_definition()?.compile(planned)
}
