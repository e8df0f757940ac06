//! Keys, values and key ranges: bytes to every layer below SQL, ordered as bytes.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A key. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(pub Bytes);

/// A value. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Value(pub Bytes);

/// The keys from `start` (included) to `end` (excluded).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyRange {
    /// The first key of the range.
    pub start: Key,
    /// The first key past the range.
    pub end: Key,
}

impl Key {
    /// The key with these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Key {
        Key(bytes.into())
    }

    /// The smallest key above this one.
    pub fn successor(&self) -> Key {
        let mut bytes = Vec::with_capacity(self.0.len() + 1);
        bytes.extend_from_slice(&self.0);
        bytes.push(0);
        Key(bytes.into())
    }
}

impl Value {
    /// The value with these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Value {
        Value(bytes.into())
    }
}

impl KeyRange {
    /// The keys from `start` to below `end`.
    pub fn new(start: Key, end: Key) -> KeyRange {
        KeyRange { start, end }
    }

    /// The keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        let mut end = prefix.to_vec();
        // The first key past a prefix: its last byte that can be raised, raised. A prefix of 0xFF bytes has no such
        // byte; no layer above uses one, and a key of 32 of them ends the key space.
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                return KeyRange { start: Key::new(prefix.to_vec()), end: Key::new(end) };
            }
        }
        KeyRange { start: Key::new(prefix.to_vec()), end: Key::new(vec![u8::MAX; 32]) }
    }

    /// True if `key` lies in the range.
    pub fn contains(&self, key: &Key) -> bool {
        self.start <= *key && *key < self.end
    }

    /// True if the two ranges share a key.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// True if no key lies in the range.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

impl fmt::Display for Key {
    /// Printable ASCII as it is, other bytes as two hex digits after `\`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0.iter() {
            match byte {
                b'\\' => write!(f, "\\\\")?,
                0x21..=0x7e => write!(f, "{}", byte as char)?,
                _ => write!(f, "\\{byte:02x}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{},{})", self.start, self.end)
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Key {
        Key::new(text.as_bytes().to_vec())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::new(text.as_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_range_ends_at_the_first_key_past_it() {
        let range = KeyRange::prefix(b"a\xff");
        assert_eq!(range.end, Key::new(b"b".to_vec()));
        assert!(range.contains(&Key::new(b"a\xff\xff\xff".to_vec())));
        assert!(!range.contains(&Key::new(b"b".to_vec())));
        assert!(!range.contains(&Key::new(b"a\xfe".to_vec())));
    }

    #[test]
    fn nothing_lies_between_a_key_and_its_successor() {
        let key = Key::from("k");
        assert!(KeyRange::new(key.clone(), key.successor()).contains(&key));
        assert!(KeyRange::new(key.successor(), key.successor()).is_empty());
    }

    #[test]
    fn keys_print_readably() {
        assert_eq!(Key::new(b"t\x00\\k 1".to_vec()).to_string(), "t\\00\\\\k\\201");
    }
}
