//! The keys and values that the store lays down in an engine: the one place that knows the bytes (see `FORMAT.md`).
//!
//! ```text
//!   meta      00 "format"                           → the format version in ASCII digits
//!   flushed   00 "flushed"                          → the number of the last batch that table files hold (see `disk/mod.rs`)
//!   version   01 escape(key) 00 00 ~timestamp:8     → 00 (deletion) | 01 value
//!   record    02 space:1 key                        → bytes
//!   deleted   04 timestamp:8 escape(key) 00 00      → empty: this version was written, and is a deletion
//! ```
//!
//! `escape` writes each byte 00 as 00 FF and leaves the others. With the terminator 00 00 behind it, the order of the
//! escaped is the order of the keys, and no escaped key is a prefix of another. Integers are big-endian; `~` inverts
//! all bits, so that of two versions of a key the newer comes first.

use crate::error::StoreError;
use bytes::Bytes;
use rhumb_core::actor::Space;
use rhumb_core::{Key, Timestamp, Value};

/// The version of this layout.
pub const FORMAT_VERSION: u32 = 13;

/// The key of the record that holds the format version.
pub const FORMAT_KEY: &[u8] = b"\x00format";

const VERSIONS: u8 = 1;
const RECORDS: u8 = 2;
const DELETIONS: u8 = 4;
const TERMINATOR: [u8; 2] = [0, 0];
const ESCAPED_ZERO: [u8; 2] = [0, 0xff];
const TIMESTAMP_BYTES: usize = 8;
const DELETION: u8 = 0;
const VALUE: u8 = 1;

/// What all versions of `key` begin with, and nothing else does.
pub fn key_prefix(key: &Key) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(key.0.len() + TERMINATOR.len() + TIMESTAMP_BYTES + 1);
    bytes.push(VERSIONS);
    escape_into(&mut bytes, &key.0);
    bytes
}

/// Where the version `at` of the key with this prefix lies, or would lie.
pub fn version_key(prefix: &[u8], at: Timestamp) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(prefix.len() + TIMESTAMP_BYTES);
    bytes.extend_from_slice(prefix);
    bytes.extend_from_slice(&(!at.bits()).to_be_bytes());
    bytes
}

/// The first place past all versions of the key with this prefix.
pub fn past_key(prefix: &[u8]) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    // The terminator's last byte, raised: 00 01 lies above 00 00 and below 00 FF, which goes on a longer key.
    *bytes.last_mut().expect("a prefix ends in the terminator") = 1;
    bytes
}

/// The first place of versions, and the first past them.
pub fn all_versions() -> (&'static [u8], &'static [u8]) {
    (&[VERSIONS], &[VERSIONS + 1])
}

/// The same as [`split_version`]; none if in this place there is something else.
pub fn version_at(stored: &[u8]) -> Option<(&[u8], Timestamp)> {
    if stored.first() == Some(&VERSIONS) { split_version(stored).ok() } else { None }
}

/// Splits the place of a version into its key's prefix and its timestamp.
pub fn split_version(stored: &[u8]) -> Result<(&[u8], Timestamp), StoreError> {
    match stored.split_last_chunk::<TIMESTAMP_BYTES>() {
        Some((prefix, inverted)) if prefix.ends_with(&TERMINATOR) => Ok((prefix, Timestamp::from_bits(!u64::from_be_bytes(*inverted)))),
        _ => Err(malformed("a version", stored)),
    }
}

/// The key with this prefix.
pub fn key_of(prefix: &[u8]) -> Result<Key, StoreError> {
    let escaped =
        prefix.strip_prefix(&[VERSIONS]).and_then(|rest| rest.strip_suffix(&TERMINATOR)).ok_or_else(|| malformed("a version", prefix))?;
    let mut key = Vec::with_capacity(escaped.len());
    let mut rest = escaped.iter();
    while let Some(&byte) = rest.next() {
        key.push(byte);
        if byte == 0 && rest.next() != Some(&ESCAPED_ZERO[1]) {
            return Err(malformed("a version", prefix));
        }
    }
    Ok(Key::new(key))
}

/// What is stored for a version.
pub fn encode_value(value: Option<&Value>) -> Bytes {
    match value {
        None => Bytes::from_static(&[DELETION]),
        Some(value) => {
            let mut bytes = Vec::with_capacity(value.0.len() + 1);
            bytes.push(VALUE);
            bytes.extend_from_slice(&value.0);
            bytes.into()
        }
    }
}

/// What a version holds; `None` for a deletion. Shares the bytes.
pub fn decode_value(stored: &Bytes) -> Result<Option<Value>, StoreError> {
    match stored.split_first() {
        Some((&DELETION, [])) => Ok(None),
        Some((&VALUE, _)) => Ok(Some(Value(stored.slice(1..)))),
        _ => Err(malformed("the value of a version", stored)),
    }
}

/// The place of a record.
pub fn record_key(space: Space, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(key.len() + 2);
    bytes.extend_from_slice(&[RECORDS, space.0]);
    bytes.extend_from_slice(key);
    bytes
}

/// The first place past all records of `space`.
pub fn past_space(space: Space) -> Vec<u8> {
    match space.0.checked_add(1) {
        Some(next) => vec![RECORDS, next],
        None => vec![RECORDS + 1],
    }
}

/// The key of the record in this place.
pub fn key_of_record(stored: &Bytes) -> Bytes {
    stored.slice(2..)
}

/// The place in the index of deletions of the one `at` of the key with this prefix.
pub fn deletion_key(at: Timestamp, prefix: &[u8]) -> Vec<u8> {
    let mut bytes = deletions_from(at);
    bytes.extend_from_slice(&prefix[1..]);
    bytes
}

/// The first place in the index of deletions of those not below `at`.
pub fn deletions_from(at: Timestamp) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + TIMESTAMP_BYTES);
    bytes.push(DELETIONS);
    bytes.extend_from_slice(&at.bits().to_be_bytes());
    bytes
}

/// The first place in the index of deletions of those above `at`.
pub fn deletions_past(at: Timestamp) -> Vec<u8> {
    if at == Timestamp::MAX { vec![DELETIONS + 1] } else { deletions_from(at.next()) }
}

/// The timestamp of an entry of the index of deletions, and the prefix of its key's versions.
pub fn split_deletion(stored: &[u8]) -> Result<(Timestamp, Vec<u8>), StoreError> {
    let (at, escaped) = stored
        .get(1..)
        .and_then(|rest| rest.split_first_chunk::<TIMESTAMP_BYTES>())
        .ok_or_else(|| malformed("an entry of the index of deletions", stored))?;
    if !escaped.ends_with(&TERMINATOR) {
        return Err(malformed("an entry of the index of deletions", stored));
    }
    let mut prefix = Vec::with_capacity(escaped.len() + 1);
    prefix.push(VERSIONS);
    prefix.extend_from_slice(escaped);
    Ok((Timestamp::from_bits(u64::from_be_bytes(*at)), prefix))
}

fn escape_into(bytes: &mut Vec<u8>, key: &[u8]) {
    let mut parts = key.split(|&byte| byte == 0);
    bytes.extend_from_slice(parts.next().expect("a split has at least one part"));
    for part in parts {
        bytes.extend_from_slice(&ESCAPED_ZERO);
        bytes.extend_from_slice(part);
    }
    bytes.extend_from_slice(&TERMINATOR);
}

fn malformed(what: &str, stored: &[u8]) -> StoreError {
    StoreError::Corrupt { place: "the store".into(), detail: format!("`{}` is not {what}", Key::new(stored.to_vec())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: &[u8]) -> Key {
        Key::new(bytes.to_vec())
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let at = Timestamp::from_bits(0x0102);
        let prefix = key_prefix(&key(b"a\x00b"));
        assert_eq!(prefix, b"\x01a\x00\xffb\x00\x00");
        assert_eq!(version_key(&prefix, at), b"\x01a\x00\xffb\x00\x00\xff\xff\xff\xff\xff\xff\xfe\xfd");
        assert_eq!(deletion_key(at, &prefix), b"\x04\x00\x00\x00\x00\x00\x00\x01\x02a\x00\xffb\x00\x00");
        assert_eq!(record_key(Space(9), b"k"), b"\x02\x09k");
        assert_eq!(encode_value(None), &b"\x00"[..]);
        assert_eq!(encode_value(Some(&Value::from("v"))), &b"\x01v"[..]);
    }

    #[test]
    fn places_are_ordered_by_key_and_then_from_the_newest_version_down() {
        let mut keys: Vec<Key> =
            [&b""[..], b"\x00", b"\x00\x00", b"\x00\x01", b"\x00\xff", b"\x01", b"a", b"a\x00", b"a\x00\xff", b"a\xff", b"b", b"\xff"]
                .iter()
                .map(|bytes| key(bytes))
                .collect();
        keys.sort();
        let mut places = Vec::new();
        for key in &keys {
            let prefix = key_prefix(key);
            assert_eq!(key_of(&prefix).expect("well formed"), *key);
            for bits in [u64::MAX, 7, 6, 1, 0] {
                let place = version_key(&prefix, Timestamp::from_bits(bits));
                assert_eq!(split_version(&place).expect("well formed"), (&prefix[..], Timestamp::from_bits(bits)));
                places.push(place);
            }
            places.push(past_key(&prefix));
        }
        assert!(places.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn an_entry_of_the_index_leads_back_to_its_key() {
        let prefix = key_prefix(&key(b"a\x00"));
        let at = Timestamp::from_bits(77);
        let entry = deletion_key(at, &prefix);
        assert_eq!(split_deletion(&entry).expect("well formed"), (at, prefix));
        assert!(deletions_from(at) <= entry && entry < deletions_past(at));
        assert!(entry < deletions_past(Timestamp::MAX));
    }

    #[test]
    fn bytes_that_nobody_wrote_are_an_error() {
        assert!(key_of(b"\x01a\x00\x02\x00\x00").is_err(), "an escape that does not exist");
        assert!(key_of(b"\x01a").is_err(), "no terminator");
        assert!(split_version(b"\x01").is_err());
        assert!(split_version(b"\x01a\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff").is_err(), "no terminator");
        assert!(split_deletion(b"\x04\x00").is_err());
        assert!(decode_value(&Bytes::from_static(b"\x02v")).is_err());
        assert!(decode_value(&Bytes::from_static(b"\x00v")).is_err());
        assert!(decode_value(&Bytes::new()).is_err());
    }
}
