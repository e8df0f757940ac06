//! The small key-value trait that an engine implements: ordered bytes to bytes, atomic writes, snapshots to read from.

use crate::error::StoreError;
use bytes::Bytes;
use rhumb_core::Timestamp;
use serde::{Deserialize, Serialize};

/// One engine-level write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Write {
    /// Sets `key` to `value`.
    Put {
        /// The key.
        key: Bytes,
        /// Its value.
        value: Bytes,
    },
    /// Removes `key`; no harm if it is not there.
    Remove {
        /// The key.
        key: Bytes,
    },
}

/// Keys and values in order.
pub type Entries<'a> = Box<dyn Iterator<Item = Result<(Bytes, Bytes), StoreError>> + 'a>;

/// The content of an engine at one moment: writes made later do not show.
pub trait View {
    /// The value of `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// The keys from `start` (included) to `end` (excluded) in ascending order, or in descending order if `reverse`.
    /// Costs one seek, and one step per entry taken. `start` must not lie above `end`.
    fn range(&self, start: &[u8], end: &[u8], reverse: bool) -> Entries<'_>;
}

/// A key-value engine, safe to share between threads. Keys are 1 to 65,535 bytes long.
///
/// Writes become durable in the order they were made: after a crash the engine holds the writes of some prefix of the
/// calls of [`write`](Engine::write), each whole, and all made before the last [`sync`](Engine::sync) that returned.
pub trait Engine: Send + Sync + 'static {
    /// What the engine holds now. Short-lived: a view kept may block writers or hold on to disk space.
    fn view(&self) -> Box<dyn View + '_>;

    /// Carries out `writes` in order and as one: no view and no crash sees a part of them. They show in later views at
    /// once, but are durable only after [`sync`](Engine::sync).
    fn write(&self, writes: Vec<Write>) -> Result<(), StoreError>;

    /// Returns once everything written before the call is durable.
    fn sync(&self) -> Result<(), StoreError>;

    /// From now on the engine may drop garbage by itself, as a sieve (`sieve.rs`) with this horizon or a lower one tells: where it rewrites what it holds,
    /// that costs nothing. Never before all that supersedes it is durable. Whoever gives a horizon must know after a crash not to read below it, and must
    /// not put anything below a deletion that it has removed. Forgotten when the engine is closed or crashes.
    fn collect(&self, horizon: Timestamp);
}
