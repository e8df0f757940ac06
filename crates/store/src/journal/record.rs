//! The records of a segment.
//!
//! ```text
//!   record   checksum:8 body checksum:8 body length:4 kind:4 number:8 body
//!   `bgin`   the first of a segment     body: secret:8 stamp     number: of the last batch before
//!   `data`   a batch                    body: items              number: its own, one more than the last
//!   `mark`   the first after a sync     body: stamp items
//!   `done`   the last of a segment      no body                  number: of the last batch
//!   stamp    00, or 01 incarnation:8 syncs:8
//!   item     00 key length:2 value length:4 key value, or 01 key length:2 key: a removal
//! ```
//!
//! Integers are little-endian. Both checksums are XXH3-64, that of the head of all in it behind the checksum. They are seeded: those of the first
//! record with the segment's number, all others with its secret, which is drawn anew for each. So nothing that a file held before it became
//! this segment is a record of it, and no client can have the store hold bytes that look like one. The head has a checksum of its own so that
//! to look for records in any bytes takes no longer than the bytes are many.

use crate::engine::Write;
use crate::stamp::Stamp;
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const CHECKSUM_BYTES: usize = 8;
/// Where the kind of a record is.
const KIND_AT: usize = 2 * CHECKSUM_BYTES + 4;
/// All of a record that is not its body.
const HEAD_BYTES: usize = KIND_AT + 4 + 8;

/// What seeds the checksums of a record: never what a client knows, but for the first of a segment.
pub type Seed = u64;

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
    /// Those behind the first of a segment that say that all before was synced.
    const AFTER_A_SYNC: [Kind; 2] = [Kind::Mark, Kind::End];

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
    /// Of the first record of a segment.
    pub secret: Option<Seed>,
    /// The batch.
    pub writes: Vec<Write>,
}

/// Adds the first record of segment `segment` to `bytes`.
pub fn put_begin(bytes: &mut Vec<u8>, segment: u64, last: u64, secret: Seed, stamp: Option<Stamp>) {
    put_record(bytes, segment, Kind::Begin, last, |bytes| {
        bytes.extend_from_slice(&secret.to_le_bytes());
        put_stamp(bytes, stamp);
    });
}

/// Adds a batch to `bytes`; `mark` is there if it is the first one after a sync.
pub fn put_batch(bytes: &mut Vec<u8>, secret: Seed, number: u64, mark: Option<Option<Stamp>>, writes: &[Write]) {
    let kind = if mark.is_some() { Kind::Mark } else { Kind::Data };
    put_record(bytes, secret, kind, number, |bytes| {
        if let Some(stamp) = mark {
            put_stamp(bytes, stamp);
        }
        writes.iter().for_each(|write| put_item(bytes, write));
    });
}

/// Adds the last record of a segment to `bytes`.
pub fn put_end(bytes: &mut Vec<u8>, secret: Seed, last: u64) {
    put_record(bytes, secret, Kind::End, last, |_| {});
}

fn put_record(bytes: &mut Vec<u8>, seed: Seed, kind: Kind, number: u64, body: impl FnOnce(&mut Vec<u8>)) {
    let head = bytes.len();
    bytes.resize(head + HEAD_BYTES, 0);
    body(bytes);
    let (checked, body) = bytes[head..].split_at_mut(HEAD_BYTES);
    let length = u32::try_from(body.len()).expect("batches are bounded");
    checked[CHECKSUM_BYTES..2 * CHECKSUM_BYTES].copy_from_slice(&xxh3_64_with_seed(body, seed).to_le_bytes());
    checked[2 * CHECKSUM_BYTES..KIND_AT].copy_from_slice(&length.to_le_bytes());
    checked[KIND_AT..KIND_AT + 4].copy_from_slice(&kind.tag());
    checked[KIND_AT + 4..].copy_from_slice(&number.to_le_bytes());
    let checksum = xxh3_64_with_seed(&checked[CHECKSUM_BYTES..], seed);
    checked[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
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

/// The first record of segment `segment`, if `bytes` begins with it, and how long it is.
pub fn read_begin(bytes: &Bytes, segment: u64) -> Option<(Record, usize)> {
    read_record(bytes, segment).filter(|(record, _)| record.kind == Kind::Begin)
}

/// The record of the segment with this secret that `bytes` begins with, and how long it is; `None` if none is whole there.
pub fn read(bytes: &Bytes, secret: Seed) -> Option<(Record, usize)> {
    read_record(bytes, secret).filter(|(record, _)| record.kind != Kind::Begin)
}

fn read_record(bytes: &Bytes, seed: Seed) -> Option<(Record, usize)> {
    let head = bytes.first_chunk::<HEAD_BYTES>()?;
    let number_at = |place: usize| u64::from_le_bytes(*head[place..].first_chunk().expect("it is in the head"));
    let kind = Kind::of(*head[KIND_AT..].first_chunk()?)?;
    if xxh3_64_with_seed(&head[CHECKSUM_BYTES..], seed) != number_at(0) {
        return None;
    }
    let length = u32::from_le_bytes(*head[2 * CHECKSUM_BYTES..].first_chunk()?) as usize;
    let end = HEAD_BYTES + length;
    if bytes.len() < end || xxh3_64_with_seed(&bytes[HEAD_BYTES..end], seed) != number_at(CHECKSUM_BYTES) {
        return None;
    }
    let mut body = bytes.slice(HEAD_BYTES..end);
    let secret = if kind == Kind::Begin { Some(Seed::from_le_bytes(take_number(&mut body)?)) } else { None };
    let stamp = if matches!(kind, Kind::Begin | Kind::Mark) { take_stamp(&mut body)? } else { None };
    let mut writes = Vec::new();
    while !body.is_empty() {
        writes.push(take_item(&mut body)?);
    }
    Some((Record { kind, number: number_at(KIND_AT + 4), stamp, secret, writes }, end))
}

/// True if a record that was written after a sync begins anywhere in `bytes`.
pub fn mark_follows(bytes: &Bytes, secret: Seed) -> bool {
    let tags = Kind::AFTER_A_SYNC.map(Kind::tag);
    let places = bytes.windows(4).enumerate().filter(|(_, window)| tags.iter().any(|tag| tag == window));
    places.filter_map(|(place, _)| place.checked_sub(KIND_AT)).any(|start| read(&bytes.slice(start..), secret).is_some())
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
    // Bytes of their own: what lives on in a write buffer must not keep the whole segment in memory.
    let mut own = |length| Some(Bytes::copy_from_slice(&take(bytes, length)?));
    match kind {
        _ if key_length == 0 => None,
        0 => {
            let value_length = u32::from_le_bytes(own(4)?.as_ref().try_into().ok()?) as usize;
            Some(Write::Put { key: own(key_length)?, value: own(value_length)? })
        }
        1 => Some(Write::Remove { key: own(key_length)? }),
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

    const SECRET: Seed = 0x5ec2_e700;
    const STAMP: Option<Stamp> = Some(Stamp { incarnation: 5, syncs: 6 });

    /// One record of each kind, and where each ends.
    fn segment() -> (Bytes, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        put_begin(&mut bytes, 9, 3, SECRET, None);
        ends.push(bytes.len());
        put_batch(&mut bytes, SECRET, 4, None, &writes());
        ends.push(bytes.len());
        put_batch(&mut bytes, SECRET, 5, Some(STAMP), &writes());
        ends.push(bytes.len());
        put_end(&mut bytes, SECRET, 5);
        ends.push(bytes.len());
        (bytes.into(), ends)
    }

    #[test]
    fn records_are_read_back_in_their_own_segment_only() {
        let (bytes, ends) = segment();
        assert_eq!((read_begin(&bytes, 8), read(&bytes, SECRET), read(&bytes, 9)), (None, None, None), "a recycled file held this");
        let begin = Record { kind: Kind::Begin, number: 3, stamp: None, secret: Some(SECRET), writes: vec![] };
        assert_eq!(read_begin(&bytes, 9), Some((begin, ends[0])));
        for (place, (kind, number, stamp, writes)) in
            [(Kind::Data, 4, None, writes()), (Kind::Mark, 5, STAMP, writes()), (Kind::End, 5, None, vec![])].into_iter().enumerate()
        {
            let rest = bytes.slice(ends[place]..);
            assert_eq!((read(&rest, SECRET + 1), read(&rest, 9), read_begin(&rest, 9)), (None, None, None));
            let record = Record { kind, number, stamp, secret: None, writes };
            assert_eq!(read(&rest, SECRET), Some((record, ends[place + 1] - ends[place])));
        }
    }

    #[test]
    fn a_record_that_is_cut_or_flipped_anywhere_is_none() {
        let (bytes, ends) = segment();
        for window in ends.windows(2) {
            let whole = bytes.slice(window[0]..window[1]);
            assert!((0..whole.len()).all(|length| read(&whole.slice(..length), SECRET).is_none()));
            for place in 0..whole.len() {
                let mut flipped = whole.to_vec();
                flipped[place] ^= 0x10;
                assert_eq!(read(&flipped.into(), SECRET), None, "byte {place}");
            }
        }
    }

    #[test]
    fn marks_are_found_at_any_place_and_batches_without_one_are_not() {
        let (bytes, ends) = segment();
        assert!(mark_follows(&bytes.slice(1..), SECRET), "a mark and an end");
        assert!(mark_follows(&bytes.slice(ends[1] + 1..), SECRET), "an end");
        assert!(!mark_follows(&bytes.slice(ends[2] + 1..), SECRET));
        assert!(!mark_follows(&bytes.slice(ends[0]..ends[1]), SECRET), "a batch alone");
        assert!(!mark_follows(&bytes.slice(1..), SECRET + 1), "of another segment");
    }
}
