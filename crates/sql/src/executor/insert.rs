//! INSERT as it runs: rows of values, or of a query, with ON CONFLICT and RETURNING.

use super::assignment::assigned;
use super::conflict::Update;
use super::defaults::Defaults;
use super::evaluate::{Compiled, constant};
use super::gathered::Gathered;
use super::operations::{CONDITIONAL, FALLIBLE, Steps, Unfit};
use super::query::QueryPlan;
use super::returning::Projection;
use super::writer::Unsettled;
use super::{Effect, Running, Writer};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::storage::{Batch, OnConflict, Row};
use crate::types::Datum;
use datafusion::logical_expr::Expr;
use futures::StreamExt;
use std::collections::HashSet;

/// An INSERT.
#[derive(Debug)]
pub struct InsertPlan {
    pub writer: Writer,
    pub source: Source,
    pub defaults: Defaults,
    /// The columns that the source gives, in its order.
    pub columns: Vec<usize>,
    pub on_conflict: OnConflict,
    pub update: Option<Update>,
    pub returning: Option<Projection>,
}

/// Where the rows come from.
#[derive(Debug)]
pub enum Source {
    Values(Vec<Vec<Cell>>),
    Query(QueryPlan),
}

/// A value of a row to insert.
#[derive(Debug)]
pub enum Cell {
    /// Known when planned, and already as the column stores it.
    Value(Datum),
    Constant(Expr),
    Computed(Compiled),
    Default,
}

impl InsertPlan {
    /// Runs it.
    pub async fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        let mut done = Done::default();
        match &self.source {
            Source::Values(rows) => {
                let mut batch = Batch::default();
                for cells in rows {
                    batch.push(self.row(cx, cells).await?);
                    if batch.is_full() {
                        self.insert(cx, batch.take(), &mut done).await?;
                    }
                }
                self.insert(cx, batch.take(), &mut done).await?;
            }
            // All rows are read before the first is written, which could otherwise be read again.
            Source::Query(plan) => {
                let mut pages = plan.run(cx, plan.columns()).await?;
                let mut gathered = Gathered::to_write(cx.engine);
                while let Some(page) = pages.next().await {
                    gathered.push(page?)?;
                }
                let (rows, _charge) = gathered.into_rows();
                let mut batch = Batch::default();
                for values in rows {
                    let mut row = self.defaults.row(cx).await?;
                    for (&column, value) in self.columns.iter().zip(values) {
                        row[column] = assigned(&self.writer.table, column, value)?;
                    }
                    batch.push(row);
                    if batch.is_full() {
                        self.insert(cx, batch.take(), &mut done).await?;
                    }
                }
                self.insert(cx, batch.take(), &mut done).await?;
            }
        }
        let mut active = cx.handle.lock().await?;
        self.writer.settle(&mut active, std::mem::take(&mut done.unsettled)).await?;
        drop(active);
        let returning = match &self.returning {
            Some(returning) => returning.rows(cx.engine, &done.rows, cx.parameters)?,
            None => Vec::new(),
        };
        Ok(Effect::Written { count: done.count, returning })
    }

    async fn row(&self, cx: Running<'_>, cells: &[Cell]) -> SqlResult<Row> {
        let mut row = self.defaults.row(cx).await?;
        for (cell, &column) in cells.iter().zip(&self.columns) {
            row[column] = match cell {
                Cell::Value(value) => value.clone(),
                Cell::Constant(expr) => assigned(&self.writer.table, column, constant(expr, cx.parameters)?)?,
                Cell::Computed(expr) => {
                    let value = expr.evaluate(cx.engine, 1, |_, input| &cx.parameters[input])?.pop();
                    assigned(&self.writer.table, column, value.expect("one value for one row"))?
                }
                Cell::Default => self.defaults.value(cx, column).await?,
            };
        }
        Ok(row)
    }

    /// Whether it may become operations: its rows are known beforehand and a key that is taken is an error.
    pub fn fit(&self) -> Result<(), Unfit> {
        match (&self.source, &self.on_conflict) {
            // The rows that they reference are to be looked up.
            _ if self.writer.references() => Err(CONDITIONAL),
            (Source::Values(_), OnConflict::Error) if self.returning.as_ref().is_none_or(Projection::is_plain) => Ok(()),
            (Source::Values(_), OnConflict::Error) => Err(FALLIBLE),
            _ => Err(CONDITIONAL),
        }
    }

    /// The same as operations, if it is [fit](Self::fit).
    pub async fn operations(&self, cx: Running<'_>) -> SqlResult<Result<Steps, Unfit>> {
        let Source::Values(rows) = &self.source else { return Ok(Err(CONDITIONAL)) };
        let mut steps = Steps::new(self.writer.table.clone());
        for cells in rows {
            let row = self.row(cx, cells).await?;
            self.writer.check(cx.engine, 1, |_| &row)?;
            steps.insert(row)?;
        }
        Ok(Ok(steps))
    }

    /// What is told of rows that its operations inserted.
    pub fn operated(&self, rows: Vec<Row>) -> Effect {
        let count = rows.len();
        Effect::Written { count, returning: self.returning.as_ref().map_or_else(Vec::new, |returning| returning.pick(rows)) }
    }

    async fn insert(&self, cx: Running<'_>, rows: Vec<Row>, done: &mut Done) -> SqlResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut active = cx.handle.lock().await?;
        let inserted = self.writer.insert(cx.engine, &mut active, &rows, &self.on_conflict, &mut done.unsettled).await?;
        let changes = match &self.update {
            Some(update) => update.changes(cx, &self.writer.table, &rows, inserted.conflicts)?,
            None => Vec::new(),
        };
        for (_, (existing, _)) in &changes {
            let key: Vec<Datum> = self.writer.table.primary_key.iter().map(|&column| existing[column].clone()).collect();
            if !done.updated.insert(key) {
                let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
                let hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
                return Err(SqlError::new(SqlState::CardinalityViolation, message).with_hint(hint));
            }
        }
        let (positions, pairs): (Vec<usize>, Vec<(Row, Row)>) = changes.into_iter().unzip();
        if !pairs.is_empty() {
            self.writer.update(cx.engine, &mut active, &pairs, &mut done.unsettled).await?;
        }
        done.count += inserted.written.len() + pairs.len();
        if self.returning.is_some() {
            let new = positions.into_iter().zip(pairs.into_iter().map(|(_, new)| new));
            let mut results: Vec<(usize, Row)> =
                inserted.written.iter().map(|&position| (position, rows[position].clone())).chain(new).collect();
            results.sort_by_key(|(position, _)| *position);
            done.rows.extend(results.into_iter().map(|(_, row)| row));
        }
        Ok(())
    }
}

/// What an INSERT did so far.
#[derive(Default)]
struct Done {
    count: usize,
    unsettled: Unsettled,
    /// The rows as they are now, if they are to be returned.
    rows: Vec<Row>,
    /// The primary keys of the rows updated.
    updated: HashSet<Vec<Datum>>,
}
