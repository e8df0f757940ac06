//! The stamp of a store: which incarnation of its site writes it, and how often it has synced in that.
//!
//! It is the value of the engine's mark, the key that begins the first write after each sync ([`crate::journal`]). So it costs nothing,
//! rises with every group that is made durable, and is on disk with the group itself: a store that was restored from a copy shows an
//! older stamp than the one that the site had when it last said anything that rests on its disk.

use crate::error::StoreError;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const NUMBER_BYTES: usize = 8;

/// Which incarnation of its site writes a store, and how often it has synced in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The incarnation.
    pub incarnation: u64,
    /// The groups of writes that were begun in it; all but the last are on disk, and that one once it is synced.
    pub syncs: u64,
}

impl Stamp {
    /// The value of a mark; empty in a store that no site has begun to write.
    pub(crate) fn encode(stamp: Option<Stamp>) -> Bytes {
        let number = |Stamp { incarnation, syncs }| [incarnation.to_be_bytes(), syncs.to_be_bytes()].concat();
        stamp.map(number).unwrap_or_default().into()
    }

    /// The stamp of a store whose mark has this value; none if no site has begun to write it.
    pub(crate) fn decode(value: Option<&[u8]>) -> Result<Option<Stamp>, StoreError> {
        let value = value.unwrap_or_default();
        if value.is_empty() {
            return Ok(None);
        }
        match value.split_first_chunk::<NUMBER_BYTES>().map(|(incarnation, rest)| (incarnation, rest.try_into())) {
            Some((incarnation, Ok(syncs))) => {
                Ok(Some(Stamp { incarnation: u64::from_be_bytes(*incarnation), syncs: u64::from_be_bytes(syncs) }))
            }
            _ => Err(StoreError::Corrupt { place: "the store".into(), detail: format!("its stamp has {} bytes", value.len()) }),
        }
    }
}

/// How often a store has synced in the incarnation of now, as far as its disk knows: for whoever tells others. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Syncs(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    durable: AtomicU64,
    closed: AtomicBool,
}

impl Syncs {
    /// The count: a store that shows less after a crash is not this one.
    pub fn durable(&self) -> u64 {
        self.0.durable.load(Ordering::Acquire)
    }

    /// True once the store is closed and all of it on disk: the count is the last one.
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    pub(crate) fn synced(&self, syncs: u64) {
        self.0.durable.store(syncs, Ordering::Release);
    }

    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_other_bytes_are_damage() {
        let stamp = Some(Stamp { incarnation: 0x0102, syncs: 3 });
        let bytes = Stamp::encode(stamp);
        assert_eq!(bytes, &b"\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x03"[..]);
        assert_eq!(Stamp::decode(Some(&bytes)).expect("whole"), stamp);
        assert_eq!(Stamp::decode(Some(&Stamp::encode(None))).expect("whole"), None);
        assert_eq!(Stamp::decode(None).expect("whole"), None);
        for wrong in [&bytes[..15], &[&bytes[..], &[0]].concat(), &[7]] {
            assert!(matches!(Stamp::decode(Some(wrong)), Err(StoreError::Corrupt { .. })), "{wrong:?}");
        }
    }
}
