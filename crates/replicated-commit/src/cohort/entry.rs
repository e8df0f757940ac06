//! An attempt that holds locks at a replica.

use crate::lookup::RangeLookup;
use crate::message::{Meta, Part};
use crate::trace::Trace;
use crate::views::Promised;
use rhumb_commit::votes::Tally;
use rhumb_core::actor::Token;
use rhumb_core::{Key, RegionId, Time};
use std::collections::BTreeMap;

/// What still has to be looked up before an attempt can be prepared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation {
    /// Rows whose newest version is asked for: those written, then those read.
    pub(super) keys: Vec<Key>,
    /// The ranges that are read again, after these.
    pub(super) ranges: RangeLookup,
    /// The load whose rows are awaited. Those of an earlier entry of the same attempt may still come.
    pub(super) awaited: Option<Token>,
}

/// What is known of an attempt that others are in doubt about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// The regions that are not prepared for it, and the ends of their logs: if it is not there, they never voted for it.
    pub(crate) without: BTreeMap<RegionId, u64>,
    /// What the rows here say: it may have committed, and been taken over, before it was carried.
    pub(crate) trace: Trace,
}

#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// What it read is being looked up.
    Validating(Validation),
    /// On disk, unless it is to commit in one phase: this region may have voted for it.
    Prepared,
    /// Nobody else has a vote: its rows and its commit are on their way to disk.
    Committing,
    /// On disk: other regions may have.
    Carried(Carried),
}

/// An attempt that holds locks here.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) meta: Meta,
    pub(crate) part: Part,
    pub(super) stage: Stage,
    pub(super) since: Time,
    /// Final votes seen, where the coordinator is another site of the region and may be down.
    pub(super) tally: Tally,
    /// The gateway has said that it decides no more.
    pub(super) over: bool,
}

impl Entry {
    pub(crate) fn new(meta: Meta, part: Part, stage: Stage, since: Time) -> Entry {
        Entry { meta, part, stage, since, tally: Tally::default(), over: false }
    }

    pub(super) fn promised(&self) -> Promised<'_> {
        Promised { meta: &self.meta, part: &self.part }
    }

    /// True if its locks outlive everything but its outcome.
    pub(crate) fn is_promised(&self) -> bool {
        !matches!(self.stage, Stage::Validating(_))
    }

    pub(crate) fn as_carried(&self) -> Option<&Carried> {
        match &self.stage {
            Stage::Carried(carried) => Some(carried),
            Stage::Validating(_) | Stage::Prepared | Stage::Committing => None,
        }
    }
}
