//! The values of columns that a statement gives none.

use super::Planning;
use super::assignment::assigned;
use super::evaluate::{Compiled, Scope};
use super::expression::Expressions;
use super::parameters::Parameters;
use crate::context::Facts;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::schema::{Column, TableDescriptor};
use crate::storage::Row;
use crate::types::Datum;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use std::sync::Arc;

/// The values of columns that get none.
#[derive(Debug)]
pub struct Defaults {
    table: Arc<TableDescriptor>,
    /// By column; `None` is NULL.
    values: Vec<Option<Compiled>>,
    given: Vec<bool>,
}

impl Defaults {
    /// The defaults of `table`, of whose columns `columns` are given.
    pub fn of(engine: &Engine, facts: &Facts, table: &Arc<TableDescriptor>, columns: &[usize]) -> SqlResult<Defaults> {
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

    /// A row of defaults; the columns that are given are NULL in it still.
    pub fn row(&self, engine: &Engine) -> SqlResult<Row> {
        self.given
            .iter()
            .enumerate()
            .map(|(column, given)| if *given { Ok(self.table.columns[column].ty.null()) } else { self.value(engine, column) })
            .collect()
    }

    /// The default of one column.
    pub fn value(&self, engine: &Engine, column: usize) -> SqlResult<Datum> {
        let definition = &self.table.columns[column];
        let value = match &self.values[column] {
            _ if definition.hidden => engine.row_ids.next(engine.now()),
            None => definition.ty.null(),
            Some(expr) => expr.evaluate(engine, 1, |_, _| unreachable!("a default has no inputs"))?.pop().expect("one value for one row"),
        };
        assigned(&self.table, column, value)
    }
}

fn parsed(cx: Planning<'_>, text: &str) -> SqlResult<ast::Expr> {
    let invalid = |error| SqlError::corrupted(format!("the default {text}"), error);
    let mut expr = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_expr()).map_err(invalid)?;
    super::rewrite::rewrite(&mut expr, cx.facts)?;
    Ok(expr)
}

fn compiled(cx: Planning<'_>, expr: &ast::Expr, parameters: Parameters) -> SqlResult<Compiled> {
    let mut expressions = Expressions::new(cx, Scope::default(), parameters)?;
    let planned = expressions.plan(expr, None, "DEFAULT")?;
    expressions.finish().compile(planned)
}
