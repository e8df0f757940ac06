//! Operations that wait for tokens, and what becomes of them when a redistribution ends.

use crate::catalog::QuotaId;
use crate::operation::{Operation, RequestKey};
use rhumb_core::actor::RequestId;
use std::collections::BTreeSet;

/// Retries of one waiting operation that are answered with it at the most.
pub const RETRIES_ATTACHED_MAX: usize = 16;
/// An operation takes part in so many redistributions at the most.
pub const TRIES_MAX: u32 = 4;

/// Where an outcome goes: an operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The request.
    pub client: RequestId,
    /// The operation's place in it.
    pub index: usize,
}

/// An operation that waits.
#[derive(Debug)]
pub struct Waiting {
    /// What is to be done.
    pub operation: Operation,
    /// Who asked, and asked again.
    pub slots: Vec<Slot>,
    /// The quota that has too few tokens for it, here.
    pub lacking: QuotaId,
    /// The offers of that quota when it came: it has a say in those made later.
    pub offers: u64,
    /// Redistributions that ended without enough for it.
    pub tries: u32,
    /// Ticks since it came.
    pub waited: u32,
}

/// What operations of one kind wait for in a quota and below it: kept where it changes, so that nobody has to look through all quotas
/// for those where something waits.
#[derive(Debug, Default)]
pub struct Needs {
    /// So many tokens. Many operations may want as many as there can be.
    pub amount: u128,
    /// The quotas right below that have a part in it.
    pub below: BTreeSet<QuotaId>,
}

impl Waiting {
    /// Its request id.
    pub fn key(&self) -> Option<&RequestKey> {
        self.operation.id.as_ref()
    }
}
