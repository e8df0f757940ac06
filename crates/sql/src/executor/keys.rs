//! Keys of one table, read a page at a time.

use crate::error::SqlResult;
use crate::schema::{Index, TableDescriptor};
use crate::storage::{Cursor, Row, ScanSpec, get_by_index, get_by_primary_key};
use crate::types::Datum;
use rhumb_commit::transaction::Transaction;
use std::collections::VecDeque;
use std::sync::Arc;

/// The keys asked for in one round, which answers fewer of them if their rows are large.
const POINTS_PER_PAGE: usize = 512;

/// Keys to read.
#[derive(Clone, Debug)]
pub enum Keys {
    /// Single keys of the primary key (`None`) or of a unique index.
    Points { index: Option<Index>, keys: Vec<Vec<Datum>> },
    /// A range of keys; `complete` if every row in it satisfies the conditions.
    Range { spec: ScanSpec, complete: bool },
}

impl Keys {
    /// No keys at all.
    pub fn none() -> Keys {
        Keys::Points { index: None, keys: Vec::new() }
    }

    /// The same, with no more rows than needed for `limit` that satisfy the conditions.
    pub fn with_limit(mut self, limit: Option<usize>) -> Keys {
        if let Keys::Range { spec, complete: true } = &mut self {
            spec.limit = limit;
        }
        self
    }

    /// The same in descending order.
    pub fn reversed(mut self, reverse: bool) -> Keys {
        if let Keys::Range { spec, .. } = &mut self {
            spec.reverse = reverse;
        }
        self
    }

    /// Opens them for reading. Reads nothing yet.
    pub fn open(self, table: Arc<TableDescriptor>) -> Rows {
        match self {
            Keys::Points { index, keys } => Rows::Points { table, index, keys: keys.into() },
            Keys::Range { spec, .. } => Rows::Range { table, spec: Some(spec), cursor: None },
        }
    }
}

/// Rows being read, a page at a time.
#[expect(clippy::large_enum_variant, reason = "one for each table of a statement")]
pub enum Rows {
    /// Single keys still to be read.
    Points { table: Arc<TableDescriptor>, index: Option<Index>, keys: VecDeque<Vec<Datum>> },
    /// A range; the cursor once it is open.
    Range { table: Arc<TableDescriptor>, spec: Option<ScanSpec>, cursor: Option<Cursor> },
}

impl Rows {
    /// The next rows; none at the end.
    pub async fn next_page(&mut self, txn: &mut dyn Transaction) -> SqlResult<Vec<Row>> {
        match self {
            Rows::Points { table, index, keys } => {
                while !keys.is_empty() {
                    let asked = keys.len().min(POINTS_PER_PAGE);
                    let page = &keys.make_contiguous()[..asked];
                    let found = match index {
                        None => get_by_primary_key(txn, table, page).await?,
                        Some(index) => get_by_index(txn, table, index, page).await?,
                    };
                    keys.drain(..found.len());
                    let rows: Vec<Row> = found.into_iter().flatten().collect();
                    if !rows.is_empty() {
                        return Ok(rows);
                    }
                }
                Ok(Vec::new())
            }
            Rows::Range { table, spec, cursor } => {
                if let Some(spec) = spec.take() {
                    *cursor = Some(Cursor::open(table.clone(), &spec)?);
                }
                cursor.as_mut().expect("opened above").next_page(txn).await
            }
        }
    }
}
