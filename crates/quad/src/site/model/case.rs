//! What is asked of a cluster.

use crate::configuration::Goal;
use crate::planted::Planted;
use crate::quorums::Quorums;
use rhumb_core::{Rules, SiteId};
use std::collections::BTreeSet;

/// A change that somebody asks for.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The site that is asked.
    pub(super) at: usize,
    pub(super) goal: Goal,
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) rules: Rules<Planted>,
    /// The quorums of the first epoch; their members are all sites.
    pub(super) first: Quorums,
    /// The changes of the first epoch, of which one at the most comes about.
    pub(super) changes: Vec<Change>,
    /// The gateway of the transaction, which is one of the first epoch, if there is one.
    pub(super) gateway: Option<usize>,
}

impl Case {
    pub(super) fn sites(&self) -> usize {
        self.first.members().len()
    }

    /// The sites that an operator declares lost for one of the changes.
    pub(super) fn lost(&self) -> BTreeSet<SiteId> {
        self.changes.iter().flat_map(|change| change.goal.lost.iter().copied()).collect()
    }
}
