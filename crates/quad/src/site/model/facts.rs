//! What the checks look at in a machine.

use crate::configuration::Epoch;
use std::collections::{BTreeMap, BTreeSet};

/// What a client was told of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Committed,
    Failed,
    Unknown,
}

#[derive(Debug)]
pub(super) struct Facts {
    pub(super) epoch: Epoch,
    /// Transactions of its epoch go on here.
    pub(super) is_open: bool,
    /// All that was committed before this epoch is here, as the site says.
    pub(super) holds: Epoch,
    /// The transactions whose rows are here, by their numbers.
    pub(super) rows: BTreeSet<usize>,
    /// What clients were told here of theirs.
    pub(super) ends: BTreeMap<usize, End>,
    /// Transactions that wait for an outcome.
    pub(super) unresolved: usize,
    /// A number for all that is here but for the name of the next question.
    pub(super) rest: u64,
}
