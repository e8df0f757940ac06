//! What the clients of a scenario share with its checks.

use crate::history::History;

/// What the clients of a run have recorded.
pub(crate) trait Recorded {
    /// Their transactions.
    fn history(&self) -> &History;
    /// The first thing that a single answer showed to be wrong.
    fn wrong(&self) -> Option<&String>;
}
