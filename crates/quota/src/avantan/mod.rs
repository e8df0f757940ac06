//! Avantan, the redistribution protocol, in both its versions (Samya, 4.3): sites agree on a [`List`] of who takes part
//! with how many tokens; what each then gets follows from the list alone.
//!
//! ```text
//!              1 leader election, value construction   2 fault tolerance           3 decision
//!   leader ────Election──▶ cohorts ────ElectionOk────▶ ────Accept──▶ ────AcceptOk──▶ ────Decided──▶
//!                          each freezes an offer                     each holds the list
//! ```
//!
//! | | [`Majority`], Avantan\[(n+1)/2\] | [`Any`], Avantan\[\*\] |
//! |---|---|---|
//! | decided by | a majority of all sites | every member of the list |
//! | an instance is | a slot, the same for all; any site may lead it to its end | a leader's own; others can only ask around |
//! | an offer is free again when | its slot is decided, or all ballots it was made to are given up | the instance is decided, or some member has refused it for ever |
//! | without a majority | no redistribution | goes on among those who hear each other |
//!
//! Both are state machines for one quota at one site. They decide nothing about tokens: an [`AccountPort`] makes the offer, takes
//! it back, and applies a list. What they must not forget is in their `state()`, which the site writes to disk before a
//! promise in the same [`Outbox`] leaves.
//!
//! Invariants (both): an offer is frozen from the moment a leader may use it until the list is known that holds it, or
//! that no list can; a list is applied at most once by each of its members, by all of them or by none.

pub mod any;
pub mod majority;
mod planted;
mod protocol;
mod recent;

pub use any::Any;
pub use majority::Majority;
pub use protocol::{Note, Out, Promise, Protocol};
pub use recent::Recent;

use crate::list::{Entry, List};
use crate::tokens::Tokens;
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a leader asks of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Call {
    /// What it lacks itself.
    pub wanted: Tokens,
    /// What others could spare was not enough before: they are to keep nothing back.
    pub all: bool,
}

/// The tokens of the site, as a protocol sees them.
pub trait AccountPort {
    /// Freezes an offer in answer to `call` and says what the site wants.
    fn offer(&mut self, call: Call) -> Entry;
    /// Takes the offer back.
    fn withdraw(&mut self);
    /// Exchanges the offer for this site's share of a decided list.
    fn apply(&mut self, list: &List);
    /// This site holds so many tokens by how a list has ended, and would not by how a lost member may know it.
    fn put_in_doubt(&mut self, held: u64);
}

/// How an instance ended for this site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A list was decided.
    Decided {
        /// The site was a member of it, or not.
        list: List,
        /// The site built it: all other entries are younger than its own.
        led: bool,
    },
    /// It came to nothing.
    Dead(Cause),
}

/// Why an instance came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Too few sites answered.
    Unanswered,
    /// Others were at a redistribution of their own.
    Busy,
}

/// What a protocol wants done, and what it has to tell.
#[derive(Debug)]
pub struct Outbox<N, P> {
    /// Messages that promise nothing.
    pub notes: Vec<(SiteId, N)>,
    /// Messages that promise what `state()` says now: they leave once that is on disk.
    pub promises: Vec<(SiteId, P)>,
    /// `state()` has changed.
    pub changed: bool,
    /// The site has asked the others for their offers.
    pub called: bool,
    /// What is remembered of decided lists has changed.
    pub remembered: bool,
    /// Instances that ended.
    pub endings: Vec<Ending>,
}

impl<N, P> Default for Outbox<N, P> {
    fn default() -> Outbox<N, P> {
        Outbox { notes: Vec::new(), promises: Vec::new(), changed: false, called: false, remembered: false, endings: Vec::new() }
    }
}

impl<N, P> Outbox<N, P> {
    fn note(&mut self, to: SiteId, note: N) {
        self.notes.push((to, note));
    }

    fn promise(&mut self, to: SiteId, promise: P) {
        self.promises.push((to, promise));
    }
}

/// When a protocol loses patience, in ticks of the site. Silence is counted, not measured: a clock may jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A message that should have been answered is sent again.
    pub resend: u32,
    /// A leader that could go on, but would like to hear more sites, goes on.
    pub gather: u32,
    /// A leader that could not go on gives up.
    pub give_up: u32,
    /// A cohort that has heard nothing of its offer acts itself.
    pub cohort: u32,
    /// Sites act so many ticks after one another, in their order, so as not to disturb each other.
    pub stagger: u32,
}

/// A leader waits for the offers of others so many ticks at the most, before it goes on without them.
const GATHER_TICKS_MAX: u32 = 40;

impl Patience {
    /// The same where the slowest site takes so many ticks to answer: a leader waits half as long again, and all that follows later
    /// follows as much later.
    pub fn for_answers_after(self, ticks: u32) -> Patience {
        let Patience { resend, gather, give_up, cohort, stagger } = self;
        let later = (ticks + ticks.div_ceil(2)).min(GATHER_TICKS_MAX).saturating_sub(gather);
        let [resend, gather, give_up] = [resend, gather, give_up].map(|patience| patience.saturating_add(later));
        Patience { resend, gather, give_up, cohort: cohort.saturating_add(2 * later), stagger }
    }
}

/// True if what the entries offer is as much as they want, their debts, and what they are to take back.
fn is_satisfied<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> bool {
    let offered: Tokens = entries.clone().map(|entry| entry.offered).sum();
    let wanted: Tokens = entries.map(|entry| entry.wanted + Tokens { left: entry.owed, held: entry.returning }).sum();
    offered.covers(wanted)
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { wanted, all } = self;
        write!(f, "wants {wanted}{}", if *all { " of all" } else { "" })
    }
}
