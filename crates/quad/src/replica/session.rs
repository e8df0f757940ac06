//! A transaction at a replica before it is prepared.

use crate::message::Query;
use rhumb_commit::wound_wait::Lock;
use rhumb_core::{Key, Timestamp, Value};
use std::collections::BTreeSet;

/// A transaction that holds locks here, or waits for some, and is not prepared.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) name: Timestamp,
    /// The tick at which it was last heard of.
    pub(super) seen: u64,
    /// The number of its last read; what has none above was sent before.
    pub(super) number: u32,
    /// What it asked for and has not got yet.
    pub(super) asked: Option<Asked>,
}

/// What it waits for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) missing: BTreeSet<Lock>,
    pub(super) what: What,
}

/// What it goes on with once it has its locks.
#[derive(Clone, Debug)]
pub(super) enum What {
    Read { number: u32, query: Query },
    Prepare { writes: Vec<(Key, Option<Value>)> },
}
