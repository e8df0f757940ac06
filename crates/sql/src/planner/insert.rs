//! INSERT: rows of expressions, or of a query, with ON CONFLICT and RETURNING.

use super::Planning;
use super::conflict;
use super::defaults::defaults;
use super::expression::{Compiler, Expressions, check_assigned, holds_query, is_default};
use super::parameters::Parameters;
use super::query;
use super::returning;
use super::writer::{Existing, writer};
use crate::engine::analyze;
use crate::engine::limits::FOLDED_BYTES_MAX;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::assignment::assigned;
use crate::executor::evaluate::{Scope, constant};
use crate::executor::insert::{Cell, InsertPlan, Source};
use crate::executor::{Body, Plan};
use crate::parser::fold;
use crate::schema::{Identity, TableDescriptor};
use crate::txn::Active;
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast;

/// Plans an INSERT.
pub async fn plan(cx: Planning<'_>, active: &mut Active, insert: ast::Insert) -> SqlResult<Plan> {
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::unsupported("INSERT into anything but a table is not supported"));
    };
    let name = fold(&crate::parser::unqualified(name, &cx.facts.database)?);
    let table = active.catalog.table(active.txn.as_mut(), &cx.facts.database, &name).await?;
    let columns = target_columns(&table, &insert.columns)?;
    let alias = insert.table_alias.as_ref().map_or_else(|| table.name.clone(), |alias| fold(&alias.alias));

    let (mut tables, mut hints) = (vec![table.clone()], cx.hints.to_vec());
    let (mut query_plan, mut once) = (None, false);
    let values = match insert.source.as_deref() {
        None => vec![Vec::new()],
        Some(query) => match plain_values(query) {
            Some(values) => values,
            None => {
                let mut query = Box::new(query.clone());
                crate::parser::names::name_columns(&mut query);
                let statement = ast::Statement::Query(query);
                let names = query::names(cx, active, &statement, None).await?;
                let (plan, parameters) = query::logical(cx, names.sources, statement)?;
                tables.extend(names.tables);
                once = names.once;
                hints = parameters.finish().into_iter().map(Some).collect();
                query_plan = Some(plan);
                Vec::new()
            }
        },
    };
    let cx = Planning { hints: &hints, ..cx };
    let parameters = Parameters::of(&insert, cx.hints)?;

    // One scope serves all expressions: VALUES see none of its columns, RETURNING and DO UPDATE name them.
    let mut cells = Expressions::new(cx, Scope::default(), parameters.clone())?;
    let planned_values = plan_values(&mut cells, &table, &columns, &values)?;
    let scope = Scope::default().with(&alias, &table.arrow_schema());
    let on_conflict = conflict::conflict_of(&table, insert.on.as_ref())?;
    let mut updates = Expressions::new(cx, scope.clone().with("excluded", &table.arrow_schema()), cells.parameters())?;
    let planned_update = conflict::plan(&mut updates, &table, insert.on.as_ref())?;
    let mut outputs = Expressions::new(cx, scope, updates.parameters())?;
    let planned_returning = insert.returning.map(|items| returning::plan(&mut outputs, &table, &alias, items)).transpose()?;

    let types = outputs.parameters();
    let (cells, updates, outputs) = (cells.finish_with(&types), updates.finish_with(&types), outputs.finish());
    let returning = planned_returning.map(|planned| planned.compile(&outputs, &table)).transpose()?;
    let update = planned_update.map(|planned| planned.compile(&updates)).transpose()?;
    let mut asked: Vec<usize> = Vec::new();
    let (columns, source) = match query_plan {
        Some(plan) => {
            let columns = given(&table, columns, plan.columns().len(), &insert.columns)?;
            check_generated(&table, &columns, &[])?;
            for (ty, &column) in plan.told_types().into_iter().zip(&columns) {
                ty.map_or(Ok(()), |ty| check_assigned(&ty, &table.columns[column]))?;
            }
            (columns, Source::Query(plan))
        }
        None => {
            let width = values.first().map_or(0, Vec::len);
            let columns = given(&table, columns, width, &insert.columns)?;
            check_generated(&table, &columns, &planned_values)?;
            let by_default = |(place, _): &(usize, &usize)| planned_values.iter().any(|row| row.get(*place).is_some_and(Option::is_none));
            asked.extend(columns.iter().enumerate().filter(by_default).map(|(_, &column)| column));
            let rows = planned_values.into_iter().map(|row| compile_row(&cells, &table, &columns, row)).collect::<SqlResult<_>>()?;
            (columns, Source::Values(rows))
        }
    };
    let defaults = defaults(cx, active, &table, &columns, &asked).await?;
    let result_columns = returning.as_ref().map(|returning| returning.columns.clone());
    let existing = if update.is_some() { Existing::Changed } else { Existing::Kept };
    let (writer, others) = writer(cx, active, &table, existing).await?;
    tables.extend(others);
    let sequences = defaults.sequences().collect();
    let body = Body::Insert(InsertPlan { writer, source, defaults, columns, on_conflict, update, returning });
    Ok(Plan { sequences, once, ..Plan::of(tables, outputs.parameters, result_columns, body) })
}

/// The rows of `VALUES (…), (…)` with nothing around them.
fn plain_values(query: &ast::Query) -> Option<Vec<Vec<ast::Expr>>> {
    let plain = query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    match query.body.as_ref() {
        ast::SetExpr::Values(values) if plain => {
            let rows: Vec<Vec<ast::Expr>> = values.rows.iter().map(|row| row.content.clone()).collect();
            (!rows.iter().flatten().any(holds_query)).then_some(rows)
        }
        _ => None,
    }
}

fn target_columns(table: &TableDescriptor, names: &[ast::ObjectName]) -> SqlResult<Vec<usize>> {
    if names.is_empty() {
        return Ok(table.visible_columns().collect());
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let name = name.0.last().and_then(ast::ObjectNamePart::as_ident).map(fold).unwrap_or_default();
        let column = table.column(&name).filter(|&column| !table.columns[column].hidden).ok_or_else(|| {
            SqlError::new(SqlState::UndefinedColumn, format!("column \"{name}\" of relation \"{}\" does not exist", table.name))
        })?;
        if columns.contains(&column) {
            return Err(SqlError::duplicate_column(&name));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// The columns that get a value. Without a list of columns the source may give fewer than there are.
fn given(table: &TableDescriptor, mut columns: Vec<usize>, width: usize, names: &[ast::ObjectName]) -> SqlResult<Vec<usize>> {
    if width > columns.len() {
        return Err(SqlError::syntax("INSERT has more expressions than target columns"));
    }
    if width < columns.len() && !names.is_empty() && width > 0 {
        return Err(SqlError::syntax("INSERT has more target columns than expressions"));
    }
    debug_assert!(columns.len() <= table.columns.len());
    columns.truncate(width);
    Ok(columns)
}

/// Refuses values for columns that only their sequences give values. Error 428C9.
fn check_generated(table: &TableDescriptor, columns: &[usize], rows: &[Vec<PlannedCell>]) -> SqlResult<()> {
    for (place, &column) in columns.iter().enumerate() {
        let definition = &table.columns[column];
        if definition.identity != Some(Identity::Always)
            || rows.iter().all(|row| row.get(place).is_some_and(Option::is_none)) && !rows.is_empty()
        {
            continue;
        }
        return Err(SqlError::new(
            SqlState::GeneratedAlways,
            format!("cannot insert a non-DEFAULT value into column \"{}\"", definition.name),
        )
        .with_detail(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", definition.name)));
    }
    Ok(())
}

/// A cell before parameters have their types: `None` is DEFAULT.
type PlannedCell = Option<Expr>;

fn plan_values(
    expressions: &mut Expressions<'_>,
    table: &TableDescriptor,
    columns: &[usize],
    rows: &[Vec<ast::Expr>],
) -> SqlResult<Vec<Vec<PlannedCell>>> {
    let width = rows.first().map_or(0, Vec::len);
    if rows.iter().any(|row| row.len() != width) {
        return Err(SqlError::syntax("VALUES lists must all be the same length"));
    }
    rows.iter()
        .map(|row| {
            row.iter()
                .enumerate()
                .map(|(position, expr)| {
                    if is_default(expr) {
                        return Ok(None);
                    }
                    let planned = match columns.get(position) {
                        Some(&column) => expressions.plan_assigned(expr, &table.columns[column], "VALUES"),
                        None => expressions.plan(expr, None, "VALUES"),
                    };
                    planned.map(Some)
                })
                .collect()
        })
        .collect()
}

fn compile_row(compiler: &Compiler<'_>, table: &TableDescriptor, columns: &[usize], row: Vec<PlannedCell>) -> SqlResult<Vec<Cell>> {
    row.into_iter()
        .zip(columns)
        .map(|(cell, &column)| {
            Ok(match cell {
                None => Cell::Default,
                Some(Expr::Literal(value, _)) => Cell::Value(assigned(table, column, value)?),
                Some(expr @ Expr::Placeholder(_)) => Cell::Constant(expr),
                Some(expr) if analyze::is_immutable(&expr) && !analyze::has_parameter(&expr) => {
                    let value = assigned(table, column, constant(&expr, &[])?)?;
                    // A plan is kept; a value that is large is made again whenever it is inserted.
                    if value.size() as u64 > FOLDED_BYTES_MAX { Cell::Constant(expr) } else { Cell::Value(value) }
                }
                Some(expr) => Cell::Computed(compiler.compile(expr)?),
            })
        })
        .collect()
}
