//! What a site keeps on disk besides rows.
//!
//! | space | key | holds |
//! |---|---|---|
//! | [`PREPARED`] | transaction | [`PreparedRecord`]: what it holds and writes here, until the outcome |
//! | [`DECISIONS`] | transaction | [`DecisionRecord`]: that it commits, until all who are prepared know |
//! | [`CEILING`] | empty | no timestamp above it was issued or seen by any life of this site |

use crate::replicated_commit::records::encode;
use crate::wound_wait::{Lock, Mode};
use rhumb_core::actor::Space;
use rhumb_core::{Batch, Key, KeyRange, SiteId, Timestamp, TxnId, Value};
use serde::{Deserialize, Serialize};

/// Prepared transactions.
pub const PREPARED: Space = Space(64);
/// Decisions of this site as gateway.
pub const DECISIONS: Space = Space(65);
/// The ceiling of timestamps.
pub const CEILING: Space = Space(66);

/// A prepared transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedRecord {
    /// Which.
    pub txn: TxnId,
    /// What it has read here, locked shared until the outcome.
    pub reads: Vec<KeyRange>,
    /// What it writes.
    pub writes: Vec<(Key, Option<Value>)>,
}

impl PreparedRecord {
    /// All its locks.
    pub fn locks(&self) -> impl Iterator<Item = Lock> + '_ {
        let reads = self.reads.iter().map(|range| Lock { range: range.clone(), mode: Mode::Shared });
        let writes = self.writes.iter().map(|(key, _)| Lock { range: crate::wound_wait::one_key(key), mode: Mode::Exclusive });
        reads.chain(writes)
    }
}

/// A decision to commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Which.
    pub txn: TxnId,
    /// The timestamp of its versions.
    pub at: Timestamp,
    /// All who are prepared.
    pub participants: Vec<SiteId>,
}

/// The key of a transaction's record.
pub fn txn_key(txn: TxnId) -> Vec<u8> {
    [&txn.began.bits().to_be_bytes()[..], &txn.gateway.region.0.to_be_bytes(), &txn.gateway.shard.to_be_bytes()].concat()
}

/// Adds a ceiling to a batch.
pub fn put_ceiling(batch: &mut Batch, ceiling: Timestamp) {
    batch.put_record(CEILING, Vec::new(), encode(&ceiling));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicated_commit::records::decode;

    #[test]
    fn records_sort_by_transaction_and_round_trip() {
        let txn = |began, region| TxnId { began: Timestamp::from_bits(began), gateway: SiteId::new(region, 1) };
        assert!(txn_key(txn(1, 9)) < txn_key(txn(2, 0)) && txn_key(txn(2, 0)) < txn_key(txn(2, 1)));
        let reads = vec![KeyRange::new("a".into(), "c".into())];
        let record = PreparedRecord { txn: txn(1, 0), reads, writes: vec![("b".into(), None), ("d".into(), Some("v".into()))] };
        assert_eq!(decode(&encode(&record)), Some(record.clone()));
        let modes: Vec<Mode> = record.locks().map(|lock| lock.mode).collect();
        assert_eq!(modes, [Mode::Shared, Mode::Exclusive, Mode::Exclusive]);
    }
}
