//! What a site keeps on disk besides rows.
//!
//! | space | key | holds |
//! |---|---|---|
//! | [`CLOCK_BOUND`] | nothing | the timestamp below which identifiers may have been issued |
//! | [`PROMISED`] | nothing | the ballot promised |
//! | [`MARKS`] | nothing | how far the log is applied, and what goes with that |
//! | [`PREPARED`], [`DECIDED`], [`OUTCOMES`] | transaction | the tables of [`State`](crate::state::State) |
//! | [`LOG`] | slot | entries, from those that are compacted away on |

use crate::command::{Command, Prepared};
use crate::group::{Entry, Slot};
use rhumb_core::actor::Space;
use rhumb_core::record::{decode, encode};
use rhumb_core::{Ballot, Batch, Timestamp, TxnId};
use serde::Serialize;
use std::collections::BTreeSet;

/// The bound of the clock.
pub const CLOCK_BOUND: Space = Space(80);
/// The ballot promised.
pub const PROMISED: Space = Space(81);
/// The marks of the state.
pub const MARKS: Space = Space(82);
/// Transactions that are prepared.
pub const PREPARED: Space = Space(83);
/// Commits that other groups have yet to apply.
pub const DECIDED: Space = Space(84);
/// Outcomes.
pub const OUTCOMES: Space = Space(85);
/// The log.
pub const LOG: Space = Space(86);

/// What earlier incarnations have left, in the order in which it is read.
pub const RECOVERED: [Space; 7] = [CLOCK_BOUND, PROMISED, MARKS, PREPARED, DECIDED, OUTCOMES, LOG];
/// The spaces of the tables of a state.
pub const TABLES: [Space; 3] = [PREPARED, DECIDED, OUTCOMES];

/// Why a record of this site can be read.
const WHOLE: &str = "records on disk are whole";

fn key(txn: TxnId) -> Vec<u8> {
    txn.to_be_bytes().to_vec()
}

pub fn put_clock_bound(batch: &mut Batch, bound: Timestamp) {
    batch.put_record(CLOCK_BOUND, Vec::new(), encode(&bound));
}

pub fn put_promised(batch: &mut Batch, ballot: Ballot) {
    batch.put_record(PROMISED, Vec::new(), encode(&ballot));
}

/// The marks are a type of [`state`](crate::state).
pub fn put_marks(batch: &mut Batch, marks: &impl Serialize) {
    batch.put_record(MARKS, Vec::new(), encode(marks));
}

pub fn put_prepared(batch: &mut Batch, txn: TxnId, prepared: &Prepared) {
    batch.put_record(PREPARED, key(txn), encode(prepared));
}

pub fn delete_prepared(batch: &mut Batch, txn: TxnId) {
    batch.delete_record(PREPARED, key(txn));
}

pub fn put_decided(batch: &mut Batch, txn: TxnId, at: Timestamp, others: &BTreeSet<u16>) {
    batch.put_record(DECIDED, key(txn), encode(&(at, others)));
}

pub fn delete_decided(batch: &mut Batch, txn: TxnId) {
    batch.delete_record(DECIDED, key(txn));
}

pub fn put_outcome(batch: &mut Batch, txn: TxnId, committed: Option<Timestamp>) {
    batch.put_record(OUTCOMES, key(txn), encode(&committed));
}

pub fn delete_outcome(batch: &mut Batch, txn: TxnId) {
    batch.delete_record(OUTCOMES, key(txn));
}

pub fn put_entry(batch: &mut Batch, slot: Slot, entry: &Entry<Command>) {
    batch.put_record(LOG, slot.to_be_bytes().to_vec(), encode(entry));
}

pub fn delete_entry(batch: &mut Batch, slot: Slot) {
    batch.delete_record(LOG, slot.to_be_bytes().to_vec());
}

/// The slot and the entry of a record.
pub fn decode_entry(key: &[u8], bytes: &[u8]) -> (Slot, Entry<Command>) {
    (u64::from_be_bytes(key.try_into().expect(WHOLE)), decode(bytes).expect(WHOLE))
}

/// The only record of a space.
pub fn decode_single<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> T {
    decode(bytes).expect(WHOLE)
}
