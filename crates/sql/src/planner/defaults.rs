//! The values of columns that a statement gives none.

use super::Planning;
use super::expression::Expressions;
use super::parameters::Parameters;
use super::sequence::take_draws;
use crate::error::{SqlError, SqlResult};
use crate::executor::Defaults;
use crate::executor::defaults::Default;
use crate::executor::evaluate::Scope;
use crate::parser;
use crate::schema::TableDescriptor;
use crate::sequence::Draw;
use crate::txn::Active;
use crate::types::SqlType;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

/// The expression of a default, and what is drawn for it.
type Parsed = (ast::Expr, Vec<Draw>);

/// The defaults of `table`, of whose columns `columns` are given; of these only those `asked` for.
pub async fn defaults(
    cx: Planning<'_>,
    active: &mut Active,
    table: &Arc<TableDescriptor>,
    columns: &[usize],
    asked: &[usize],
) -> SqlResult<Defaults> {
    let given = (0..table.columns.len()).map(|column| columns.contains(&column)).collect();
    let mut parsed = Vec::with_capacity(table.columns.len());
    for (position, column) in table.columns.iter().enumerate() {
        if columns.contains(&position) && !asked.contains(&position) {
            parsed.push(None);
            continue;
        }
        let text = table.identity_sequence(position).map(parser::next_number).or_else(|| column.default.clone());
        parsed.push(match text {
            Some(text) => Some(parse(cx, active, &text).await?),
            None => None,
        });
    }
    // All of them are made for one row.
    let exprs: Vec<ast::Expr> = parsed.iter().flatten().map(|(expr, _)| expr.clone()).collect();
    let most = parsed.iter().flatten().map(|(_, draws)| draws.len()).max().unwrap_or(0);
    let parameters = Parameters::of(&exprs, &numbers(most))?;
    let compiled = |(expr, draws): Parsed| {
        let mut expressions = Expressions::new(Planning { hints: &[], ..cx }, Scope::default(), parameters.clone())?;
        let planned = expressions.plan(&expr, None, "DEFAULT")?;
        Ok(Default { expr: expressions.finish().compile(planned)?, draws })
    };
    let values = parsed.into_iter().map(|parsed| parsed.map(compiled).transpose()).collect::<SqlResult<_>>()?;
    Ok(Defaults { table: table.clone(), values, given })
}

/// True if a default has another value for each row.
pub async fn varies_by_row(cx: Planning<'_>, active: &mut Active, default: &str) -> SqlResult<bool> {
    let (expr, draws) = parse(cx, active, default).await?;
    let mut expressions = Expressions::new(Planning { hints: &[], ..cx }, Scope::default(), Parameters::of(&expr, &numbers(draws.len()))?)?;
    Ok(expressions.plan(&expr, None, "DEFAULT")?.is_volatile() || !draws.is_empty())
}

/// Errors 42P02 for parameters, and of what is drawn.
async fn parse(cx: Planning<'_>, active: &mut Active, text: &str) -> SqlResult<Parsed> {
    let invalid = |error| SqlError::corrupted(format!("the default {text}"), error);
    let mut expr = parser::expression(text).map_err(invalid)?;
    if !Parameters::of(&expr, &[])?.is_empty() {
        return Err(SqlError::undefined_parameter(1));
    }
    let draws = take_draws(cx, active, &mut expr, 0).await?.draws;
    super::rewrite::rewrite(&mut expr, cx.facts)?;
    Ok((expr, draws))
}

/// The types of so many numbers.
fn numbers(count: usize) -> Vec<Option<SqlType>> {
    vec![Some(SqlType::Int8); count]
}
