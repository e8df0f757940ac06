//! What is asked of a cluster, and what may go wrong in it.

use crate::configuration::{Epoch, Goal};
use crate::planted::Planted;
use crate::quorums::Quorums;
use rhumb_core::{Rules, SiteId};
use std::collections::BTreeSet;

/// A change that somebody asks for.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The site that is asked.
    pub(super) at: usize,
    /// The epoch that is to end.
    pub(super) epoch: Epoch,
    pub(super) goal: Goal,
}

/// The one site that may crash, once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frail {
    pub(super) site: usize,
    /// What it writes is not durable at once.
    pub(super) syncs_late: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) rules: Rules<Planted>,
    /// The quorums of the first epoch; their members are all sites.
    pub(super) first: Quorums,
    pub(super) changes: Vec<Change>,
    /// The gateways of the transactions. There is one in each of the first epochs.
    pub(super) gateways: Vec<usize>,
    pub(super) frail: Option<Frail>,
}

impl Case {
    pub(super) fn sites(&self) -> usize {
        self.first.members().len()
    }

    /// The sites that an operator declares lost in some change.
    pub(super) fn lost(&self) -> BTreeSet<SiteId> {
        self.changes.iter().flat_map(|change| change.goal.lost.iter().copied()).collect()
    }

    pub(super) fn is_frail(&self, site: usize) -> bool {
        self.frail.is_some_and(|frail| frail.site == site)
    }
}
