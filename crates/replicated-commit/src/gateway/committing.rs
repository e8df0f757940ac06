//! A commit in progress at its gateway.

use crate::message::{HandoffId, Meta, Part};
use rhumb_commit::placement::Regions;
use rhumb_commit::transaction::TxnError;
use rhumb_commit::votes::Tally;
use rhumb_core::actor::RequestId;
use rhumb_core::{RegionId, Time, Timestamp, TxnId};
use std::collections::BTreeMap;

/// Who waits for the end of a commit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    /// A client of this gateway.
    Client(RequestId),
    /// Another gateway, which has handed it over under this name.
    Gateway(HandoffId),
}

/// An abort that a client is not told yet: should a region that voted be lost, nobody else may know of it.
#[derive(Clone, Debug)]
pub(super) struct Aborted {
    /// What it is to be told.
    pub(super) error: TxnError,
    /// The regions that have it on record.
    pub(super) on_record: Regions,
}

/// A commit in progress.
#[derive(Clone, Debug)]
pub(super) struct Committing {
    pub(super) whose: Whose,
    pub(super) parts: BTreeMap<u16, Part>,
    pub(super) meta: Meta,
    pub(super) tally: Tally,
    /// `Withdraw` was sent.
    pub(super) withdrawn: bool,
    /// Its region takes part in a resolution of it: this gateway counts no votes any more, and is told how that ends.
    pub(super) bound: bool,
    /// Aborted by the votes that were seen. None until then.
    pub(super) aborted: Option<Aborted>,
    /// Committed, with this floor; the regions that have confirmed that they applied it. None until then.
    pub(super) confirmed: Option<(Timestamp, Regions)>,
    pub(super) attempts: u32,
    /// When the first attempt was made, when this one, and when its `Accept` was last sent.
    pub(super) since: Time,
    pub(super) made: Time,
    pub(super) sent: Time,
}

impl Committing {
    /// True if the votes decide nothing, and none was taken back.
    pub(super) fn is_undecided(&self) -> bool {
        !self.withdrawn && self.tally.outcome_at_gateway(self.meta.electorate).is_none()
    }

    /// True if the abort outlives the loss of as many regions as may be lost, or of the gateway's own with its clients.
    pub(super) fn is_on_record(&self, own: RegionId) -> bool {
        let electorate = self.meta.electorate;
        let spare = electorate.len() - electorate.majority();
        self.aborted.as_ref().is_some_and(|aborted| aborted.on_record.contains(own) || aborted.on_record.len() > spare)
    }
}

/// What a transaction is to commit.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) txn: TxnId,
    /// What it does in each shard.
    pub(super) parts: BTreeMap<u16, Part>,
    /// Its client waits until a majority has applied it.
    pub(super) two_rounds: bool,
}
