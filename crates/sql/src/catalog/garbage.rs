//! The rows of what was dropped.
//!
//! A table may hold more rows than a transaction may write, so `DROP` only notes the prefix of their keys. Ids are never
//! used twice: nobody can reach those rows, nor add to them, and they can be deleted at leisure.

use crate::catalog::layout::{garbage, garbage_prefix};
use crate::error::{SqlError, SqlResult};
use rhumb_commit::transaction::{Gateway, ReadMode};
use rhumb_core::KeyRange;
use std::sync::Arc;
use std::time::Duration;

/// The most keys that one call deletes.
const RECLAIM_KEYS: usize = 2_048;

/// The pause after each such call, so that clients come first.
const PAUSE: Duration = Duration::from_millis(20);

/// Reclaims what was dropped, for ever: looks after it at random moments, `every` apart on the average, so that the
/// gateways of a cluster rarely meet.
pub async fn keep_reclaiming(gateway: Arc<dyn Gateway>, every: Duration) {
    loop {
        tokio::time::sleep(every.mul_f64(0.5 + rand::random::<f64>())).await;
        while reclaim(&*gateway).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "reclaims what was dropped another time");
            false
        }) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Deletes some rows of dropped tables, indexes and databases, in a transaction of its own. True if there may be more. Two gateways that do so at once cost each
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
