//! Handoff: a gateway has another one run its commit, from where the majority is nearer.
//!
//! ```text
//!   client      gateway                    gateway of the region that the placement names
//!     │ commit    │ Handoff                  │
//!     ├──────────▶├─────────────────────────▶│ Accept … Vote … Decided, as for a client of its own
//!     │           │                          │
//!     │           │◀─────────────────────────┤ HandedBack: committed, or why not
//!     │◀──────────┤                          │
//! ```
//!
//! It pays where one trip there and the commit from there are shorter than the commit from here: with two rounds often,
//! with one round only if distances violate the triangle inequality. Source: Zakhary et al., "Global-Scale Placement of
//! Transactional Data Stores", EDBT 2018, section 2.2.
//!
//! **Once.** A `Handoff` may be lost, doubled, held back, and is said again until answered; its commit must run once. The
//! gateway that takes it remembers its name until the one that handed it over awaits the end of none as old as that any
//! more, and takes none older. A life forgets what the one before took; hence a `Handoff` names the life that it is meant
//! for, and any other life says that it cannot know.
//!
//! Invariants: what was read goes along as versions, so the votes validate it whoever asks for them; a commit that was
//! handed over is never run by the gateway that handed it over.

use super::Txn;
use super::commit::Whose;
use crate::replicated_commit::config::TAKEN_MAX;
use crate::replicated_commit::message::{Answer, HandoffId, Note, Part};
use crate::replicated_commit::planted::Planted;
use crate::replicated_commit::site::{Begin, Site};
use crate::transaction::{Committed, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Effects, SiteId, Time, Timestamp, TxnId};
use std::collections::BTreeMap;

/// The commit of another gateway's transaction.
#[derive(Debug)]
pub(in crate::replicated_commit) struct Handoff {
    pub(in crate::replicated_commit) id: HandoffId,
    pub(in crate::replicated_commit) life: Timestamp,
    pub(in crate::replicated_commit) parts: Vec<(u16, Part)>,
    pub(in crate::replicated_commit) two_rounds: bool,
}

/// A commit that another gateway runs for this one.
#[derive(Debug)]
pub(super) struct Handed {
    id: RequestId,
    to: SiteId,
    note: Note,
    /// Trips waited for before, and the one to `to`.
    trips: u32,
    since: Time,
    sent: Time,
}

/// How a commit that this gateway runs for another one ended; none while it runs.
pub(super) type Taken = Option<Result<Committed, TxnError>>;

impl Site {
    /// The gateway that runs this one's commits, if it is another one and alive.
    pub(super) fn commit_coordinator(&self) -> Option<SiteId> {
        let region = self.placement.coordinators.get(&self.me.region)?.commit;
        let site = self.site(region, self.me.shard);
        (region != self.me.region && self.peers.is_alive(site, self.now, self.config.suspect_after)).then_some(site)
    }

    /// Has `to` commit `txn`.
    pub(super) fn hand_over(
        &mut self,
        id: RequestId,
        txn: TxnId,
        to: SiteId,
        parts: BTreeMap<u16, Part>,
        two_rounds: bool,
        fx: &mut Effects<Site>,
    ) {
        fx.count("commit.handed_over");
        let trips = self.gateway.txns[&txn].trips + 1;
        let name = HandoffId { gateway: self.me, life: self.life, made: self.clock.now(self.now) };
        let note = Note::Handoff { id: name, life: self.peers.life(to), parts: parts.into_iter().collect(), two_rounds };
        // Its read locks go: what it read is validated by version.
        self.end(txn, fx);
        fx.send(to, note.clone());
        self.gateway.handed.insert(name, Handed { id, to, note, trips, since: self.now, sent: self.now });
    }

    /// Another gateway hands its commit over.
    pub(in crate::replicated_commit) fn on_handoff(&mut self, from: SiteId, handoff: Handoff, fx: &mut Effects<Site>) {
        let Handoff { id: name, life, .. } = handoff;
        if self.rules.breaks(Planted::HandoffTakenAgain) && self.may_begin(fx) {
            return self.take_handoff(handoff, fx);
        }
        if name.gateway != from || name.made < self.peers.handing(from) {
            return fx.count("commit.handoff_over");
        }
        if let Some(taken) = self.gateway.taken.get(&name) {
            if let Some(result) = taken.clone() {
                fx.send(from, Note::HandedBack { id: name, result });
            }
            return;
        }
        let full = self.gateway.taken.len() >= TAKEN_MAX || self.begins_no_more();
        if life != self.life || full {
            // An earlier copy may have been taken by an earlier life.
            fx.count("commit.handoff_unknown");
            let why = if full { "is too busy to say" } else { "has just restarted" };
            let error = TxnError::Unknown(format!("the region that was to commit it {why}; check before you repeat it"));
            return fx.send(from, Note::HandedBack { id: name, result: Err(error) });
        }
        if !self.may_begin(fx) {
            return self.waiting_to_begin.push(Begin::Handoff(from, handoff));
        }
        self.take_handoff(handoff, fx);
    }

    fn take_handoff(&mut self, handoff: Handoff, fx: &mut Effects<Site>) {
        fx.count("commit.handoff_taken");
        let began = self.begin_now();
        let txn = TxnId { began, gateway: self.me };
        self.gateway.taken.insert(handoff.id, None);
        self.gateway.txns.insert(txn, Txn::new(ReadMode::Optimistic, began));
        self.attempt(Whose::Gateway(handoff.id), txn, handoff.parts.into_iter().collect(), handoff.two_rounds, fx);
    }

    /// A commit that this gateway ran for another one has ended.
    pub(super) fn hand_back(&mut self, name: HandoffId, result: Result<Committed, TxnError>, fx: &mut Effects<Site>) {
        self.gateway.taken.insert(name, Some(result.clone()));
        fx.send(name.gateway, Note::HandedBack { id: name, result });
    }

    /// The other gateway says how it ended.
    pub(in crate::replicated_commit) fn on_handed_back(
        &mut self,
        name: HandoffId,
        result: Result<Committed, TxnError>,
        fx: &mut Effects<Site>,
    ) {
        let Some(handed) = self.gateway.handed.remove(&name) else { return };
        fx.answer(
            handed.id,
            match result {
                Ok(Committed { at, trips }) => {
                    self.clock.observe(at);
                    Answer::Committed(Committed { at, trips: handed.trips + trips })
                }
                Err(error) => Answer::Failed(error),
            },
        );
    }

    pub(super) fn handoffs_tick(&mut self, fx: &mut Effects<Site>) {
        let (now, resend_after, deadline) = (self.now, self.config.resend_after, self.config.outcome_deadline);
        let overdue = self.gateway.handed.extract_if(.., |_, handed| now.since(handed.since) >= deadline);
        for (_, handed) in overdue {
            fx.count("commit.unknown");
            let text =
                "the region that was to commit it does not answer. It may have been committed or may yet be: check before you repeat it";
            fx.answer(handed.id, Answer::Failed(TxnError::Unknown(text.into())));
        }
        for handed in self.gateway.handed.values_mut().filter(|handed| now.since(handed.sent) >= resend_after) {
            handed.sent = now;
            fx.send(handed.to, handed.note.clone());
        }
        let peers = &self.peers;
        self.gateway.taken.retain(|name, taken| taken.is_none() || name.made >= peers.handing(name.gateway));
    }
}
