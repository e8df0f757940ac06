//! The client of one site: takes what the trace asks for, sends it over a bounded number of connections, and knows what
//! it holds.
//!
//! ```text
//!   trace ── due ──▶ queue ── a connection is free ──▶ sent ──▶ answered
//!                      └── not sent within PATIENCE: given up
//! ```
//!
//! A release gives back a token that the client holds. If it holds none, the machine of the trace was never granted, and
//! nothing is sent.

use super::parameters::PATIENCE;
use rhumb_bench::workloads::quota::trace::{Demand, Want};
use rhumb_core::{Rng, SiteId, Span, Time};
use std::collections::VecDeque;

/// What a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Acquire,
    Release,
    Read,
}

/// What becomes of the transaction at the head of a client's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is sent.
    Send(Ask),
    /// It waited too long.
    GiveUp,
    /// It releases what was never granted.
    Void,
}

/// The client of one site.
pub(super) struct Client {
    pub(super) site: SiteId,
    demand: std::iter::Peekable<Demand>,
    start: Time,
    /// Due and not sent, each since when. What is in it for longer than [`PATIENCE`] leaves it, which bounds it.
    queue: VecDeque<(Time, Ask)>,
    free: usize,
    held: u64,
    read_share: f64,
    rng: Rng,
}

impl Client {
    pub(super) fn new(site: SiteId, (demand, start): (Demand, Time), connections: usize, read_share: f64, rng: Rng) -> Client {
        Client { site, demand: demand.peekable(), start, queue: VecDeque::new(), free: connections, held: 0, read_share, rng }
    }

    /// When the trace asks for something next.
    pub(super) fn next_due(&mut self) -> Option<Time> {
        self.demand.peek().map(|(offset, _)| self.start + *offset)
    }

    /// Queues what the trace asks for next.
    pub(super) fn take_due(&mut self) {
        if let Some((offset, want)) = self.demand.next() {
            let read = self.read_share > 0.0 && self.rng.chance(self.read_share);
            let ask = match want {
                _ if read => Ask::Read,
                Want::Acquire => Ask::Acquire,
                Want::Release => Ask::Release,
            };
            self.queue.push_back((self.start + offset, ask));
        }
    }

    /// What becomes of the head of the queue, if a connection is free.
    pub(super) fn next(&mut self, now: Time) -> Option<Next> {
        if self.free == 0 {
            // Whoever waited too long leaves even so: the queue holds no more than PATIENCE's worth.
            return self.queue.pop_front_if(|(due, _)| late(now, *due)).map(|_| Next::GiveUp);
        }
        let (due, ask) = self.queue.pop_front()?;
        if late(now, due) {
            return Some(Next::GiveUp);
        }
        if ask == Ask::Release {
            let Some(held) = self.held.checked_sub(1) else { return Some(Next::Void) };
            self.held = held;
        }
        self.free -= 1;
        Some(Next::Send(ask))
    }

    /// A transaction came to its end; `holds` says whether a token came to the client by it.
    pub(super) fn finish(&mut self, holds: bool) {
        self.free += 1;
        self.held += u64::from(holds);
    }

    /// The client ends: it asks for nothing more.
    pub(super) fn crash(&mut self, length: Span) {
        self.queue.clear();
        while self.demand.next_if(|(offset, _)| *offset <= length).is_some() {}
    }

    /// Tokens that the client holds for certain.
    pub(super) fn held(&self) -> u64 {
        self.held
    }
}

fn late(now: Time, due: Time) -> bool {
    now.since(due) > PATIENCE
}
