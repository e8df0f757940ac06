//! What a workload of SQL transactions is made of: terminals that draw transactions and attempt them.
//!
//! Drawing and attempting are apart because a transaction that is tried again must be the same transaction: a retry with new inputs would favour those that
//! do not conflict.

use std::future::Future;
use std::time::Duration;

use rhumb_core::Rng;

use crate::client::postgres::{Failure, Session};
use crate::driver::ClientSlot;
use crate::report::Yardstick;

/// A workload, its tables loaded and its sizes known.
pub trait Transactions: Send + Sync {
    /// What sits at each connection.
    type Terminal: Terminal;

    /// The workload's name, as users write it.
    fn name(&self) -> &'static str;

    /// The workload's name and what distinguishes this variant of it.
    fn title(&self) -> String;

    /// The names of its kinds of transaction; [`Drawn::kind`] counts in them.
    fn kinds(&self) -> &'static [&'static str];

    /// What each kind ought to cost, in the order of the kinds; of workloads whose kinds are single statements.
    fn yardsticks(&self) -> &'static [Yardstick] {
        &[]
    }

    /// The terminal of `slot`, whose randomness is `rng`.
    fn terminal(&self, slot: ClientSlot, rng: Rng) -> Self::Terminal;
}

/// A transaction about to be attempted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drawn {
    /// Its kind.
    pub kind: usize,
    /// How long its user types before it begins.
    pub keying: Duration,
    /// How long its user thinks after it ended.
    pub thinking: Duration,
}

/// How an attempt ended that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It committed.
    Committed,
    /// It rolled itself back, as the workload asks.
    RolledBack,
    /// It committed, and found an invariant of the workload broken.
    Violated(String),
}

/// A source of transactions at one connection.
pub trait Terminal: Send + 'static {
    /// Draws the next transaction.
    fn draw(&mut self) -> Drawn;

    /// Attempts the transaction drawn last, or what is left of it.
    fn attempt(&mut self, session: &mut Session) -> impl Future<Output = Result<Verdict, Failure>> + Send;
}
