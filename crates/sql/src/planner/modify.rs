//! UPDATE and DELETE: the rows are found, by key or by a query, then written.
//!
//! All rows are found before the first is written, so that a statement never meets its own changes.

use super::Planning;
use super::assignment;
use super::expression::{Expressions, holds_query};
use super::parameters::Parameters;
use super::query;
use super::returning;
use super::writer::{Existing, writer};
use crate::error::{SqlError, SqlResult};
use crate::executor::access::Access;
use crate::executor::evaluate::Scope;
use crate::executor::modify::{Change, ModifyPlan, Source};
use crate::executor::{Body, Plan};
use crate::parser::{fold, unqualified};
use crate::schema::TableDescriptor;
use crate::txn::Active;
use crate::types::SqlType;
use datafusion::sql::sqlparser::ast::{self, TableFactor};
use rhumb_generic::Part;
use std::sync::Arc;

/// A statement's target and its conditions.
struct Target {
    table: Arc<TableDescriptor>,
    /// What the statement calls the table.
    name: String,
    relation: TableFactor,
    others: Vec<ast::TableWithJoins>,
    selection: Option<ast::Expr>,
}

/// Plans an UPDATE.
pub async fn plan_update(cx: Planning<'_>, active: &mut Active, update: ast::Update) -> SqlResult<Plan> {
    if update.limit.is_some() || !update.order_by.is_empty() || !update.table.joins.is_empty() {
        return Err(SqlError::syntax("UPDATE takes no ORDER BY, LIMIT or JOIN"));
    }
    let others = match update.from.clone() {
        None => Vec::new(),
        Some(ast::UpdateTableFromKind::BeforeSet(from) | ast::UpdateTableFromKind::AfterSet(from)) => from,
    };
    let target = target(cx, active, update.table.relation.clone(), others, update.selection.clone()).await?;
    let assignments = assignment::written_out(&update.assignments, &target.table, cx.facts)?;
    let values_query = assignments.iter().any(|assignment| holds_query(&assignment.value));
    if target.is_simple() && !values_query {
        return plan_by_keys(cx, active, target, &update, Some(&assignments), update.returning.clone()).await;
    }
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for assignment in &assignments {
        let (column, value) = assignment::target(&target.table, assignment)?;
        columns.push(column);
        values.push(value.clone());
    }
    plan_by_query(cx, active, target, values, Change::UpdateFromQuery(columns), update.returning).await
}

/// Plans a DELETE.
pub async fn plan_delete(cx: Planning<'_>, active: &mut Active, delete: ast::Delete) -> SqlResult<Plan> {
    if delete.limit.is_some() || !delete.order_by.is_empty() || !delete.tables.is_empty() {
        return Err(SqlError::syntax("DELETE takes no ORDER BY or LIMIT, and one table"));
    }
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
    let [from] = from.as_slice() else { return Err(SqlError::syntax("DELETE takes one table")) };
    let others = delete.using.clone().unwrap_or_default();
    let target = target(cx, active, from.relation.clone(), others, delete.selection.clone()).await?;
    if target.is_simple() && from.joins.is_empty() {
        return plan_by_keys(cx, active, target, &delete, None, delete.returning.clone()).await;
    }
    plan_by_query(cx, active, target, Vec::new(), Change::Delete, delete.returning).await
}

async fn target(
    cx: Planning<'_>,
    active: &mut Active,
    relation: TableFactor,
    others: Vec<ast::TableWithJoins>,
    selection: Option<ast::Expr>,
) -> SqlResult<Target> {
    let TableFactor::Table { name, alias, .. } = &relation else {
        return Err(SqlError::syntax("only a table can be updated or deleted from"));
    };
    let table_name = fold(&unqualified(name, &cx.facts.database)?);
    let table = active.catalog.table(active.txn.as_mut(), &cx.facts.database, &table_name).await?;
    let name = alias.as_ref().map_or_else(|| table.name.clone(), |alias| fold(&alias.name));
    Ok(Target { table, name, relation, others, selection })
}

impl Target {
    /// True if no other table has a say.
    fn is_simple(&self) -> bool {
        self.others.is_empty() && !self.selection.as_ref().is_some_and(holds_query)
    }
}

async fn plan_by_keys(
    cx: Planning<'_>,
    active: &mut Active,
    target: Target,
    statement: &(impl Part + Sync),
    assignments: Option<&[ast::Assignment]>,
    returning: Option<Vec<ast::SelectItem>>,
) -> SqlResult<Plan> {
    let Target { table, name, selection, .. } = target;
    let scope = Scope::default().with(&name, &table.arrow_schema());
    let mut expressions = Expressions::new(cx, scope, Parameters::of(statement, cx.hints)?)?;
    let filter = selection.as_ref().map(|selection| expressions.plan_condition(selection, "WHERE")).transpose()?;
    let assignments = assignments.map(|assignments| assignment::plan(&mut expressions, &table, assignments)).transpose()?;
    let returning = returning.map(|items| returning::plan(&mut expressions, &table, &name, items)).transpose()?;
    let access = Access::of(&table, filter.as_slice());

    let compiler = expressions.finish();
    // What the keys answer is compiled all the same: there may be an error in it.
    let filter = filter.map(|filter| compiler.compile(filter)).transpose()?.filter(|_| !access.answers());
    let change = match assignments {
        None => Change::Delete,
        Some(assignments) => {
            let amendments = assignment::amendments(&assignments, &table, &compiler)?;
            Change::Update { assignments: assignment::compile(assignments, &compiler)?, amendments }
        }
    };
    let returning = returning.map(|planned| planned.compile(&compiler, &table)).transpose()?;
    let columns = returning.as_ref().map(|returning| returning.columns.clone());
    let (writer, mut tables) = writer(cx, active, &table, Existing::Changed).await?;
    tables.push(table);
    let body = Body::Modify(ModifyPlan { writer, rows: Source::Keys { access, filter }, change, returning });
    Ok(Plan::of(tables, compiler.parameters, columns, body))
}

async fn plan_by_query(
    cx: Planning<'_>,
    active: &mut Active,
    target: Target,
    values: Vec<ast::Expr>,
    change: Change,
    returning: Option<Vec<ast::SelectItem>>,
) -> SqlResult<Plan> {
    let Target { table, name, relation, others, selection } = target;
    let qualifier = ast::Ident::with_quote('"', name.clone());
    let row = table.columns.iter().map(|column| {
        let column = ast::Ident::with_quote('"', column.name.clone());
        ast::SelectItem::UnnamedExpr(ast::Expr::CompoundIdentifier(vec![qualifier.clone(), column]))
    });
    let values = values.into_iter().enumerate().map(|(position, expr)| {
        // A name that no column can have.
        let alias = ast::Ident::with_quote('"', format!("{}{position}", crate::parser::names::MARK));
        ast::SelectItem::ExprWithAlias { expr, alias }
    });
    let from = std::iter::once(ast::TableWithJoins { relation, joins: Vec::new() }).chain(others).collect();
    let statement = ast::Statement::Query(Box::new(crate::parser::names::select(row.chain(values).collect(), from, selection)));
    let query::Names { mut tables, sources, once } = query::names(cx, active, &statement, Some(&table.name)).await?;
    let (plan, parameters) = query::logical(cx, sources, statement)?;

    let hints: Vec<Option<SqlType>> = parameters.finish().into_iter().map(Some).collect();
    let cx = Planning { hints: &hints, ..cx };
    let scope = Scope::default().with(&name, &table.arrow_schema());
    let items = returning.clone().unwrap_or_default();
    let mut expressions = Expressions::new(cx, scope, Parameters::of(&items, cx.hints)?)?;
    let returning = returning.map(|items| returning::plan(&mut expressions, &table, &name, items)).transpose()?;
    let compiler = expressions.finish();
    let returning = returning.map(|planned| planned.compile(&compiler, &table)).transpose()?;
    let columns = returning.as_ref().map(|returning| returning.columns.clone());
    let (writer, others) = writer(cx, active, &table, Existing::Changed).await?;
    tables.extend(others);
    tables.push(table);
    let body = Body::Modify(ModifyPlan { writer, rows: Source::Query(plan), change, returning });
    Ok(Plan { once, ..Plan::of(tables, compiler.parameters, columns, body) })
}
