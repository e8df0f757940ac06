//! Up to which entry the index of deletions is known to be empty, and what was put while it was walked.

use crate::layout::deletions_from;
use rhumb_core::Timestamp;

/// What those who write and who collect tell each other.
#[derive(Debug)]
pub(crate) struct Swept {
    /// The index holds no entry below this key of the engine. Spares each walk the marks that the removed entries leave behind in a log-structured
    /// engine.
    deletions: Vec<u8>,
    /// The lowest version put since the walk began.
    late: Timestamp,
    /// So many versions were put.
    puts: u64,
}

impl Default for Swept {
    fn default() -> Swept {
        Swept { deletions: deletions_from(Timestamp::ZERO), late: Timestamp::MAX, puts: 0 }
    }
}

impl Swept {
    /// A version `at` is about to be put.
    pub(crate) fn written(&mut self, at: Timestamp) {
        self.late = self.late.min(at);
        self.puts += 1;
        let start = deletions_from(at);
        if start < self.deletions {
            self.deletions = start;
        }
    }

    /// A walk begins; returns where.
    pub(crate) fn begin(&mut self) -> Vec<u8> {
        self.late = Timestamp::MAX;
        self.deletions.clone()
    }

    /// True if a version at or below `upto` was put since the walk began.
    pub(crate) fn is_late(&self, upto: Timestamp) -> bool {
        self.late <= upto
    }

    /// Where the next walk begins.
    pub(crate) fn deletions(&mut self) -> &mut Vec<u8> {
        &mut self.deletions
    }

    /// So many versions were put since the store was opened.
    pub(crate) fn puts(&self) -> u64 {
        self.puts
    }
}
