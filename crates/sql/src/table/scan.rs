//! Ranges of a table in the order of its primary key or of an index, a page at a time.

use crate::catalog::{IndexId, TableDescriptor};
use crate::error::SqlResult;
use crate::table::Row;
use crate::types::Datum;
use rhumb_commit::transaction::Transaction;
use std::ops::Bound;
use std::sync::Arc;

/// The order that a scan follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchedIndex {
    /// The primary key: rows come straight from the range.
    Primary,
    /// A secondary index: its entries first, then their rows in one more round per page.
    Secondary(IndexId),
}

/// What to scan. The default bounds are the whole table.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanSpec {
    /// In which order.
    pub index: SearchedIndex,
    /// The values of the first columns of the key, of their columns' types. A NULL here matches NULL (`IS NULL`).
    pub prefix: Vec<Datum>,
    /// The lower bound of the column after the prefix.
    pub lower: Bound<Datum>,
    /// The upper bound of that column. If either bound is given, NULLs of that column are left out.
    pub upper: Bound<Datum>,
    /// True for descending order.
    pub reverse: bool,
    /// The most rows to return.
    pub limit: Option<usize>,
}

/// A scan in progress. It borrows no transaction between pages, so that a session can lock its transaction page by page.
/// A statement must not write to the table while its own cursor is open on it.
pub struct Cursor {
    _table: Arc<TableDescriptor>,
    _spec: ScanSpec,
}

impl Cursor {
    /// Opens a scan; reads nothing yet.
    pub fn open(table: Arc<TableDescriptor>, spec: ScanSpec) -> SqlResult<Cursor> {
        Ok(Cursor { _table: table, _spec: spec })
    }

    /// The next rows; empty at the end.
    pub async fn next_page(&mut self, txn: &mut dyn Transaction) -> SqlResult<Vec<Row>> {
        let _ = txn;
        todo!()
    }
}
