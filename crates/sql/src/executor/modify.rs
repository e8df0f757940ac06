//! UPDATE and DELETE as they run: the rows are found, by key or by a query, then written.
//!
//! All rows are found before the first is written, so that a statement never meets its own changes.

use super::access::Access;
use super::assignment::{Amendments, Assignments, assigned};
use super::evaluate::Compiled;
use super::gathered::Gathered;
use super::operations::{CONDITIONAL, FALLIBLE, Steps, Unfit};
use super::query::QueryPlan;
use super::returning::{Projection, input_of};
use super::writer::Unsettled;
use super::{Effect, Running, Writer};
use crate::engine::Engine;
use crate::error::SqlResult;
use crate::schema::TableDescriptor;
use crate::storage::{self, Row};
use crate::txn::Active;
use crate::types::Datum;
use futures::StreamExt;
use rhumb_commit::transaction::Transaction;
use std::collections::HashSet;
use std::sync::Arc;

/// An UPDATE or a DELETE.
#[derive(Debug)]
pub struct ModifyPlan {
    pub writer: Writer,
    pub rows: Source,
    pub change: Change,
    pub returning: Option<Projection>,
}

/// Where the rows come from.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each statement")]
pub enum Source {
    Keys {
        access: Access,
        filter: Option<Compiled>,
    },
    /// A query that gives all columns of the row, then the new values of those assigned.
    Query(QueryPlan),
}

/// What becomes of the rows.
#[derive(Debug)]
pub enum Change {
    Delete,
    Update {
        assignments: Assignments,
        /// The same, where the rows need not be read for it.
        amendments: Option<Amendments>,
    },
    /// The columns whose new values the query gives.
    UpdateFromQuery(Vec<usize>),
}

impl ModifyPlan {
    /// Runs it.
    pub async fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        let width = self.writer.table.columns.len();
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
                let mut unsettled = Unsettled::default();
                self.writer.delete(cx.engine, &mut active, &rows, &mut unsettled).await?;
                self.writer.settle(&mut active, unsettled).await?;
                rows
            }
            Change::Update { assignments, .. } => {
                let new =
                    assignments.apply(cx.engine, &self.writer.table, &rows, |row, input| input_of(&rows[row], cx.parameters, input))?;
                self.update(cx, &mut active, rows, new).await?
            }
            Change::UpdateFromQuery(columns) => {
                let mut new = rows.clone();
                for (row, values) in new.iter_mut().zip(values) {
                    for (&column, value) in columns.iter().zip(values) {
                        row[column] = assigned(&self.writer.table, column, value)?;
                    }
                }
                self.update(cx, &mut active, rows, new).await?
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
        let by_key = matches!(&self.rows, Source::Keys { access, .. } if access.answers());
        let unread = match &self.change {
            // Index entries lie where the values of the row say.
            Change::Delete => self.writer.table.indexes.is_empty() && !self.writer.is_referenced(),
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
        let Some(keys) = access.points(&self.writer.table, cx.parameters)? else { return Ok(Err(CONDITIONAL)) };
        let mut steps = Steps::new(self.writer.table.clone());
        match &self.change {
            Change::Delete => keys.into_iter().for_each(|key| steps.delete(key)),
            Change::Update { amendments: Some(amendments), .. } => {
                let Some(changes) = amendments.changes(cx.engine, &self.writer.table, cx.parameters)? else { return Ok(Err(CONDITIONAL)) };
                keys.into_iter().for_each(|key| steps.amend(key, changes.clone()));
            }
            _ => return Ok(Err(CONDITIONAL)),
        }
        Ok(Ok(steps))
    }

    async fn update(&self, cx: Running<'_>, active: &mut Active, old: Vec<Row>, new: Vec<Row>) -> SqlResult<Vec<Row>> {
        let changes: Vec<(Row, Row)> = old.into_iter().zip(new).collect();
        if !changes.is_empty() {
            let mut unsettled = Unsettled::default();
            self.writer.update(cx.engine, active, &changes, &mut unsettled).await?;
            self.writer.settle(active, unsettled).await?;
        }
        Ok(changes.into_iter().map(|(_, new)| new).collect())
    }

    async fn rows_by_keys(&self, cx: Running<'_>, access: &Access, filter: Option<&Compiled>) -> SqlResult<Gathered> {
        let mut rows = access.resolve(&self.writer.table, cx.parameters)?.open(self.writer.table.clone());
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
                let key: Vec<Datum> = self.writer.table.primary_key.iter().map(|&column| row[column].clone()).collect();
                seen.insert(key)
            });
            gathered.push(page)?;
        }
        Ok(gathered)
    }
}

/// Deletes every row of a table.
pub async fn delete_all(engine: &Engine, txn: &mut dyn Transaction, table: Arc<TableDescriptor>) -> SqlResult<()> {
    let mut gathered = Gathered::to_write(engine);
    storage::each_page(txn, &table, |page| gathered.push(page)).await?;
    let (rows, _charge) = gathered.into_rows();
    storage::delete(txn, &table, &rows)
}
