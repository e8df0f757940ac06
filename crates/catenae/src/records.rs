//! What a site keeps on disk besides rows.
//!
//! | space | key | holds |
//! |---|---|---|
//! | [`ENTRIES`] | stream, place in it, big-endian | the entry accepted there, and at which ballot |
//! | [`PROMISES`] | stream | the ballot below which this site accepts nothing in that stream |
//! | [`PROGRESS`] | nothing | [`Progress`]: what is settled and need not be run again |
//!
//! Entries stay until every site has settled them. Records are encoded with postcard.

use super::message::{Entry, Progress, Standing};
use super::stream_id::StreamId;
use rhumb_core::actor::Space;
use rhumb_core::record::{decode, encode};
use rhumb_core::{Ballot, Batch};

/// Entries of all streams.
pub const ENTRIES: Space = Space(48);
/// Promised ballots.
pub const PROMISES: Space = Space(49);
/// How far this site has come.
pub const PROGRESS: Space = Space(50);

/// The key of an entry.
pub fn entry_key(stream: StreamId, index: u64) -> Vec<u8> {
    [&stream.to_be_bytes()[..], &index.to_be_bytes()].concat()
}

/// The stream and the place in a key of [`ENTRIES`].
pub fn decode_entry_key(key: &[u8]) -> Option<(StreamId, u64)> {
    let (stream, index) = key.split_at_checked(2)?;
    Some((StreamId::from_be_bytes(stream.try_into().ok()?), u64::from_be_bytes(index.try_into().ok()?)))
}

/// Adds an entry to a batch.
pub fn put_entry(batch: &mut Batch, stream: StreamId, index: u64, accepted: &(Standing, Entry)) {
    batch.put_record(ENTRIES, entry_key(stream, index), encode(accepted));
}

/// The ballot and the entry in a record of [`ENTRIES`].
pub fn decode_entry(bytes: &[u8]) -> Option<(Standing, Entry)> {
    decode(bytes)
}

/// Adds a promise to a batch.
pub fn put_promise(batch: &mut Batch, stream: StreamId, ballot: Ballot) {
    batch.put_record(PROMISES, stream.to_be_bytes().to_vec(), encode(&ballot));
}

/// The stream and the ballot in a record of [`PROMISES`].
pub fn decode_promise(key: &[u8], bytes: &[u8]) -> Option<(StreamId, Ballot)> {
    Some((StreamId::from_be_bytes(key.try_into().ok()?), decode(bytes)?))
}

/// Adds how far this site has come to a batch.
pub fn put_progress(batch: &mut Batch, progress: &Progress) {
    batch.put_record(PROGRESS, Vec::new(), encode(progress));
}

/// What a record of [`PROGRESS`] holds.
pub fn decode_progress(bytes: &[u8]) -> Option<Progress> {
    decode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::Epoch;
    use rhumb_core::{RegionId, SiteId};

    #[test]
    fn entries_sort_by_stream_and_place_and_round_trip() {
        let stream = |region| StreamId::first(RegionId(region));
        assert!(entry_key(stream(0), 300) < entry_key(stream(0), 301));
        assert!(entry_key(stream(0), u64::MAX) < entry_key(stream(1), 0));
        assert_eq!(decode_entry_key(&entry_key(stream(7), 300)), Some((stream(7), 300)));
        assert_eq!(decode_entry_key(&[1]), None);
        let entry = Entry { author: SiteId::new(1, 0), epoch: Epoch(3), batch: vec![], orders: vec![] };
        let standing = Standing::Accepted(stream(1).first_ballot());
        let bytes = encode(&(standing, &entry));
        assert_eq!(decode_entry(&bytes), Some((standing, entry)));
    }
}
