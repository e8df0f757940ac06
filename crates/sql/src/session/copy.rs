//! COPY … FROM STDIN: rows arrive in pieces, are parsed one by one and inserted in bounded batches.
//!
//! A COPY is one statement and so one transaction, or part of one: all of its rows are there in the end, or none.

mod lines;
mod tuples;

use super::settings::ReadPreference;
use super::transaction::TransactionHandle;
use super::{Company, Open, Outcome, Session, State};
use crate::catalog::TableDescriptor;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parse::{CopyFormat, CopyFrom, CopyKind, fold};
use crate::plan::{Defaults, unqualified};
use crate::table::{OnConflict, Row, insert};
use crate::types::{coerce, parse_text};
use crate::wire::value::{Format, read_parameter};
use bytes::{Bytes, BytesMut};
use rhumb_commit::transaction::ReadMode;
use std::sync::Arc;

#[cfg(feature = "testing")]
pub use lines::fields;
pub use {lines::Lines, tuples::Tuples};

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
    input: Input,
    header_pending: bool,
    line: usize,
    batch: Vec<Row>,
    rows: usize,
}

/// Where rows come from.
enum Input {
    Lines(Lines),
    Tuples(Tuples),
}

/// The fields of a row, as they came; `None` is NULL.
enum Fields {
    Text(Vec<Option<String>>),
    Binary(Vec<Option<Bytes>>),
}

impl CopyIn {
    /// True if the data is binary.
    pub fn is_binary(&self) -> bool {
        matches!(self.input, Input::Tuples(_))
    }

    /// The row that fields make.
    fn row(&self, engine: &Engine, fields: &Fields) -> SqlResult<Row> {
        let given = match fields {
            Fields::Text(fields) => fields.len(),
            Fields::Binary(fields) => fields.len(),
        };
        if given != self.columns.len() {
            let missing = self.columns.get(given).map(|&column| self.table.columns[column].name.as_str());
            let message = match missing {
                Some(column) => format!("missing data for column \"{column}\""),
                None => "extra data after last expected column".to_string(),
            };
            return Err(SqlError::new(SqlState::BadCopyFileFormat, message));
        }
        let mut row = self.defaults.row(engine)?;
        for (position, &column) in self.columns.iter().enumerate() {
            let ty = &self.table.columns[column].ty;
            row[column] = match fields {
                Fields::Text(fields) => fields[position].as_ref().map_or_else(|| Ok(ty.null()), |text| parse_text(ty, text))?,
                Fields::Binary(fields) => coerce(ty, read_parameter(ty, fields[position].as_deref(), Format::Binary)?)?,
            };
        }
        Ok(row)
    }

    /// An error with the line that it is about.
    fn place(&self, error: SqlError) -> SqlError {
        error.with_detail(format!("COPY {}, line {}", self.table.name, self.line))
    }

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
            let mode = if settings.read_preference() == ReadPreference::Active { ReadMode::Active } else { ReadMode::Optimistic };
            self.state = State::Implicit(Open { mode, handle: None, settings, local: false });
        }
        let (handle, mode) = self.transaction().await?;
        if mode.is_read_only() {
            return Err(SqlError::read_only("COPY FROM"));
        }
        let table = {
            let mut active = handle.lock().await?;
            let name = fold(&unqualified(&copy.table, &self.facts.database)?);
            let super::Active { txn, catalog, .. } = &mut *active;
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
            input: match copy.format.kind {
                CopyKind::Binary => Input::Tuples(Tuples::default()),
                CopyKind::Text | CopyKind::Csv => Input::Lines(Lines::new(&copy.format)),
            },
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
            match &mut copy.input {
                Input::Tuples(tuples) => tuples.end()?,
                Input::Lines(lines) => {
                    if let Some(line) = lines.last()? {
                        self.take_line(&mut copy, &line)?;
                    }
                }
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
        match &mut copy.input {
            Input::Lines(lines) => lines.push(data),
            Input::Tuples(tuples) => tuples.push(data),
        }
        loop {
            match &mut copy.input {
                Input::Lines(lines) => match lines.take()? {
                    Some(line) => self.take_line(copy, &line)?,
                    None => break,
                },
                Input::Tuples(tuples) => match tuples.take()? {
                    Some(fields) => self.take_row(copy, &Fields::Binary(fields))?,
                    None => break,
                },
            }
            if copy.batch.len() >= BATCH_ROWS {
                self.flush_copy(copy).await?;
            }
        }
        Ok(())
    }

    fn take_line(&self, copy: &mut CopyIn, line: &BytesMut) -> SqlResult<()> {
        if std::mem::take(&mut copy.header_pending) {
            copy.line += 1;
            return Ok(());
        }
        let fields = lines::fields(&copy.format, line).map_err(|error| copy.place(error))?;
        self.take_row(copy, &Fields::Text(fields))
    }

    fn take_row(&self, copy: &mut CopyIn, fields: &Fields) -> SqlResult<()> {
        copy.line += 1;
        let row = copy.row(&self.engine, fields).map_err(|error| copy.place(error))?;
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
