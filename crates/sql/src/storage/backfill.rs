//! Filling a new index from the rows there are, within one transaction.

use crate::error::{SqlError, SqlResult};
use crate::schema::{Index, TableDescriptor};
use crate::storage::layout::{entry_key, entry_value, key_of, unique_key};
use crate::storage::scan::{Cursor, ScanSpec, SearchedIndex};
use crate::storage::write::duplicated;
use rhumb_commit::transaction::Transaction;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most entries that one transaction writes to an index.
pub const BACKFILL_ROWS_MAX: usize = 50_000;

/// Writes the entries of all rows of `table` to `index`, one of its own. Errors: 23505 if two rows
/// have the same key in a unique one, 54000 if there are too many rows.
pub(crate) async fn fill_index(txn: &mut dyn Transaction, table: &Arc<TableDescriptor>, index: &Index) -> SqlResult<()> {
    let mut rows = Cursor::open(table.clone(), ScanSpec::all(SearchedIndex::Primary))?;
    let mut seen = BTreeSet::new();
    let mut count = 0;
    loop {
        let page = rows.next_page(txn).await?;
        if page.is_empty() {
            return Ok(());
        }
        count += page.len();
        if count > BACKFILL_ROWS_MAX {
            let message = format!("table \"{}\" has more than {BACKFILL_ROWS_MAX} rows, too many to index in one transaction", table.name);
            return Err(SqlError::too_large(message).with_hint("Create the index on a new, empty table and copy the rows into it."));
        }
        for row in &page {
            if index.unique
                && let Some(key) = unique_key(table, index, index.columns.iter().map(|position| &row[*position]))?
                && !seen.insert(key)
            {
                return Err(duplicated(table, index.id, row));
            }
            txn.put(entry_key(table, index, row)?, entry_value(&key_of(table, row)?))?;
        }
    }
}
