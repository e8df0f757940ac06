//! The rows of what was dropped.
//!
//! A table may hold more rows than a transaction may write, so `DROP` only notes the prefix of their keys. Ids are never
//! used twice: nobody can reach those rows, nor add to them, and they can be deleted at leisure. Each transaction deletes as many
//! as its bounds in keys and in bytes allow, and at least one; the last one deletes the note. So reclaiming goes on until
//! nothing is left, whoever stops and starts again meanwhile, under any protocol.

use crate::catalog::layout::{
    data_prefix, dropped, dropped_database, dropped_key, garbage, garbage_key, garbage_prefix, procedures, relations,
};
use crate::context::environment::Environment;
use crate::error::{SqlError, SqlResult};
use crate::protocols::Gateways;
use crate::protocols::Protocol;
use crate::schema::DatabaseId;
use rhumb_commit::transaction::{Gateway, ReadMode, Transaction};
use rhumb_core::{Key, KeyRange, Row, Value};
use std::sync::Arc;
use std::time::Duration;

/// The most keys that one transaction deletes.
const RECLAIM_KEYS: usize = 2_048;

/// The most bytes of keys and values that one transaction reads and deletes, but for the page that goes beyond it. The keys alone stay
/// below what any protocol takes in a transaction: 1 MiB at the least.
pub(super) const RECLAIM_BYTES: usize = 256 << 10;

/// Keys read in the first page; each further page is twice as large.
const FIRST_PAGE: usize = 32;

/// Notes of dropped databases looked at at once; the others have their turn after these.
const NOTES_MAX: usize = 2_048;

/// The pause after each such call, so that clients come first.
const PAUSE: Duration = Duration::from_millis(20);

/// Reclaims what was dropped, for ever: looks after it at random moments, `every` apart on the average, so that the
/// gateways of a cluster rarely meet.
pub async fn keep_reclaiming(gateways: impl Into<Gateways>, every: Duration, environment: Arc<dyn Environment>) {
    let gateways = gateways.into();
    let another_time = |error: SqlError| {
        tracing::debug!(%error, "reclaims what was dropped another time");
        false
    };
    loop {
        let micros = u64::try_from(every.as_micros()).unwrap_or(u64::MAX);
        environment.sleep(every / 2 + Duration::from_micros(environment.draw(micros))).await;
        for (protocol, own) in gateways.apart() {
            while hand_over(&*gateways.replicated_commit, protocol, &**own).await.unwrap_or_else(another_time) {}
        }
        for gateway in std::iter::once(&gateways.replicated_commit).chain(gateways.apart().map(|(_, own)| own)) {
            while reclaim(&**gateway).await.unwrap_or_else(another_time) {
                environment.sleep(PAUSE).await;
            }
        }
    }
}

/// Drops in its own key space, that of `protocol`, what a database held whose name was dropped in that of the names. True if there may
/// be more of them. Done twice, it does no harm.
pub async fn hand_over(names: &dyn Gateway, protocol: Protocol, own: &dyn Gateway) -> SqlResult<bool> {
    let mut txn = names.begin(ReadMode::Optimistic).await?;
    let notes = txn.scan(dropped(), NOTES_MAX, false).await?.rows;
    txn.rollback().await;
    let note = notes.into_iter().find(|note| note.value == Some(protocol.note_of_dropped()));
    let Some(note) = note else { return Ok(false) };
    let database = dropped_database(&note.key).ok_or_else(|| SqlError::corrupted("a note of a dropped database", "it names none"))?;
    while drop_relations(own, database).await? {}
    let mut txn = names.begin(ReadMode::Locking).await?;
    txn.delete(note.key)?;
    txn.commit().await?;
    Ok(true)
}

/// Drops some relations and procedures of a database in which nothing can be created from then on. True if there may be more.
async fn drop_relations(own: &dyn Gateway, database: DatabaseId) -> SqlResult<bool> {
    let mut txn = own.begin(ReadMode::Locking).await?;
    txn.put(dropped_key(database), Value::default())?;
    let mut share = Share::default();
    let ranges = [relations(database), procedures(database)];
    let mut may_be_more = false;
    for range in ranges {
        may_be_more = may_be_more || !share.delete(&mut *txn, range).await?;
    }
    if !may_be_more {
        txn.put(garbage_key(&data_prefix(database, None)), Value::default())?;
    }
    txn.commit().await?;
    Ok(may_be_more)
}

/// Deletes some rows of dropped tables, indexes and databases, in a transaction of its own. True if there may be more. Two gateways that do so at once cost each
/// other conflicts (40001), nothing else.
pub async fn reclaim(gateway: &dyn Gateway) -> SqlResult<bool> {
    // What this region knows will do to see that there is nothing, as there nearly always is.
    let mut txn = gateway.begin(ReadMode::Optimistic).await?;
    let nothing = txn.scan(garbage(), 1, false).await?.rows.is_empty();
    txn.rollback().await;
    if nothing {
        return Ok(false);
    }
    let mut txn = gateway.begin(ReadMode::Locking).await?;
    let Some(note) = txn.scan(garbage(), 1, false).await?.rows.into_iter().next() else {
        txn.rollback().await;
        return Ok(false);
    };
    let prefix = garbage_prefix(&note.key).to_vec();
    // Whatever the note says, the catalog itself is not garbage.
    if prefix.len() < 4 || prefix.starts_with(&[0; 4]) {
        return Err(SqlError::corrupted("a note of dropped keys", "it names no database"));
    }
    if Share::default().delete(&mut *txn, KeyRange::prefix(&prefix)).await? {
        txn.delete(note.key)?;
    }
    txn.commit().await?;
    Ok(true)
}

/// What one transaction has deleted.
#[derive(Default)]
struct Share {
    keys: usize,
    bytes: usize,
}

impl Share {
    /// Deletes the rows of a range as far as the bounds allow. True if none is left.
    async fn delete(&mut self, txn: &mut dyn Transaction, range: KeyRange) -> SqlResult<bool> {
        let (mut rest, mut page) = (range, FIRST_PAGE);
        // Keys are deleted once all is read: a scan would read past those that are deleted.
        let mut keys = Vec::new();
        let nothing_is_left = loop {
            let found = txn.scan(rest, page, false).await?;
            let read = found.rows.len();
            let fitting: Vec<Key> = found.rows.into_iter().map_while(|row| self.takes(&row).then_some(row.key)).collect();
            let took_all = fitting.len() == read;
            keys.extend(fitting);
            match found.rest {
                Some(further) if took_all => rest = further,
                _ => break took_all,
            }
            page *= 2;
        };
        for key in keys {
            txn.delete(key)?;
        }
        Ok(nothing_is_left)
    }

    /// True if there is room for one more row, which is then taken. There is for the first, however large.
    fn takes(&mut self, row: &Row) -> bool {
        let bytes = row.key.0.len() + row.value.as_ref().map_or(0, |value| value.0.len());
        let fits = self.keys == 0 || (self.keys < RECLAIM_KEYS && self.bytes + bytes <= RECLAIM_BYTES);
        if fits {
            (self.keys, self.bytes) = (self.keys + 1, self.bytes + bytes);
        }
        fits
    }
}
