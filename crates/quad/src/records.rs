//! What a site keeps on disk besides rows.
//!
//! | space | key | holds |
//! |---|---|---|
//! | [`PREPARED`] | transaction | [`PreparedRecord`]: what it holds and writes here, until the outcome |
//! | [`DECISIONS`] | transaction | [`DecisionRecord`]: that it commits, until all who are prepared know |
//! | [`CLOCK_BOUND`] | empty | no timestamp above it was issued or seen by any incarnation of this site |
//! | [`ACCEPTOR`] | empty | [`AcceptorRecord`]: that the epoch is sealed, and what this site has promised and accepted of the next one |
//! | [`CONFIGURATION`] | empty | [`Configuration`]: the latest that this site has adopted |
//! | [`BASE`] | empty | [`Base`]: how much of the past is here |
//! | [`ASIDE`] | transaction | [`CommitRecord`]: a commit of the epoch that ends, until a configuration says whether it counts |
//! | [`DIFFERENCES`] | epoch, row key | that this row was written in that epoch: the difference objects |

use super::configuration::{Configuration, Epoch, Goal};
use rhumb_commit::wound_wait::{Lock, Mode};
use rhumb_core::actor::Space;
use rhumb_core::record::encode;
use rhumb_core::{Acceptor, Batch, Key, KeyRange, SiteId, Timestamp, TxnId, Value};
use serde::{Deserialize, Serialize};

/// Prepared transactions.
pub const PREPARED: Space = Space(64);
/// Decisions of this site as gateway.
pub const DECISIONS: Space = Space(65);
/// The bound of the clock.
pub const CLOCK_BOUND: Space = Space(66);
/// The part in the consensus on the next configuration.
pub const ACCEPTOR: Space = Space(67);
/// The configuration.
pub const CONFIGURATION: Space = Space(68);
/// How much of the past is here.
pub const BASE: Space = Space(69);
/// Which rows were written in which epoch.
pub const DIFFERENCES: Space = Space(70);
/// Commits that sealed sources told of, put aside.
pub const ASIDE: Space = Space(71);

/// A prepared transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedRecord {
    /// Which.
    pub txn: TxnId,
    /// What it has read here, locked shared until the outcome.
    pub reads: Vec<KeyRange>,
    /// What it writes.
    pub writes: Vec<(Key, Option<Value>)>,
    /// The timestamp of its commit, once that stands here; not settled yet.
    pub committed: Option<Timestamp>,
}

impl PreparedRecord {
    /// All its locks.
    pub fn locks(&self) -> impl Iterator<Item = Lock> + '_ {
        let reads = self.reads.iter().map(|range| Lock { range: range.clone(), mode: Mode::Shared });
        let writes = self.writes.iter().map(|(key, _)| Lock { range: rhumb_commit::wound_wait::one_key(key), mode: Mode::Exclusive });
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

/// What a write has in a message beside its key and value, at the most: two lengths, and whether it deletes.
const WRITE_EXTRA_BYTES: usize = 12;

/// A commit that stands at a sealed source and is not settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitRecord {
    /// Whose.
    pub txn: TxnId,
    /// The timestamp of its versions.
    pub at: Timestamp,
    /// What it writes.
    pub writes: Vec<(Key, Option<Value>)>,
}

impl CommitRecord {
    /// Bytes that it has in a message, or a few more.
    pub fn bytes(&self) -> usize {
        let bytes = |(key, value): &(Key, Option<Value>)| key.0.len() + value.as_ref().map_or(0, |value| value.0.len()) + WRITE_EXTRA_BYTES;
        self.writes.iter().map(bytes).sum()
    }
}

/// What a site has promised and accepted of the next configuration. There is none as long as the epoch is not sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptorRecord {
    /// What it has promised and accepted.
    pub acceptor: Acceptor<Box<Configuration>>,
    /// What was last asked for.
    pub goal: Goal,
}

/// How much of the past a site holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// All that was committed before this epoch is here; zero: nothing need be.
    pub holds: Epoch,
    /// Which rows were written is known from this epoch on.
    pub kept: Epoch,
}

/// The key of a difference.
pub fn difference_key(epoch: Epoch, key: &Key) -> Vec<u8> {
    [&epoch.0.to_be_bytes()[..], &key.0].concat()
}

/// What a difference's key says; `None` if it is none.
pub fn read_difference(record: &[u8]) -> Option<(Epoch, Key)> {
    let (epoch, key) = record.split_first_chunk::<8>()?;
    Some((Epoch(u64::from_be_bytes(*epoch)), Key::new(key.to_vec())))
}

/// Adds the versions that a transaction wrote in `epoch`, and the difference objects that say so (section IV).
pub fn put_versions(batch: &mut Batch, epoch: Epoch, at: Timestamp, writes: Vec<(Key, Option<Value>)>) {
    for (key, value) in writes {
        batch.put_record(DIFFERENCES, difference_key(epoch, &key), Vec::new());
        batch.put_version(key, at, value);
    }
}

/// The key of a transaction's record.
pub fn txn_key(txn: TxnId) -> Vec<u8> {
    txn.to_be_bytes().to_vec()
}

/// Adds a bound of the clock to a batch.
pub fn put_clock_bound(batch: &mut Batch, bound: Timestamp) {
    batch.put_record(CLOCK_BOUND, Vec::new(), encode(&bound));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::record::decode;

    #[test]
    fn records_sort_by_transaction_and_round_trip() {
        let txn = |began, region| TxnId { began: Timestamp::from_bits(began), gateway: SiteId::new(region, 1) };
        assert!(txn_key(txn(1, 9)) < txn_key(txn(2, 0)) && txn_key(txn(2, 0)) < txn_key(txn(2, 1)));
        let reads = vec![KeyRange::new("a".into(), "c".into())];
        let record =
            PreparedRecord { txn: txn(1, 0), reads, writes: vec![("b".into(), None), ("d".into(), Some("v".into()))], committed: None };
        assert_eq!(decode(&encode(&record)), Some(record.clone()));
        let modes: Vec<Mode> = record.locks().map(|lock| lock.mode).collect();
        assert_eq!(modes, [Mode::Shared, Mode::Exclusive, Mode::Exclusive]);
    }
}
