//! From disk to serving: a new incarnation loads its numbers, its votes and what it is prepared for, takes its locks again, and
//! only then hears anybody.

use super::config::{PAGE_BYTES_MAX, RECOVERY_PAGE};
use super::records::{CARRIED, NUMBERS, PLACEMENT, PREPARED, PlacementRecord, VOTES};
use rhumb_commit::pages::Pages;
use rhumb_core::actor::Space;

/// What is carried comes last: it may want keys that this site is prepared to write.
const ORDER: [Space; 5] = [NUMBERS, PLACEMENT, VOTES, PREPARED, CARRIED];

/// How far recovery has come.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    pub(super) pages: Pages,
    pub(super) placement: Option<PlacementRecord>,
}

impl Recovery {
    /// Nothing is read yet.
    pub(super) fn new() -> Recovery {
        Recovery { pages: Pages::new(&ORDER, RECOVERY_PAGE, PAGE_BYTES_MAX), placement: None }
    }
}
