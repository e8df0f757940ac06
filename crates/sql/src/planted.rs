//! The rules of tables and of the catalog that a test may break: the simulator must catch each. In the product all
//! [rules](rhumb_core::rules) hold.

use rhumb_core::Rules;
use std::cell::Cell;

/// A way to break a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// An UPDATE leaves the old entries of indexes where they are.
    EntriesLeft,
    /// A statement does not depend on the descriptor that it was planned by, as its gateway remembers it.
    StaleDescriptors,
    /// Nobody looks for rows that reference one which is gone.
    ReferencesLeft,
    /// An INSERT looks for rows with the same primary key only.
    UniqueUnchecked,
}

impl Planted {
    /// Every planted bug.
    pub const ALL: [Planted; 4] = [Planted::EntriesLeft, Planted::StaleDescriptors, Planted::ReferencesLeft, Planted::UniqueUnchecked];
}

thread_local! {
    static RULES: Cell<Rules<Planted>> = const { Cell::new(Rules::HOLD) };
}

/// Has all that this thread does from now on go by these rules.
pub fn set_rules(rules: Rules<Planted>) {
    RULES.set(rules);
}

/// True if that rule is broken on this thread: never in the product.
pub(crate) fn breaks(rule: Planted) -> bool {
    RULES.get().breaks(rule)
}
