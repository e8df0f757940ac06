//! What is asked of a cluster, and what may happen to it.

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

/// A transaction that a client commits, the only one of its epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    pub(super) gateway: usize,
    pub(super) epoch: Epoch,
}

/// A site that may crash and start again, once, while it gets what it lacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frail {
    pub(super) site: usize,
    /// The source whose answers may arrive at any time. Those of others arrive at once after the crash, and are lost before it.
    pub(super) late_source: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) rules: Rules<Planted>,
    /// The quorums of the first epoch; their members are all sites.
    pub(super) first: Quorums,
    /// Of the changes of one epoch one at the most comes about.
    pub(super) changes: Vec<Change>,
    pub(super) transactions: Vec<Transaction>,
    /// The sites at which the first epoch has ended when the search begins, in each of these ways: its client has committed, its change has come
    /// about, and the others have not heard of that yet. There is none where the search begins before that.
    pub(super) first_ended_at: Vec<BTreeSet<usize>>,
    pub(super) frail: Option<Frail>,
}

impl Case {
    pub(super) fn sites(&self) -> usize {
        self.first.members().len()
    }

    /// True if several sites want to end the same epoch.
    pub(super) fn has_rivals(&self) -> bool {
        self.changes.windows(2).any(|pair| pair[0].epoch == pair[1].epoch)
    }

    /// The sites that an operator declares lost for one of the changes.
    pub(super) fn lost(&self) -> BTreeSet<SiteId> {
        self.changes.iter().flat_map(|change| change.goal.lost.iter().copied()).collect()
    }
}
