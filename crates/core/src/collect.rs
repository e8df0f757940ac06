//! What garbage collection may drop.

use crate::hlc::Timestamp;

/// Which old versions may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collect {
    /// No reader asks for anything below: of each key's versions at or below it only the newest need stay.
    pub horizon: Timestamp,
    /// A deletion at or below this is known to every replica: it may go too, with all that it covers. Never above
    /// `horizon`.
    pub deletions: Timestamp,
}
