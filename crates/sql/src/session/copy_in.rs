//! A COPY under way: how its rows are written, what is known of them, and where they go.

mod lines;
mod tuples;

use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::writer::Unsettled;
use crate::executor::{Defaults, Running, Steps, Writer};
use crate::parser::CopyFormat;
use crate::storage::{Batch, Row};
use crate::txn::TransactionHandle;
use crate::types::wire::{Format, read_parameter};
use crate::types::{coerce, parse_text};
use bytes::Bytes;
use rhumb_commit::one_shot::operation::{OPERATIONS_MAX, Operation, TXN_BYTES_MAX};

pub use lines::fields;
pub use {lines::Lines, tuples::Tuples};

/// A COPY under way.
pub struct CopyIn {
    pub(super) handle: TransactionHandle,
    pub(super) writer: Writer,
    /// The positions of the columns that the data gives, in its order.
    pub(super) columns: Vec<usize>,
    pub(super) defaults: Defaults,
    /// What its rows reference and was not found so far.
    pub(super) unsettled: Unsettled,
    pub(super) format: CopyFormat,
    pub(super) input: Input,
    pub(super) header_pending: bool,
    pub(super) line: usize,
    pub(super) sink: Sink,
    pub(super) rows: usize,
}

/// Where rows go.
pub(super) enum Sink {
    /// Into the transaction, batch by batch.
    Batch(Batch),
    /// Into the one list of operations that its commit carries out.
    Operations { steps: Steps, bytes: usize },
}

impl Sink {
    pub(super) fn take(&mut self, row: Row) -> SqlResult<()> {
        match self {
            Sink::Batch(batch) => batch.push(row),
            Sink::Operations { steps, bytes } => {
                let known = steps.operations().len();
                steps.insert(row)?;
                *bytes += steps.operations()[known..].iter().map(Operation::bytes).sum::<usize>();
                if *bytes > TXN_BYTES_MAX {
                    let message = format!("a transaction has at most {TXN_BYTES_MAX} bytes, encoded; this COPY has more");
                    return Err(SqlError::too_large(message).with_hint("Split it into several."));
                }
                if steps.operations().len() > OPERATIONS_MAX {
                    let message = format!("a transaction has at most {OPERATIONS_MAX} operations; this COPY has more");
                    return Err(SqlError::too_large(message).with_hint("Split it into several."));
                }
            }
        }
        Ok(())
    }

    /// True if it is time for a batch.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Sink::Batch(batch) if batch.is_full())
    }
}

/// Where rows come from.
pub(super) enum Input {
    Lines(Lines),
    Tuples(Tuples),
}

/// The fields of a row, as they came; `None` is NULL.
pub(super) enum Fields {
    Text(Vec<Option<String>>),
    Binary(Vec<Option<Bytes>>),
}

impl CopyIn {
    /// True if the data is binary.
    pub fn is_binary(&self) -> bool {
        matches!(self.input, Input::Tuples(_))
    }

    /// The row that fields make.
    pub(super) async fn row(&self, cx: Running<'_>, fields: &Fields) -> SqlResult<Row> {
        let given = match fields {
            Fields::Text(fields) => fields.len(),
            Fields::Binary(fields) => fields.len(),
        };
        if given != self.columns.len() {
            let missing = self.columns.get(given).map(|&column| self.writer.table.columns[column].name.as_str());
            let message = match missing {
                Some(column) => format!("missing data for column \"{column}\""),
                None => "extra data after last expected column".to_string(),
            };
            return Err(SqlError::new(SqlState::BadCopyFileFormat, message));
        }
        let mut row = self.defaults.row(cx).await?;
        for (position, &column) in self.columns.iter().enumerate() {
            let ty = &self.writer.table.columns[column].ty;
            row[column] = match fields {
                Fields::Text(fields) => fields[position].as_ref().map_or_else(|| Ok(ty.null()), |text| parse_text(ty, text))?,
                Fields::Binary(fields) => coerce(ty, read_parameter(ty, fields[position].as_deref(), Format::Binary)?)?,
            };
        }
        Ok(row)
    }

    /// An error with the line that it is about.
    pub(super) fn place(&self, error: SqlError) -> SqlError {
        error.with_detail(format!("COPY {}, line {}", self.writer.table.name, self.line))
    }

    /// The number of columns in a row of the data.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }
}
