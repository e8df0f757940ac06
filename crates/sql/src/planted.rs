//! Planted bugs, for testing the tests: each breaks one rule of tables or of the catalog, and the simulator must catch each. Compiled only
//! with the feature `planted`, which no product build has.

use std::cell::Cell;

/// A rule to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// An UPDATE leaves the old entries of indexes where they are.
    EntriesLeft,
    /// A statement does not depend on the descriptor that it was planned by, as its gateway remembers it.
    StaleDescriptors,
    /// An INSERT looks for rows with the same primary key only.
    UniqueUnchecked,
}

impl Planted {
    /// Every planted bug.
    pub const ALL: [Planted; 3] = [Planted::EntriesLeft, Planted::StaleDescriptors, Planted::UniqueUnchecked];
}

thread_local! {
    static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// Plants a bug in all that this thread does from now on.
pub fn plant(bug: Option<Planted>) {
    PLANTED.set(bug);
}

/// True if it is planted here.
pub(crate) fn has(bug: Planted) -> bool {
    PLANTED.get() == Some(bug)
}
