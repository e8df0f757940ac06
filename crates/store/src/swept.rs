//! Up to which timestamps the indices of what was written are known to be empty.

use crate::layout::Index;
use rhumb_core::Timestamp;

/// How far the indices are known to be empty: below these timestamps they hold no entry. Spares each walk the marks
/// that the removed entries leave behind in a log-structured engine.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    written: Timestamp,
    deleted: Timestamp,
}

impl Swept {
    /// A version `at` is about to be put.
    pub(crate) fn written(&mut self, at: Timestamp) {
        self.written = self.written.min(at);
        self.deleted = self.deleted.min(at);
    }

    /// How far that index is.
    pub(crate) fn of(&mut self, index: Index) -> &mut Timestamp {
        match index {
            Index::Written => &mut self.written,
            Index::Deleted => &mut self.deleted,
        }
    }
}
