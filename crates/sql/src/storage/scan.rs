//! Ranges of a table in the order of its primary key or of an index, a page at a time.

use crate::error::{SqlError, SqlResult};
use crate::schema::{Index, IndexId, TableDescriptor};
use crate::storage::Row;
use crate::storage::key_codec::{NULL, PRESENT, encode};
use crate::storage::layout::{PRIMARY, decode_row, entry_target, index_prefix, push_columns};
use crate::storage::rows::dangling;
use crate::types::Datum;
use rhumb_commit::transaction::Transaction;
use rhumb_core::{Key, KeyRange, Timestamp};
use std::borrow::Borrow;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

/// The most rows of a page, which ends at a number of bytes, too. A page is one round, so large; it is held in memory, so not larger.
pub const SCAN_PAGE_ROWS: usize = 2_048;

/// The version of what the transaction itself has written: a row that it has deleted since its entry was read is left out.
const OWN_WRITE: Timestamp = Timestamp::MAX;

/// The order that a scan follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchedIndex {
    /// The primary key: rows come straight from the range.
    Primary,
    /// A secondary index: its entries first, then their rows in one more round per page.
    Secondary(IndexId),
}

/// What to scan.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanSpec {
    /// In which order.
    pub index: SearchedIndex,
    /// The values of the first columns of the key, of their columns' types. A NULL here matches NULL (`IS NULL`).
    pub prefix: Vec<Datum>,
    /// The lower bound of the column after the prefix. A NULL as a bound matches nothing.
    pub lower: Bound<Datum>,
    /// The upper bound of that column. If either bound is given, NULLs of that column are left out.
    pub upper: Bound<Datum>,
    /// True for descending order.
    pub reverse: bool,
    /// The most rows to return.
    pub limit: Option<usize>,
}

impl ScanSpec {
    /// The whole of an index, ascending.
    pub fn all(index: SearchedIndex) -> ScanSpec {
        ScanSpec { index, prefix: Vec::new(), lower: Bound::Unbounded, upper: Bound::Unbounded, reverse: false, limit: None }
    }
}

/// A scan in progress. It borrows no transaction between pages, so that a session can lock its transaction page by page.
/// A statement must not write to the table while its own cursor is open on it: it might meet the rows it wrote.
#[derive(Debug)]
pub struct Cursor {
    table: Arc<TableDescriptor>,
    /// Where in the table's indexes the order comes from; `None` for the primary key.
    index: Option<usize>,
    /// What is still to be read; none at the end.
    rest: Option<KeyRange>,
    /// The rows that entries of the index name which were read, and that are themselves still to be read.
    named: VecDeque<Key>,
    reverse: bool,
    /// The most rows still to return.
    left: usize,
}

impl Cursor {
    /// Opens a scan; reads nothing yet.
    pub fn open(table: Arc<TableDescriptor>, spec: impl Borrow<ScanSpec>) -> SqlResult<Cursor> {
        let spec = spec.borrow();
        let index = match spec.index {
            SearchedIndex::Primary => None,
            SearchedIndex::Secondary(id) => {
                let position = table.indexes.iter().position(|index| index.id == id);
                Some(position.ok_or_else(|| SqlError::internal(format!("table \"{}\" has no index {}", table.name, id.0)))?)
            }
        };
        let rest = range(&table, index.map(|position| &table.indexes[position]), spec)?;
        let (rest, left) = (Some(rest).filter(|rest| !rest.is_empty()), spec.limit.unwrap_or(usize::MAX));
        Ok(Cursor { table, index, rest, named: VecDeque::new(), reverse: spec.reverse, left })
    }

    /// The next rows, in one round (mostly two by a secondary index); empty at the end.
    pub async fn next_page(&mut self, txn: &mut dyn Transaction) -> SqlResult<Vec<Row>> {
        let Some(index) = self.index.map(|position| &self.table.indexes[position]) else {
            let found = read_range(txn, &mut self.rest, &mut self.left, self.reverse).await?;
            let live = found.iter().filter_map(|row| Some((&row.key, row.value.as_ref()?)));
            return live.map(|(key, value)| decode_row(&self.table, key, value)).collect();
        };
        loop {
            if self.named.is_empty() {
                let found = read_range(txn, &mut self.rest, &mut self.left, self.reverse).await?;
                let values = found.iter().filter_map(|row| row.value.as_ref());
                self.named = values.map(|value| entry_target(&self.table, index, value)).collect::<SqlResult<_>>()?;
            }
            if self.named.is_empty() {
                return Ok(Vec::new());
            }
            let found = txn.get_some(self.named.make_contiguous()).await?;
            self.named.drain(..found.len());
            let row = |row: &rhumb_core::Row| match &row.value {
                Some(value) => Some(decode_row(&self.table, &row.key, value)),
                None if row.version == OWN_WRITE => None,
                None => Some(Err(dangling(txn, index))),
            };
            let rows: Vec<Row> = found.iter().filter_map(row).collect::<SqlResult<_>>()?;
            self.left = self.left.saturating_add(found.len() - rows.len());
            if !rows.is_empty() {
                return Ok(rows);
            }
        }
    }
}

/// Shows `look` all rows of a table, page by page.
pub async fn each_page(
    txn: &mut dyn Transaction,
    table: &Arc<TableDescriptor>,
    mut look: impl FnMut(Vec<Row>) -> SqlResult<()> + Send,
) -> SqlResult<()> {
    let mut cursor = Cursor::open(table.clone(), ScanSpec::all(SearchedIndex::Primary))?;
    loop {
        let page = cursor.next_page(txn).await?;
        if page.is_empty() {
            return Ok(());
        }
        look(page)?;
    }
}

/// The next page of what is still to be read of a range; empty at the end.
async fn read_range(
    txn: &mut dyn Transaction,
    rest: &mut Option<KeyRange>,
    left: &mut usize,
    reverse: bool,
) -> SqlResult<Vec<rhumb_core::Row>> {
    let Some(range) = rest.take_if(|_| *left > 0) else { return Ok(Vec::new()) };
    let found = txn.scan(range, (*left).min(SCAN_PAGE_ROWS), reverse).await?;
    *left -= found.rows.len();
    *rest = found.rest;
    Ok(found.rows)
}

/// The keys that a scan in the order of the primary key covers; `None` if it is in another.
pub fn primary_range(table: &TableDescriptor, spec: &ScanSpec) -> SqlResult<Option<KeyRange>> {
    if spec.index == SearchedIndex::Primary { range(table, None, spec).map(Some) } else { Ok(None) }
}

/// The keys that a scan covers.
fn range(table: &TableDescriptor, index: Option<&Index>, spec: &ScanSpec) -> SqlResult<KeyRange> {
    let (id, columns) = index.map_or((PRIMARY, &table.primary_key), |index| (index.id, &index.columns));
    let bounded = !matches!((&spec.lower, &spec.upper), (Bound::Unbounded, Bound::Unbounded));
    if spec.prefix.len() + usize::from(bounded) > columns.len() {
        return Err(SqlError::internal(format!("a scan of table \"{}\" bounds more columns than its index has", table.name)));
    }
    let mut base = index_prefix(table.database, table.id, id);
    push_columns(&mut base, table, columns, spec.prefix.iter())?;
    if !bounded {
        return Ok(KeyRange::prefix(&base));
    }
    let ty = &table.columns[columns[spec.prefix.len()]].ty;
    let at = |value: &Datum| {
        let mut bytes = base.clone();
        encode(&mut bytes, ty, value).map(|()| bytes)
    };
    let marker = |marker: u8| Key::new([&base[..], &[marker]].concat());
    let is_null = |bound: &Bound<Datum>| matches!(bound, Bound::Included(value) | Bound::Excluded(value) if value.is_null());
    if is_null(&spec.lower) || is_null(&spec.upper) {
        return Ok(KeyRange::new(marker(PRESENT), marker(PRESENT)));
    }
    let start = match &spec.lower {
        Bound::Unbounded => marker(PRESENT),
        Bound::Included(value) => Key::new(at(value)?),
        Bound::Excluded(value) => KeyRange::prefix(&at(value)?).end,
    };
    let end = match &spec.upper {
        Bound::Unbounded => marker(NULL),
        Bound::Included(value) => KeyRange::prefix(&at(value)?).end,
        Bound::Excluded(value) => Key::new(at(value)?),
    };
    Ok(KeyRange::new(start, end))
}
