//! UPDATE and DELETE: the rows are found, by key or by a query, then written.
//!
//! All rows are found before the first is written, so that a statement never meets its own changes.

use super::access::Access;
use super::assignment::{self, Amendments, Assignments, assigned};
use super::evaluate::{Compiled, Scope};
use super::expression::{Expressions, holds_query};
use super::gathered::Gathered;
use super::operations::{CONDITIONAL, FALLIBLE, Steps, Unfit};
use super::parameters::Parameters;
use super::query::{self, QueryPlan};
use super::returning::{self, Projection, input_of};
use super::{Body, Effect, Plan, Planning, Running, unqualified};
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::parser::fold;
use crate::schema::TableDescriptor;
use crate::storage::{self, Cursor, Row, ScanSpec, SearchedIndex};
use crate::txn::Active;
use crate::types::{Datum, SqlType};
use datafusion::sql::sqlparser::ast::{self, TableFactor};
use futures::StreamExt;
use rhumb_commit::transaction::Transaction;
use std::collections::HashSet;
use std::sync::Arc;

/// An UPDATE or a DELETE.
#[derive(Debug)]
pub struct ModifyPlan {
    table: Arc<TableDescriptor>,
    rows: Source,
    change: Change,
    returning: Option<Projection>,
}

/// Where the rows come from.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each statement")]
enum Source {
    Keys {
        access: Access,
        filter: Option<Compiled>,
    },
    /// A query that gives all columns of the row, then the new values of those assigned.
    Query(QueryPlan),
}

#[derive(Debug)]
enum Change {
    Delete,
    Update {
        assignments: Assignments,
        /// The same, where the rows need not be read for it.
        amendments: Option<Amendments>,
    },
    /// The columns whose new values the query gives.
    UpdateFromQuery(Vec<usize>),
}

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
    let values_query = update.assignments.iter().any(|assignment| holds_query(&assignment.value));
    if target.is_simple() && !values_query {
        return plan_by_keys(cx, target, &update, Some(&update.assignments), update.returning.clone());
    }
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for assignment in &update.assignments {
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
        return plan_by_keys(cx, target, &delete, None, delete.returning.clone());
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

fn plan_by_keys(
    cx: Planning<'_>,
    target: Target,
    statement: &impl ast::Visit,
    assignments: Option<&[ast::Assignment]>,
    returning: Option<Vec<ast::SelectItem>>,
) -> SqlResult<Plan> {
    let Target { table, name, selection, .. } = target;
    let scope = Scope::default().with(&name, &table.arrow_schema());
    let mut expressions = Expressions::new(cx, scope, Parameters::of(statement, cx.hints)?)?;
    let filter = selection.as_ref().map(|selection| expressions.plan(selection, Some(&SqlType::Bool), "WHERE")).transpose()?;
    let assignments = assignments.map(|assignments| assignment::plan(&mut expressions, &table, assignments)).transpose()?;
    let returning = returning.map(|items| returning::plan(&mut expressions, &table, &name, items)).transpose()?;
    let access = Access::of(&table, filter.as_slice());

    let compiler = expressions.finish();
    let filter = filter.map(|filter| compiler.compile(filter)).transpose()?;
    let change = match assignments {
        None => Change::Delete,
        Some(assignments) => {
            let amendments = Amendments::compile(&assignments, &table, &compiler)?;
            Change::Update { assignments: Assignments::compile(assignments, &compiler)?, amendments }
        }
    };
    let returning = returning.map(|planned| planned.compile(&compiler, &table)).transpose()?;
    let columns = returning.as_ref().map(|returning| returning.columns.clone());
    let body = Body::Modify(ModifyPlan { table: table.clone(), rows: Source::Keys { access, filter }, change, returning });
    Ok(Plan { tables: vec![table], once: false, parameters: compiler.parameters, columns, body })
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
    let query::Names { mut tables, sources, .. } = query::names(cx, active, &statement, Some(&table.name)).await?;
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
    tables.push(table.clone());
    let body = Body::Modify(ModifyPlan { table, rows: Source::Query(plan), change, returning });
    Ok(Plan { tables, once: false, parameters: compiler.parameters, columns, body })
}

impl ModifyPlan {
    /// Runs it.
    pub async fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        let width = self.table.columns.len();
        let gathered = match &self.rows {
            Source::Keys { access, filter } => self.rows_by_keys(cx, access, filter.as_ref()).await?,
            Source::Query(plan) => self.rows_by_query(cx, plan).await?,
        };
        let (rows, _charge) = gathered.into_rows();
        let split = |mut row: Row| {
            let values = row.split_off(width);
            (row, values)
        };
        let (rows, values): (Vec<Row>, Vec<Row>) = rows.into_iter().map(split).unzip();
        let mut active = cx.handle.lock().await?;
        let results = match &self.change {
            Change::Delete => {
                storage::delete(active.txn.as_mut(), &self.table, &rows)?;
                rows
            }
            Change::Update { assignments, .. } => {
                let new = assignments.apply(cx.engine, &self.table, &rows, |row, input| input_of(&rows[row], cx.parameters, input))?;
                self.update(active.txn.as_mut(), rows, new).await?
            }
            Change::UpdateFromQuery(columns) => {
                let mut new = rows.clone();
                for (row, values) in new.iter_mut().zip(values) {
                    for (&column, value) in columns.iter().zip(values) {
                        row[column] = assigned(&self.table, column, value)?;
                    }
                }
                self.update(active.txn.as_mut(), rows, new).await?
            }
        };
        drop(active);
        let returning = match &self.returning {
            Some(returning) => returning.rows(cx.engine, &results, cx.parameters)?,
            None => Vec::new(),
        };
        Ok(Effect::Written { count: results.len(), returning })
    }

    /// What is told of the rows that its operations met.
    pub fn operated(&self, rows: Vec<Row>) -> Effect {
        let count = rows.len();
        Effect::Written { count, returning: self.returning.as_ref().map_or_else(Vec::new, |returning| returning.pick(rows)) }
    }

    /// Whether it may become operations: it touches rows by their primary keys and nothing that it writes depends on what they hold.
    pub fn fit(&self) -> Result<(), Unfit> {
        let by_key = matches!(&self.rows, Source::Keys { access, .. } if access.is_of_points() && access.is_complete());
        let unread = match &self.change {
            // Index entries lie where the values of the row say.
            Change::Delete => self.table.indexes.is_empty(),
            Change::Update { amendments, .. } => amendments.is_some(),
            Change::UpdateFromQuery(_) => false,
        };
        match self.returning.as_ref().is_none_or(Projection::is_plain) {
            _ if !by_key || !unread => Err(CONDITIONAL),
            true => Ok(()),
            false => Err(FALLIBLE),
        }
    }

    /// The same as operations, if it is [fit](Self::fit).
    pub fn operations(&self, cx: Running<'_>) -> SqlResult<Result<Steps, Unfit>> {
        let Source::Keys { access, .. } = &self.rows else { return Ok(Err(CONDITIONAL)) };
        let Some(keys) = access.points(&self.table, cx.parameters)? else { return Ok(Err(CONDITIONAL)) };
        let mut steps = Steps::new(self.table.clone());
        match &self.change {
            Change::Delete => keys.into_iter().for_each(|key| steps.delete(key)),
            Change::Update { amendments: Some(amendments), .. } => {
                let Some(changes) = amendments.changes(cx.engine, &self.table, cx.parameters)? else { return Ok(Err(CONDITIONAL)) };
                keys.into_iter().for_each(|key| steps.amend(key, changes.clone()));
            }
            _ => return Ok(Err(CONDITIONAL)),
        }
        Ok(Ok(steps))
    }

    async fn update(&self, txn: &mut dyn Transaction, old: Vec<Row>, new: Vec<Row>) -> SqlResult<Vec<Row>> {
        let changes: Vec<(Row, Row)> = old.into_iter().zip(new).collect();
        if !changes.is_empty() {
            storage::update(txn, &self.table, &changes).await?;
        }
        Ok(changes.into_iter().map(|(_, new)| new).collect())
    }

    async fn rows_by_keys(&self, cx: Running<'_>, access: &Access, filter: Option<&Compiled>) -> SqlResult<Gathered> {
        let mut rows = access.resolve(&self.table, cx.parameters)?.open(self.table.clone());
        let mut gathered = Gathered::to_write(cx.engine);
        let mut active = cx.handle.lock().await?;
        loop {
            let mut page = rows.next_page(active.txn.as_mut()).await?;
            if page.is_empty() {
                return Ok(gathered);
            }
            if let Some(filter) = filter {
                let kept = filter.select(cx.engine, page.len(), |row, input| input_of(&page[row], cx.parameters, input))?;
                let mut flags = kept.into_iter();
                page.retain(|_| flags.next() == Some(true));
            }
            gathered.push(page)?;
        }
    }

    /// A row that joins with several others is changed once, by the first of them.
    async fn rows_by_query(&self, cx: Running<'_>, plan: &QueryPlan) -> SqlResult<Gathered> {
        let mut pages = plan.run(cx, plan.columns()).await?;
        let (mut gathered, mut seen) = (Gathered::to_write(cx.engine), HashSet::new());
        while let Some(page) = pages.next().await {
            let mut page = page?;
            page.retain(|row| {
                let key: Vec<Datum> = self.table.primary_key.iter().map(|&column| row[column].clone()).collect();
                seen.insert(key)
            });
            gathered.push(page)?;
        }
        Ok(gathered)
    }
}

/// Deletes every row of a table.
pub async fn delete_all(engine: &Engine, txn: &mut dyn Transaction, table: Arc<TableDescriptor>) -> SqlResult<()> {
    let mut cursor = Cursor::open(table.clone(), ScanSpec::all(SearchedIndex::Primary))?;
    let mut gathered = Gathered::to_write(engine);
    loop {
        let page = cursor.next_page(txn).await?;
        if page.is_empty() {
            let (rows, _charge) = gathered.into_rows();
            return storage::delete(txn, &table, &rows);
        }
        gathered.push(page)?;
    }
}
