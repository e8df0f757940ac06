//! What a site keeps on disk besides rows.
//!
//! | space | key | holds |
//! |---|---|---|
//! | [`ENTRIES`] | region, place in its stream, big-endian | the entry accepted there, and at which ballot |
//! | [`PROMISES`] | region | the ballot below which this site accepts nothing in that stream |
//! | [`PROGRESS`] | nothing | [`Progress`]: what is settled and need not be run again |
//!
//! Entries stay until every site has settled them. Records are encoded with postcard.

use super::message::{Ballot, Entry, Progress};
use crate::replicated_commit::records::{decode, encode};
use rhumb_core::actor::Space;
use rhumb_core::{Batch, RegionId};

/// Entries of all streams.
pub const ENTRIES: Space = Space(48);
/// Promised ballots.
pub const PROMISES: Space = Space(49);
/// How far this site has come.
pub const PROGRESS: Space = Space(50);

/// The key of an entry.
pub fn entry_key(region: RegionId, index: u64) -> Vec<u8> {
    [&region.0.to_be_bytes()[..], &index.to_be_bytes()].concat()
}

/// The region and the place in a key of [`ENTRIES`].
pub fn decode_entry_key(key: &[u8]) -> Option<(RegionId, u64)> {
    let (region, index) = key.split_at_checked(2)?;
    Some((RegionId(u16::from_be_bytes(region.try_into().ok()?)), u64::from_be_bytes(index.try_into().ok()?)))
}

/// Adds an entry to a batch.
pub fn put_entry(batch: &mut Batch, region: RegionId, index: u64, accepted: &(Ballot, Entry)) {
    batch.put_record(ENTRIES, entry_key(region, index), encode(accepted));
}

/// The ballot and the entry in a record of [`ENTRIES`].
pub fn decode_entry(bytes: &[u8]) -> Option<(Ballot, Entry)> {
    decode(bytes)
}

/// Adds a promise to a batch.
pub fn put_promise(batch: &mut Batch, region: RegionId, ballot: Ballot) {
    batch.put_record(PROMISES, region.0.to_be_bytes().to_vec(), encode(&ballot));
}

/// The region and the ballot in a record of [`PROMISES`].
pub fn decode_promise(key: &[u8], bytes: &[u8]) -> Option<(RegionId, Ballot)> {
    Some((RegionId(u16::from_be_bytes(key.try_into().ok()?)), decode(bytes)?))
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
    use crate::catenae::epoch::Epoch;
    use rhumb_core::SiteId;

    #[test]
    fn entries_sort_by_region_and_place_and_round_trip() {
        assert!(entry_key(RegionId(0), 300) < entry_key(RegionId(0), 301));
        assert!(entry_key(RegionId(0), u64::MAX) < entry_key(RegionId(1), 0));
        assert_eq!(decode_entry_key(&entry_key(RegionId(7), 300)), Some((RegionId(7), 300)));
        assert_eq!(decode_entry_key(&[1]), None);
        let entry = Entry { author: SiteId::new(1, 0), epoch: Epoch(3), batch: vec![], orders: vec![] };
        let bytes = encode(&(Ballot::first(RegionId(1)), &entry));
        assert_eq!(decode_entry(&bytes), Some((Ballot::first(RegionId(1)), entry)));
    }
}
