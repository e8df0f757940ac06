//! What a site keeps on disk besides rows.
//!
//! | space | key | holds |
//! |---|---|---|
//! | [`REGISTERS`] | attempt | [`Register`]: this region's vote |
//! | [`CEILING`] | nothing | the timestamp below which identifiers may have been issued |

use super::message::Proposal;
use crate::replicated_commit::records::{decode, encode};
use crate::votes::Vote;
use rhumb_core::actor::Space;
use rhumb_core::{Batch, RegionId, SiteId, Timestamp, TxnId};
use serde::{Deserialize, Serialize};

/// Votes.
pub const REGISTERS: Space = Space(56);
/// The ceiling of identifiers.
pub const CEILING: Space = Space(57);

/// A region's vote on an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// It never changes.
    pub vote: Vote,
    /// What was voted on. Of a refusal nothing is kept, nor of a yes whose outcome is known here.
    pub proposal: Option<Proposal>,
    /// The timestamp of what was voted on; zero for a refusal.
    pub at: Timestamp,
}

fn key(txn: TxnId) -> Vec<u8> {
    let SiteId { region, shard } = txn.gateway;
    [&txn.began.bits().to_be_bytes()[..], &region.0.to_be_bytes(), &shard.to_be_bytes()].concat()
}

/// The attempt in a key of [`REGISTERS`].
pub fn decode_key(key: &[u8]) -> Option<TxnId> {
    let (began, place) = key.split_at_checked(8)?;
    let (region, shard) = place.split_at_checked(2)?;
    let [region, shard] = [region, shard].map(|bytes| bytes.try_into().ok().map(u16::from_be_bytes));
    let gateway = SiteId { region: RegionId(region?), shard: shard? };
    Some(TxnId { began: Timestamp::from_bits(u64::from_be_bytes(began.try_into().ok()?)), gateway })
}

/// Adds a register to a batch.
pub fn put_register(batch: &mut Batch, txn: TxnId, register: &Register) {
    batch.put_record(REGISTERS, key(txn), encode(register));
}

/// The register in a record.
pub fn decode_register(bytes: &[u8]) -> Option<Register> {
    decode(bytes)
}

/// Adds a ceiling to a batch.
pub fn put_ceiling(batch: &mut Batch, ceiling: Timestamp) {
    batch.put_record(CEILING, Vec::new(), encode(&ceiling));
}

/// The ceiling in a record.
pub fn decode_ceiling(bytes: &[u8]) -> Option<Timestamp> {
    decode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_age_and_round_trip() {
        let txn = |began, region| TxnId { began: Timestamp::from_bits(began), gateway: SiteId::new(region, 0) };
        assert!(key(txn(300, 2)) < key(txn(301, 0)) && key(txn(300, 1)) < key(txn(300, 2)));
        assert_eq!(decode_key(&key(txn(300, 2))), Some(txn(300, 2)));
        assert_eq!(decode_key(&[1]), None);
    }
}
