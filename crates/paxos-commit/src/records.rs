//! What a site keeps on disk besides rows.
//!
//! | space | key | holds |
//! |---|---|---|
//! | [`REGISTERS`] | attempt | [`Register`]: this region's vote |
//! | [`CLOCK_BOUND`] | nothing | the timestamp below which identifiers may have been issued |

use super::message::Proposal;
use rhumb_commit::votes::Vote;
use rhumb_core::actor::Space;
use rhumb_core::record::{decode, encode};
use rhumb_core::{Batch, Timestamp, TxnId};
use serde::{Deserialize, Serialize};

/// Votes.
pub const REGISTERS: Space = Space(56);
/// The bound of the clock.
pub const CLOCK_BOUND: Space = Space(57);

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

/// The attempt in a key of [`REGISTERS`].
pub fn decode_key(key: &[u8]) -> Option<TxnId> {
    Some(TxnId::from_be_bytes(key.try_into().ok()?))
}

/// Adds a register to a batch.
pub fn put_register(batch: &mut Batch, txn: TxnId, register: &Register) {
    batch.put_record(REGISTERS, txn.to_be_bytes().to_vec(), encode(register));
}

/// The register in a record.
pub fn decode_register(bytes: &[u8]) -> Option<Register> {
    decode(bytes)
}

/// Adds a bound of the clock to a batch.
pub fn put_clock_bound(batch: &mut Batch, bound: Timestamp) {
    batch.put_record(CLOCK_BOUND, Vec::new(), encode(&bound));
}

/// The bound of the clock in a record.
pub fn decode_clock_bound(bytes: &[u8]) -> Option<Timestamp> {
    decode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::SiteId;
    use rhumb_core::actor::Op;

    #[test]
    fn a_key_holds_its_attempt() {
        let txn = TxnId { began: Timestamp::from_bits(300), gateway: SiteId::new(2, 0) };
        let mut batch = Batch::new();
        put_register(&mut batch, txn, &Register { vote: Vote::Yes, proposal: None, at: txn.began });
        let [Op::PutRecord { key, .. }] = &batch.ops[..] else { panic!("one record is put") };
        assert_eq!(decode_key(key), Some(txn));
        assert_eq!(decode_key(&key[1..]), None);
    }
}
