//! COPY … FROM STDIN: rows arrive in pieces, are parsed line by line and inserted in bounded batches.
//!
//! A COPY is one statement and so one transaction, or part of one: all of its rows are there in the end, or none.

mod lines;

use super::transaction::TransactionHandle;
use super::{Company, Open, Outcome, Session, State};
use crate::catalog::TableDescriptor;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parse::{CopyFormat, CopyFrom, fold};
use crate::plan::{Defaults, unqualified};
use crate::table::{OnConflict, Row, insert};
use crate::types::parse_text;
use bytes::BytesMut;
use lines::Lines;
use rhumb_commit::transaction::ReadMode;
use std::sync::Arc;

/// The rows inserted in one round.
const BATCH_ROWS: usize = 1_000;

/// A COPY under way.
pub struct CopyIn {
    handle: TransactionHandle,
    table: Arc<TableDescriptor>,
    /// The positions of the columns that the data gives, in its order.
    columns: Vec<usize>,
    defaults: Defaults,
    format: CopyFormat,
    lines: Lines,
    header_pending: bool,
    line: usize,
    batch: Vec<Row>,
    rows: usize,
}

impl CopyIn {
    /// The number of columns in a row of the data.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }
}

impl Session {
    pub(super) async fn begin_copy(&mut self, copy: &CopyFrom, company: Company) -> SqlResult<Outcome> {
        if matches!(self.state, State::Idle) && company == Company::Alone {
            if self.begins_read_only() {
                return Err(SqlError::read_only("COPY FROM"));
            }
            let settings = self.facts.settings.clone();
            self.state = State::Implicit(Open { mode: ReadMode::Optimistic, handle: None, settings, local: false });
        }
        let (handle, mode) = self.transaction().await?;
        if mode.is_read_only() {
            return Err(SqlError::read_only("COPY FROM"));
        }
        let table = {
            let mut active = handle.lock().await?;
            let name = fold(&unqualified(&copy.table, &self.facts.database)?);
            let super::Active { txn, catalog } = &mut *active;
            catalog.table(txn.as_mut(), &self.facts.database, &name).await?
        };
        let columns: Vec<usize> = match copy.columns.as_slice() {
            [] => table.visible_columns().collect(),
            names => names
                .iter()
                .map(|name| table.column(&fold(name)).ok_or_else(|| SqlError::undefined_column(&fold(name))))
                .collect::<SqlResult<_>>()?,
        };
        let defaults = Defaults::of(&self.engine, &self.facts, &table, &columns)?;
        Ok(Outcome::Copy(Box::new(CopyIn {
            handle,
            table,
            columns,
            defaults,
            lines: Lines::new(&copy.format),
            header_pending: copy.format.header,
            format: copy.format.clone(),
            line: 0,
            batch: Vec::new(),
            rows: 0,
        })))
    }

    /// Takes a piece of the data. An error has already failed the transaction.
    pub async fn copy_data(&mut self, copy: &mut CopyIn, data: &[u8]) -> SqlResult<()> {
        let result = self.take_copy_data(copy, data).await;
        if let Err(error) = &result {
            self.fail(error).await;
        }
        result
    }

    /// The data is complete.
    pub async fn copy_done(&mut self, mut copy: Box<CopyIn>) -> SqlResult<Outcome> {
        let result = async {
            if let Some(line) = copy.lines.last()? {
                self.take_line(&mut copy, &line)?;
            }
            self.flush_copy(&mut copy).await
        }
        .await;
        match result {
            Ok(()) => Ok(Outcome::Done(format!("COPY {}", copy.rows))),
            Err(error) => {
                self.fail(&error).await;
                Err(error)
            }
        }
    }

    /// The client gave the COPY up.
    pub async fn copy_fail(&mut self, reason: &str) -> SqlError {
        let error = SqlError::new(SqlState::QueryCanceled, format!("COPY from stdin failed: {reason}"));
        self.fail(&error).await;
        error
    }

    async fn take_copy_data(&mut self, copy: &mut CopyIn, data: &[u8]) -> SqlResult<()> {
        copy.lines.push(data)?;
        while let Some(line) = copy.lines.next()? {
            self.take_line(copy, &line)?;
            if copy.batch.len() >= BATCH_ROWS {
                self.flush_copy(copy).await?;
            }
        }
        Ok(())
    }

    fn take_line(&self, copy: &mut CopyIn, line: &BytesMut) -> SqlResult<()> {
        copy.line += 1;
        if std::mem::take(&mut copy.header_pending) {
            return Ok(());
        }
        let place = |error: SqlError| {
            let detail = format!("COPY {}, line {}", copy.table.name, copy.line);
            error.with_detail(detail)
        };
        let fields = lines::fields(&copy.format, line).map_err(place)?;
        if fields.len() != copy.columns.len() {
            let missing = copy.columns.get(fields.len()).map(|&column| copy.table.columns[column].name.as_str());
            let message = match missing {
                Some(column) => format!("missing data for column \"{column}\""),
                None => "extra data after last expected column".to_string(),
            };
            return Err(place(SqlError::new(SqlState::BadCopyFileFormat, message)));
        }
        let mut row = copy.defaults.row(&self.engine).map_err(place)?;
        for (&column, field) in copy.columns.iter().zip(&fields) {
            let ty = &copy.table.columns[column].ty;
            row[column] = match field {
                None => ty.null(),
                Some(text) => parse_text(ty, text).map_err(place)?,
            };
        }
        copy.batch.push(row);
        Ok(())
    }

    async fn flush_copy(&self, copy: &mut CopyIn) -> SqlResult<()> {
        let rows = std::mem::take(&mut copy.batch);
        if rows.is_empty() {
            return Ok(());
        }
        self.interrupt
            .within(async {
                let mut active = copy.handle.lock().await?;
                insert(active.txn.as_mut(), &copy.table, &rows, &OnConflict::Error).await
            })
            .await?;
        copy.rows += rows.len();
        Ok(())
    }
}
