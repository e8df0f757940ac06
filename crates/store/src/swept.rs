//! Up to which entries the indices of what was written are known to be empty, and what was put while one was walked.

use crate::layout::{Index, index_start};
use rhumb_core::Timestamp;

/// How far the indices are known to be empty: they hold no entry below these keys of the engine. Spares each walk the marks
/// that the removed entries leave behind in a log-structured engine.
#[derive(Debug)]
pub(crate) struct Swept {
    written: Vec<u8>,
    deleted: Vec<u8>,
    /// The lowest version put since the walk began.
    late: Timestamp,
}

impl Default for Swept {
    fn default() -> Swept {
        let start = |index| index_start(index, Timestamp::ZERO);
        Swept { written: start(Index::Written), deleted: start(Index::Deleted), late: Timestamp::MAX }
    }
}

impl Swept {
    /// A version `at` is about to be put.
    pub(crate) fn written(&mut self, at: Timestamp) {
        self.late = self.late.min(at);
        for (index, from) in [(Index::Written, &mut self.written), (Index::Deleted, &mut self.deleted)] {
            let start = index_start(index, at);
            if start < *from {
                *from = start;
            }
        }
    }

    /// A walk begins; returns where in that index.
    pub(crate) fn begin(&mut self, index: Index) -> Vec<u8> {
        self.late = Timestamp::MAX;
        self.of(index).clone()
    }

    /// True if a version at or below `upto` was put since the walk began.
    pub(crate) fn is_late(&self, upto: Timestamp) -> bool {
        self.late <= upto
    }

    /// How far that index is.
    pub(crate) fn of(&mut self, index: Index) -> &mut Vec<u8> {
        match index {
            Index::Written => &mut self.written,
            Index::Deleted => &mut self.deleted,
        }
    }
}
