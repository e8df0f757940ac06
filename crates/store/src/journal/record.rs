//! The records of a segment.
//!
//! ```text
//!   record   checksum:8 body length:4 kind:4 number:8 body        XXH3-64 of all behind it, seeded with the segment's number
//!   `bgin`   the first of a segment     body: stamp      number: of the last batch before
//!   `data`   a batch                    body: items      number: its own, one more than the last
//!   `mark`   the first after a sync     body: stamp items
//!   `done`   the last of a segment      no body          number: of the last batch
//!   stamp    00, or 01 incarnation:8 syncs:8
//!   item     00 key length:2 value length:4 key value, or 01 key length:2 key: a removal
//! ```
//!
//! Integers are little-endian.

use crate::engine::Write;
use crate::stamp::Stamp;
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const CHECKSUM_BYTES: usize = 8;
/// All of a record that is not its body.
const HEADER_BYTES: usize = CHECKSUM_BYTES + 4 + 4 + 8;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first of a segment.
    Begin,
    /// A batch.
    Data,
    /// The first batch after a sync.
    Mark,
    /// The last of a segment.
    End,
}

impl Kind {
    /// Those that say that all before was synced.
    const AFTER_A_SYNC: [Kind; 3] = [Kind::Begin, Kind::Mark, Kind::End];

    fn tag(self) -> [u8; 4] {
        match self {
            Kind::Begin => *b"bgin",
            Kind::Data => *b"data",
            Kind::Mark => *b"mark",
            Kind::End => *b"done",
        }
    }

    fn of(tag: [u8; 4]) -> Option<Kind> {
        [Kind::Begin, Kind::Data, Kind::Mark, Kind::End].into_iter().find(|kind| kind.tag() == tag)
    }
}

/// A record that is whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is.
    pub kind: Kind,
    /// The batch's number, or that of the last one before.
    pub number: u64,
    /// What begins with a sync names who wrote it.
    pub stamp: Option<Stamp>,
    /// The batch.
    pub writes: Vec<Write>,
}

/// Adds a record to `bytes`.
pub fn put(bytes: &mut Vec<u8>, segment: u64, kind: Kind, number: u64, stamp: Option<Stamp>, writes: &[Write]) {
    let place = bytes.len();
    bytes.resize(place + CHECKSUM_BYTES + 4, 0);
    bytes.extend_from_slice(&kind.tag());
    bytes.extend_from_slice(&number.to_le_bytes());
    if matches!(kind, Kind::Begin | Kind::Mark) {
        put_stamp(bytes, stamp);
    }
    writes.iter().for_each(|write| put_item(bytes, write));
    let body = u32::try_from(bytes.len() - place - HEADER_BYTES).expect("a batch is bounded by the messages that it came in");
    bytes[place + CHECKSUM_BYTES..place + CHECKSUM_BYTES + 4].copy_from_slice(&body.to_le_bytes());
    let checksum = xxh3_64_with_seed(&bytes[place + CHECKSUM_BYTES..], segment);
    bytes[place..place + CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

fn put_stamp(bytes: &mut Vec<u8>, stamp: Option<Stamp>) {
    bytes.push(u8::from(stamp.is_some()));
    if let Some(Stamp { incarnation, syncs }) = stamp {
        bytes.extend_from_slice(&incarnation.to_le_bytes());
        bytes.extend_from_slice(&syncs.to_le_bytes());
    }
}

fn put_item(bytes: &mut Vec<u8>, write: &Write) {
    let put_length = |bytes: &mut Vec<u8>, key: &Bytes| {
        bytes.extend_from_slice(&u16::try_from(key.len()).expect("a key of the engine has at most 65,535 bytes").to_le_bytes());
    };
    match write {
        Write::Put { key, value } => {
            bytes.push(0);
            put_length(bytes, key);
            bytes.extend_from_slice(&u32::try_from(value.len()).expect("values are bounded").to_le_bytes());
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value);
        }
        Write::Remove { key } => {
            bytes.push(1);
            put_length(bytes, key);
            bytes.extend_from_slice(key);
        }
    }
}

/// The record of `segment` that `bytes` begins with, and how long it is; `None` if none is whole there.
pub fn read(bytes: &Bytes, segment: u64) -> Option<(Record, usize)> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    let kind = Kind::of(*header[12..].first_chunk()?)?;
    let body = u32::from_le_bytes(*header[8..].first_chunk()?) as usize;
    let whole = bytes.get(..HEADER_BYTES + body)?;
    if xxh3_64_with_seed(&whole[CHECKSUM_BYTES..], segment).to_le_bytes() != header[..CHECKSUM_BYTES] {
        return None;
    }
    let mut rest = bytes.slice(HEADER_BYTES..HEADER_BYTES + body);
    let stamp = if matches!(kind, Kind::Begin | Kind::Mark) { take_stamp(&mut rest)? } else { None };
    let mut writes = Vec::new();
    while !rest.is_empty() {
        writes.push(take_item(&mut rest)?);
    }
    let number = u64::from_le_bytes(*header[16..].first_chunk()?);
    Some((Record { kind, number, stamp, writes }, whole.len()))
}

/// True if a record that was written after a sync begins anywhere in `bytes`.
pub fn mark_follows(bytes: &Bytes, segment: u64) -> bool {
    let tags = Kind::AFTER_A_SYNC.map(Kind::tag);
    let places = bytes.windows(4).enumerate().filter(|(_, window)| tags.iter().any(|tag| tag == window));
    places.filter_map(|(place, _)| place.checked_sub(CHECKSUM_BYTES + 4)).any(|start| read(&bytes.slice(start..), segment).is_some())
}

fn take(bytes: &mut Bytes, length: usize) -> Option<Bytes> {
    (bytes.len() >= length).then(|| bytes.split_to(length))
}

fn take_number<const N: usize>(bytes: &mut Bytes) -> Option<[u8; N]> {
    take(bytes, N)?.as_ref().try_into().ok()
}

fn take_stamp(bytes: &mut Bytes) -> Option<Option<Stamp>> {
    match take_number::<1>(bytes)? {
        [0] => Some(None),
        [1] => {
            let (incarnation, syncs) = (take_number(bytes)?, take_number(bytes)?);
            Some(Some(Stamp { incarnation: u64::from_le_bytes(incarnation), syncs: u64::from_le_bytes(syncs) }))
        }
        _ => None,
    }
}

fn take_item(bytes: &mut Bytes) -> Option<Write> {
    let [kind] = take_number(bytes)?;
    let key_length = usize::from(u16::from_le_bytes(take_number(bytes)?));
    match kind {
        0 => {
            let value_length = u32::from_le_bytes(take_number(bytes)?) as usize;
            Some(Write::Put { key: take(bytes, key_length)?, value: take(bytes, value_length)? })
        }
        1 => Some(Write::Remove { key: take(bytes, key_length)? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes() -> Vec<Write> {
        let bytes = Bytes::from_static;
        vec![
            Write::Put { key: bytes(b"k"), value: bytes(b"") },
            Write::Remove { key: bytes(b"gone") },
            Write::Put { key: bytes(b"l"), value: vec![7; 300].into() },
        ]
    }

    /// One record of each kind, and where each ends.
    fn segment() -> (Vec<u8>, Vec<usize>) {
        let stamp = Some(Stamp { incarnation: 5, syncs: 6 });
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for (kind, number, stamp, writes) in [
            (Kind::Begin, 3, None, vec![]),
            (Kind::Data, 4, None, writes()),
            (Kind::Mark, 5, stamp, writes()),
            (Kind::End, 5, None, vec![]),
        ] {
            put(&mut bytes, 9, kind, number, stamp, &writes);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    #[test]
    fn records_are_read_back_in_their_own_segment_only() {
        let (bytes, ends) = segment();
        let mut rest = Bytes::from(bytes);
        for (kind, number, stamp, items) in [
            (Kind::Begin, 3, None, vec![]),
            (Kind::Data, 4, None, writes()),
            (Kind::Mark, 5, Some(Stamp { incarnation: 5, syncs: 6 }), writes()),
            (Kind::End, 5, None, vec![]),
        ] {
            assert_eq!(read(&rest, 8), None, "a recycled file held this");
            let (record, length) = read(&rest, 9).expect("whole");
            assert_eq!(record, Record { kind, number, stamp, writes: items });
            rest = rest.slice(length..);
        }
        assert_eq!((rest.len(), ends.len()), (0, 4));
    }

    #[test]
    fn a_record_that_is_cut_or_flipped_anywhere_is_none() {
        let (bytes, ends) = segment();
        for window in ends.windows(2) {
            let whole = &bytes[window[0]..window[1]];
            assert!((0..whole.len()).all(|length| read(&Bytes::copy_from_slice(&whole[..length]), 9).is_none()));
            for place in 0..whole.len() {
                let mut flipped = whole.to_vec();
                flipped[place] ^= 0x10;
                assert_eq!(read(&flipped.into(), 9), None, "byte {place}");
            }
        }
    }

    #[test]
    fn marks_are_found_at_any_place_and_batches_without_one_are_not() {
        let (bytes, ends) = segment();
        let bytes = Bytes::from(bytes);
        assert!(mark_follows(&bytes.slice(1..), 9), "a mark and an end");
        assert!(mark_follows(&bytes.slice(ends[1] + 1..), 9), "an end");
        assert!(!mark_follows(&bytes.slice(ends[2] + 1..), 9));
        assert!(!mark_follows(&bytes.slice(ends[0]..ends[1]), 9), "a batch alone");
        assert!(!mark_follows(&bytes.slice(1..), 8), "of another segment");
    }
}
