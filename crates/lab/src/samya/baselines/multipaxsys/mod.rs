//! One replicated log for every transaction, as Spanner-like databases keep it (Samya, section 5, baseline i).
//!
//! ```text
//!   client ──▶ gateway (its region's site)
//!                 │── Forward ──▶ leader: queues it
//!                                   │── Accept(ballot, slot) ──▶ all voters ── durable ──┐
//!                                   │◀── Accepted ───────────────────────────────────────┘  nearest majority
//!                                   │ chosen: applies it, in order of slots
//!                 │◀── Reply ───────┘── Chosen ──▶ all voters apply it
//!
//!   no heartbeat for ELECTION:   voter ── Prepare(ballot) ──▶ all voters ── Promised(what each accepted) ──▶ new leader,
//!                                which proposes again what may have been chosen, then serves
//! ```
//!
//! The record is hot, so transactions on it run one after the other: by default one slot in flight and one command in
//! it ([`Settings`]), a whole replication round each. More of either is what a database does that batches.
//!
//! Invariants: at most one entry is chosen per slot; an acceptor's promise and what it accepted are durable before it
//! says so; every replica applies the same entries in the same order, each command once, however often its gateway sent
//! it; the limit is checked when a command is applied. A leader reads from its own state only while a majority has
//! heard from it within [`LEASE`], within which none of them votes for another.
//! Simplified: membership is fixed; clocks run at the same speed within the lease's margin.

mod acceptor;
mod command;
mod gateway;
mod leader;
mod message;
mod replica;
mod state;
#[cfg(test)]
mod tests;

pub use message::{Note, Promise};
pub use replica::{Replica, Timer};

use rhumb_core::{Span, actor};

/// What a replica, and each of its parts, wants done.
type Effects = actor::Effects<Replica>;

/// How often a leader says that it is there, and others look whether it is.
pub const HEARTBEAT: Span = Span::from_millis(200);
/// A leader may read from its own state for so long after a majority heard from it.
pub const LEASE: Span = Span::from_millis(1_000);
/// Without a heartbeat for so long, a voter tries to become leader; until then it votes for nobody else.
pub const ELECTION: Span = Span::from_millis(2_000);
/// Each later voter waits so much longer, so that they do not all try at once.
pub const ELECTION_STAGGER: Span = Span::from_millis(400);
/// What is not answered for so long is sent again.
pub const RESEND: Span = Span::from_millis(1_000);
/// After so long a gateway says that it does not know.
pub const GIVE_UP: Span = Span::from_millis(10_000);
/// Requests that one gateway has under way at the most.
pub const REQUESTS_MAX: usize = 256;
/// Requests queued at the leader at the most.
pub const QUEUE_MAX: usize = 4_096;

/// How much of the log is written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Settings {
    /// Slots in flight at the most.
    pub depth: usize,
    /// Commands in one slot at the most.
    pub batch: usize,
}

impl Default for Settings {
    /// One transaction after the other.
    fn default() -> Settings {
        Settings { depth: 1, batch: 1 }
    }
}
