//! A transaction that is prepared here.

use crate::records::PreparedRecord;
use rhumb_core::SiteId;
use std::collections::BTreeSet;

/// See the file's first line.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) record: PreparedRecord,
    /// The tick at which it last asked for its outcome, or heard that it commits.
    pub(super) since: u64,
    /// The tick of this incarnation since which it keeps its locks.
    pub(super) began: u64,
    /// All who are prepared; none before the commit has come.
    pub(super) participants: BTreeSet<SiteId>,
    /// Those who have the commit on disk, as far as they have said so in this incarnation.
    pub(super) confirmed: BTreeSet<SiteId>,
}

impl Prepared {
    pub(super) fn new(record: PreparedRecord, tick: u64) -> Prepared {
        Prepared { record, since: tick, began: tick, participants: BTreeSet::new(), confirmed: BTreeSet::new() }
    }

    /// True if the commit is known to stand at all who are prepared.
    pub(super) fn is_settled(&self) -> bool {
        !self.participants.is_empty() && self.participants.is_subset(&self.confirmed)
    }
}
