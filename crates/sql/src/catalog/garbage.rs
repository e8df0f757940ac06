//! The rows of what was dropped.
//!
//! A table may hold more rows than a transaction may write, so `DROP` only notes the prefix of their keys. Ids are never
//! used twice: nobody can reach those rows, nor add to them, and they can be deleted at leisure.

use crate::catalog::layout::{garbage, garbage_prefix};
use crate::error::{SqlError, SqlResult};
use rhumb_commit::transaction::{Gateway, ReadMode};
use rhumb_core::KeyRange;

/// The most keys that one call deletes.
const RECLAIM_KEYS: usize = 2_048;

/// Deletes some rows of dropped tables, indexes and databases, in a transaction of its own. True if there may be more:
/// call it until it is false, at start and after a `DROP`, in the background. Two gateways that do so at once cost each
/// other conflicts (40001), nothing else.
pub async fn reclaim(gateway: &dyn Gateway) -> SqlResult<bool> {
    let mut txn = gateway.begin(ReadMode::Locking).await?;
    let Some(note) = txn.scan(garbage(), 1, false).await?.into_iter().next() else {
        txn.rollback().await;
        return Ok(false);
    };
    let prefix = garbage_prefix(&note.key).to_vec();
    // Whatever the note says, the catalog itself is not garbage.
    if prefix.len() < 4 || prefix.starts_with(&[0; 4]) {
        return Err(SqlError::corrupted("a note of dropped keys", "it names no database"));
    }
    let dropped = txn.scan(KeyRange::prefix(&prefix), RECLAIM_KEYS, false).await?;
    if dropped.len() < RECLAIM_KEYS {
        txn.delete(note.key)?;
    }
    for row in dropped {
        txn.delete(row.key)?;
    }
    txn.commit().await?;
    Ok(true)
}
