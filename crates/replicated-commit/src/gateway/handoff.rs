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
//! Transactional Data Stores", EDBT 2018, section 4.1.
//!
//! **Once.** A `Handoff` may be lost, doubled, held back, and is said again until answered; its commit must run once. The
//! gateway that takes it remembers its name until the one that handed it over awaits the end of none as old as that any
//! more, and takes none older. Names are ordered by incarnation first: a gateway that has restarted awaits nothing that it handed over before, and
//! its clock may be behind what it showed then. An incarnation forgets what the one before took; hence a `Handoff` names the incarnation that
//! it is meant for, and any other incarnation says that it cannot know.
//!
//! Invariants: what was read goes along as versions, so the votes validate it whoever asks for them; a commit that was
//! handed over is never run by the gateway that handed it over.

use super::committing::{Wanted, Whose};
use super::{Begin, Gateway, Txn};
use crate::config::TAKEN_MAX;
use crate::context::{Context, Shared};
use crate::message::{Answer, Handoff, HandoffId, Note};
use crate::planted::Planted;
use rhumb_commit::transaction::{Committed, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{SiteId, Time, TxnId};

/// A commit that another gateway runs for this one.
#[derive(Clone, Debug)]
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

impl Gateway {
    /// The gateway that runs this one's commits, if it is another one and alive.
    pub(super) fn commit_coordinator(cx: &Shared) -> Option<SiteId> {
        let region = cx.placement.coordinators.get(&cx.me.region)?.commit;
        let site = SiteId { region, shard: cx.me.shard };
        (region != cx.me.region && cx.peers.is_alive(site, cx.now, cx.config.suspect_after)).then_some(site)
    }

    /// Has `to` commit what a client asks for.
    pub(super) fn hand_over(&mut self, id: RequestId, to: SiteId, wanted: Wanted, cx: &mut Context<'_>) {
        let Wanted { txn, parts, two_rounds } = wanted;
        cx.fx.count("commit.handed_over");
        let trips = self.txns[&txn].trips + 1;
        let name = HandoffId { gateway: cx.me, incarnation: cx.incarnation, made: cx.timestamp() };
        let handoff = Handoff { id: name, incarnation: cx.peers.incarnation(to), parts: parts.into_iter().collect(), two_rounds };
        let note = Note::Handoff(handoff);
        // Its read locks go: what it read is validated by version.
        self.end(txn, cx);
        cx.fx.send(to, note.clone());
        self.handed.insert(name, Handed { id, to, note, trips, since: cx.now, sent: cx.now });
    }

    /// Another gateway hands its commit over.
    pub(crate) fn on_handoff(&mut self, from: SiteId, handoff: Handoff, cx: &mut Context<'_>) {
        let Handoff { id: name, incarnation, .. } = handoff;
        if cx.rules.breaks(Planted::HandoffTakenAgain) && cx.may_begin() {
            return self.take_handoff(handoff, cx);
        }
        let mut awaited = cx.peers.handing(from);
        if cx.rules.breaks(Planted::EarlierHandoffTaken) {
            awaited.incarnation = name.incarnation;
        }
        if name.gateway != from || name < awaited {
            return cx.fx.count("commit.handoff_over");
        }
        if let Some(taken) = self.taken.get(&name) {
            if let Some(result) = taken.clone() {
                cx.fx.send(from, Note::HandedBack { id: name, result });
            }
            return;
        }
        let full = self.taken.len() >= TAKEN_MAX || self.begins_no_more();
        if incarnation != cx.incarnation || full {
            // An earlier copy may have been taken by an earlier incarnation.
            cx.fx.count("commit.handoff_unknown");
            let why = if full { "is too busy to say" } else { "has just restarted" };
            let error = TxnError::Unknown(format!("the region that was to commit it {why}; check before you repeat it").into());
            return cx.fx.send(from, Note::HandedBack { id: name, result: Err(error) });
        }
        if !cx.may_begin() {
            return self.waiting.push(Begin::Handoff(from, handoff));
        }
        self.take_handoff(handoff, cx);
    }

    fn take_handoff(&mut self, handoff: Handoff, cx: &mut Context<'_>) {
        cx.fx.count("commit.handoff_taken");
        let began = cx.begin_now();
        let txn = TxnId { began, gateway: cx.me };
        self.taken.insert(handoff.id, None);
        self.txns.insert(txn, Txn::new(ReadMode::Optimistic, began));
        let Handoff { id, parts, two_rounds, .. } = handoff;
        self.attempt(Whose::Gateway(id), Wanted { txn, parts: parts.into_iter().collect(), two_rounds }, cx);
    }

    /// A commit that this gateway ran for another one has ended.
    pub(super) fn hand_back(&mut self, name: HandoffId, result: Result<Committed, TxnError>, cx: &mut Context<'_>) {
        self.taken.insert(name, Some(result.clone()));
        cx.fx.send(name.gateway, Note::HandedBack { id: name, result });
    }

    /// The other gateway says how it ended.
    pub(crate) fn on_handed_back(&mut self, name: HandoffId, result: Result<Committed, TxnError>, cx: &mut Context<'_>) {
        let Some(handed) = self.handed.remove(&name) else { return };
        let answer = match result {
            Ok(Committed { at, trips }) => {
                cx.clock.observe(at);
                Answer::Committed(Committed { at, trips: handed.trips + trips })
            }
            Err(error) => Answer::Failed(error),
        };
        cx.fx.answer(handed.id, answer);
    }

    pub(super) fn handoffs_tick(&mut self, cx: &mut Context<'_>) {
        let (now, resend_after, deadline) = (cx.now, cx.config.resend_after, cx.config.outcome_deadline);
        let overdue = self.handed.extract_if(.., |_, handed| now.since(handed.since) >= deadline);
        for (_, handed) in overdue {
            cx.fx.count("commit.unknown");
            let text =
                "the region that was to commit it does not answer. It may have been committed or may yet be: check before you repeat it";
            cx.fx.answer(handed.id, Answer::Failed(TxnError::Unknown(text.into())));
        }
        for handed in self.handed.values_mut().filter(|handed| now.since(handed.sent) >= resend_after) {
            handed.sent = now;
            cx.fx.send(handed.to, handed.note.clone());
        }
        let peers = &cx.peers;
        self.taken.retain(|name, taken| taken.is_none() || *name >= peers.handing(name.gateway));
    }
}
