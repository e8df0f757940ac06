//! Avantan\[(n+1)/2\] (Samya, 4.3.1): one Paxos instance per slot, whose value is built from the answers to the first phase.
//!
//! ```text
//!   leader                     a cohort                     a cohort that died with its offer frozen
//!     │ promises its own ballot, freezes its own offer
//!     ├─Election(slot, ballot)─▶│ promises, freezes an offer
//!     │◀──────────ElectionOk────┤ entry, and what it accepted in this slot before
//!     │ a majority: the accepted list of the highest ballot, or a new one of all entries
//!     ├─Accept(list)───────────▶│ holds the list
//!     │◀────────────AcceptOk────┤
//!     │ a majority: decided; applies it
//!     ├─Decided────────────────▶│ applies it; who is no member takes its offer back
//!     │                         │◀───────────────Ask──────┤ back again: what became of the ballot?
//!     │                         ├──Decided, or Dead──────▶│ (the leader itself says Dead)
//! ```
//!
//! **Slots.** The slot is part of every message. A site acts only in the first slot that it does not know decided; one that
//! is behind says `Lacking` and is told. Of all it lacks only one list can hold an offer of its own, that of its own slot,
//! so it may jump ([`Recent`]). Without slots the paper's algorithm collects a site's state a second time, before that site
//! has learnt that the first was spent.
//!
//! **Freezing.** An offer is made once per slot and repeated as it is to further leaders. It is free again when the slot is
//! decided, or when every leader it was made to has said `Dead`: that it has proposed nothing in this slot and never will
//! at this ballot or below. A leader says so only once a higher ballot, or the end of this one, is on its disk. Silence
//! frees nothing: a cohort that waits too long asks, then leads the slot to its end itself.
//!
//! Invariants: one list per slot (Paxos: a proposal at a ballot repeats the accepted list of the highest ballot below that
//! a majority told of). A list decided in slot k holds for each member the very offer it has frozen in slot k.

mod lost;
mod message;

pub use message::{Note, Promise};

use super::{AccountPort, Call, Cause, Ending, Outbox, Patience, Recent, is_satisfied};
use crate::cluster::Cluster;
use crate::list::{Entry, List};
use crate::planted::Planted;
use crate::spec::Reallocation;
use rhumb_core::ballot::to_propose_again;
use rhumb_core::{Acceptor, Ballot, Rules, SiteId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What must not be forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct State {
    /// The first slot not known to be decided. All below is about this slot.
    pub slot: u64,
    /// What this site has promised and accepted.
    pub acceptor: Acceptor<List>,
    /// The offer that is frozen.
    pub offer: Option<Entry>,
    /// The ballot that it was made for; later ones are told the same.
    pub offered_at: Option<Ballot>,
    /// The leaders that may use it, each with the highest number of its ballots that did.
    pub offered_to: BTreeMap<SiteId, u64>,
    /// This site has proposed a list.
    pub proposed: bool,
}

/// What this site is doing in its slot. Forgotten in a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Role {
    Cohort {
        waited: u32,
    },
    Candidate {
        ballot: Ballot,
        call: Call,
        answers: BTreeMap<SiteId, Answer>,
        waited: u32,
    },
    /// `built`: the list is of this ballot, not taken over from one before, and so are all its entries.
    Proposer {
        ballot: Ballot,
        list: List,
        built: bool,
        accepted_by: BTreeSet<SiteId>,
        waited: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answer {
    entry: Entry,
    fresh: bool,
    accepted: Option<(Ballot, List)>,
}

type Out = Outbox<Note, Promise>;

/// One quota's part in Avantan\[(n+1)/2\] at one site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Majority {
    pub(super) cluster: Cluster,
    reallocation: Reallocation,
    pub(super) state: State,
    recent: Recent<u64>,
    role: Role,
    /// Ballots seen in refusals; the next own one is above.
    outdated_by: u64,
    pub(super) rules: Rules<Planted>,
}

impl Majority {
    /// The part of `cluster.me`, in a quota that was never redistributed.
    pub fn new(cluster: Cluster, reallocation: Reallocation) -> Majority {
        Majority {
            cluster,
            reallocation,
            state: State::default(),
            recent: Recent::default(),
            role: Role::Cohort { waited: 0 },
            outdated_by: 0,
            rules: Rules::HOLD,
        }
    }

    /// Takes up what an earlier incarnation had on disk. A ballot of its own that has proposed nothing died with it.
    pub fn recover(&mut self, state: State, recent: Recent<u64>, port: &mut dyn AccountPort, out: &mut Out) {
        self.state = state;
        self.recent = recent;
        if !self.state.proposed {
            self.forget_offer_to(self.cluster.me, u64::MAX, Cause::Unanswered, port, out);
        }
    }

    /// What must be on disk before a promise leaves.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The decided lists that others may lack; on disk with the state.
    pub fn recent(&self) -> &Recent<u64> {
        &self.recent
    }

    /// True if this site may lead: nothing of its own is frozen, and no list may be on its way.
    pub fn is_idle(&self) -> bool {
        self.state.offer.is_none() && matches!(self.role, Role::Cohort { .. })
    }

    /// Leads a redistribution. The site must be idle.
    pub fn start(&mut self, call: Call, port: &mut dyn AccountPort, out: &mut Out) {
        assert!(self.is_idle(), "a site is in one redistribution at a time");
        self.campaign(call, port, out);
    }

    fn campaign(&mut self, call: Call, port: &mut dyn AccountPort, out: &mut Out) {
        let ballot = self.state.acceptor.next_ballot(self.outdated_by, self.cluster.me);
        out.changed |= self.state.acceptor.promise(ballot).expect("it is above all that are promised");
        let entry = self.offer_to(ballot, call, port, out);
        let own = Answer { entry, fresh: self.state.offered_at == Some(ballot), accepted: self.state.acceptor.accepted().cloned() };
        self.role = Role::Candidate { ballot, call, answers: BTreeMap::from([(self.cluster.me, own)]), waited: 0 };
        out.called = true;
        for site in self.cluster.others() {
            out.promise(site, Promise::Election { slot: self.state.slot, ballot, call });
        }
        self.consider(false, port, out);
    }

    /// The offer of this slot, made now or before, which the leader of `ballot` may use from now on.
    fn offer_to(&mut self, ballot: Ballot, call: Call, port: &mut dyn AccountPort, out: &mut Out) -> Entry {
        let entry = match &self.state.offer {
            Some(entry) => entry.clone(),
            None => {
                self.state.offered_at = Some(ballot);
                self.state.offer.insert(port.offer(call)).clone()
            }
        };
        // Told again, it is on disk already.
        out.changed |= self.state.offered_to.insert(ballot.leader, ballot.number) != Some(ballot.number);
        entry
    }

    /// The ballots of `leader` up to `number` are dead; with the last one dead the offer is free.
    pub(super) fn forget_offer_to(&mut self, leader: SiteId, number: u64, cause: Cause, port: &mut dyn AccountPort, out: &mut Out) {
        if self.state.offered_to.get(&leader).is_none_or(|highest| *highest > number) {
            return;
        }
        self.state.offered_to.remove(&leader);
        out.changed = true;
        if self.state.offered_to.is_empty() {
            self.state.offer = None;
            port.withdraw();
            out.endings.push(Ending::Dead(cause));
        }
    }

    /// Takes a note.
    pub fn on_note(&mut self, from: SiteId, note: Note, port: &mut dyn AccountPort, out: &mut Out) {
        match note {
            Note::Outdated { slot, promised } => self.on_outdated(slot, promised, port, out),
            Note::Lacking { slot } => self.on_lacking(from, slot, out),
            Note::Decided { from: first, next, lists } => self.on_decided(from, first, next, lists, port, out),
            Note::Ask { slot, ballot } => self.on_ask(from, slot, ballot, out),
        }
    }

    /// Takes a promise.
    pub fn on_promise(&mut self, from: SiteId, promise: Promise, port: &mut dyn AccountPort, out: &mut Out) {
        match promise {
            Promise::Election { slot, ballot, call } => {
                if self.is_in_slot(from, slot, out) {
                    self.on_election(from, ballot, call, port, out);
                }
            }
            Promise::ElectionOk { slot, ballot, entry, fresh, accepted } => {
                if let Role::Candidate { ballot: own, answers, .. } = &mut self.role
                    && (self.state.slot, *own) == (slot, ballot)
                {
                    answers.insert(from, Answer { entry, fresh, accepted });
                    self.consider(false, port, out);
                }
            }
            Promise::Accept { slot, ballot, list } => {
                if self.is_in_slot(from, slot, out) {
                    self.on_accept(from, ballot, list, port, out);
                }
            }
            Promise::AcceptOk { slot, ballot } => {
                if let Role::Proposer { ballot: own, accepted_by, .. } = &mut self.role
                    && (self.state.slot, *own) == (slot, ballot)
                {
                    accepted_by.insert(from);
                    self.count_accepted(port, out);
                }
            }
            Promise::Dead { slot, ballot } => {
                if slot == self.state.slot {
                    // Its leader gave way to another, or heard too few: this site cannot tell.
                    self.forget_offer_to(ballot.leader, ballot.number, Cause::Busy, port, out);
                }
            }
        }
    }

    /// True if a message about `slot` is about this site's slot. If not, one of the two is behind and is told.
    fn is_in_slot(&self, from: SiteId, slot: u64, out: &mut Out) -> bool {
        if slot > self.state.slot {
            out.note(from, Note::Lacking { slot: self.state.slot });
        } else if slot < self.state.slot {
            out.note(from, self.decided_since(slot));
        }
        slot == self.state.slot
    }

    fn decided_since(&self, from: u64) -> Note {
        let lists = self.recent.since(from).map(|(slot, list)| (slot, list.clone())).collect();
        Note::Decided { from, next: self.state.slot, lists }
    }

    /// Algorithm 1, lines 5 to 13.
    fn on_election(&mut self, from: SiteId, ballot: Ballot, call: Call, port: &mut dyn AccountPort, out: &mut Out) {
        let slot = self.state.slot;
        match self.state.acceptor.promise(ballot) {
            Err(promised) => return out.note(from, Note::Outdated { slot, promised }),
            Ok(true) => out.changed = true,
            // A ballot whose leader has said that it is dead gets no second offer.
            Ok(false) if self.state.offered_to.get(&ballot.leader) != Some(&ballot.number) => return,
            Ok(false) => {}
        }
        let entry = self.offer_to(ballot, call, port, out);
        self.step_down(Cause::Busy, port, out);
        let fresh = self.state.offered_at == Some(ballot);
        out.promise(from, Promise::ElectionOk { slot, ballot, entry, fresh, accepted: self.state.acceptor.accepted().cloned() });
    }

    /// Ceases to lead, for a higher ballot was promised or too few answered.
    fn step_down(&mut self, cause: Cause, port: &mut dyn AccountPort, out: &mut Out) {
        let role = std::mem::replace(&mut self.role, Role::Cohort { waited: 0 });
        if let Role::Candidate { ballot, .. } = role
            && !self.state.proposed
        {
            for site in self.cluster.others() {
                out.promise(site, Promise::Dead { slot: self.state.slot, ballot });
            }
            self.forget_offer_to(self.cluster.me, ballot.number, cause, port, out);
        }
    }

    /// Goes on to the second phase if the answers allow it; `eager`: even if more of them would be better. Algorithm 1, lines 14
    /// to 25; 16 to 18 are not needed, as a site that knows the decision is in a later slot, and says so.
    fn consider(&mut self, eager: bool, port: &mut dyn AccountPort, out: &mut Out) {
        let Role::Candidate { ballot, answers, waited, .. } = &self.role else { return };
        if answers.len() < self.cluster.majority() {
            return;
        }
        let accepted = to_propose_again(answers.values().filter_map(|answer| answer.accepted.as_ref()));
        let built = accepted.is_none() && answers.values().all(|answer| answer.fresh);
        let entries = answers.values().map(|answer| &answer.entry);
        let all = answers.len() == self.cluster.size();
        let list = match accepted {
            Some(list) => list.clone(),
            None if !(all || eager || is_satisfied(entries.clone())) => return,
            None => List { reallocation: self.reallocation, gathered: built.then_some(waited + 1), entries: entries.cloned().collect() },
        };
        let (ballot, slot) = (*ballot, self.state.slot);
        // Whoever has promised a higher ballot is no candidate any more.
        self.state.acceptor.accept(ballot, list.clone()).expect("a candidate's ballot is the one that it has promised");
        self.state.proposed = true;
        out.changed = true;
        for site in self.cluster.others() {
            out.promise(site, Promise::Accept { slot, ballot, list: list.clone() });
        }
        self.role = Role::Proposer { ballot, list, built, accepted_by: BTreeSet::from([self.cluster.me]), waited: 0 };
        self.count_accepted(port, out);
    }

    /// Algorithm 1, lines 26 to 32.
    fn on_accept(&mut self, from: SiteId, ballot: Ballot, list: List, port: &mut dyn AccountPort, out: &mut Out) {
        let slot = self.state.slot;
        match self.state.acceptor.accept(ballot, list) {
            Err(promised) => return out.note(from, Note::Outdated { slot, promised }),
            Ok(is_new) => out.changed |= is_new,
        }
        self.step_down(Cause::Busy, port, out);
        out.promise(from, Promise::AcceptOk { slot, ballot });
    }

    /// Algorithm 1, lines 33 to 36.
    fn count_accepted(&mut self, port: &mut dyn AccountPort, out: &mut Out) {
        let Role::Proposer { list, built, accepted_by, .. } = &self.role else { return };
        if accepted_by.len() < self.cluster.majority() {
            return;
        }
        let (slot, list, led) = (self.state.slot, list.clone(), *built);
        self.decide(slot, list, led, port, out);
        for site in self.cluster.others() {
            out.note(site, self.decided_since(slot));
        }
    }

    /// The list of this site's slot is known: on to the next slot.
    fn decide(&mut self, slot: u64, list: List, led: bool, port: &mut dyn AccountPort, out: &mut Out) {
        assert_eq!(slot, self.state.slot, "slots are concluded in order");
        if let Some(entry) = list.entry(self.cluster.me) {
            assert_eq!(Some(entry), self.state.offer.as_ref(), "a list holds the offer that is frozen");
            port.apply(&list);
            self.state.offer = None;
        }
        self.recent.remember(slot, &list);
        out.remembered = true;
        self.conclude(slot + 1, port, out);
        out.endings.push(Ending::Decided { list, led });
    }

    /// Begins the slot `next`; an offer made in the one before was in no list.
    fn conclude(&mut self, next: u64, port: &mut dyn AccountPort, out: &mut Out) {
        if self.state.offer.is_some() {
            port.withdraw();
        }
        self.state = State { slot: next, ..State::default() };
        self.role = Role::Cohort { waited: 0 };
        self.outdated_by = 0;
        out.changed = true;
    }

    fn on_outdated(&mut self, slot: u64, promised: Ballot, port: &mut dyn AccountPort, out: &mut Out) {
        if slot != self.state.slot {
            return;
        }
        self.outdated_by = self.outdated_by.max(promised.number);
        if let Role::Candidate { ballot, .. } = &self.role
            && *ballot < promised
        {
            self.step_down(Cause::Busy, port, out);
        }
    }

    fn on_lacking(&mut self, from: SiteId, slot: u64, out: &mut Out) {
        if slot < self.state.slot {
            out.note(from, self.decided_since(slot));
            self.send_again(from, out);
        }
    }

    /// Sends `to` once more what it should have answered.
    fn send_again(&self, to: SiteId, out: &mut Out) {
        let slot = self.state.slot;
        match &self.role {
            Role::Candidate { ballot, call, answers, .. } if !answers.contains_key(&to) => {
                out.promise(to, Promise::Election { slot, ballot: *ballot, call: *call });
            }
            Role::Proposer { ballot, list, accepted_by, .. } if !accepted_by.contains(&to) => {
                out.promise(to, Promise::Accept { slot, ballot: *ballot, list: list.clone() });
            }
            _ => {}
        }
    }

    fn on_decided(&mut self, from: SiteId, first: u64, next: u64, lists: Vec<(u64, List)>, port: &mut dyn AccountPort, out: &mut Out) {
        self.replay(&lists, port);
        if next <= self.state.slot {
            return;
        }
        if first > self.state.slot {
            return out.note(from, Note::Lacking { slot: self.state.slot });
        }
        for (slot, list) in lists {
            if slot == self.state.slot {
                self.decide(slot, list, false, port, out);
            } else if slot > self.state.slot {
                assert!(list.entry(self.cluster.me).is_none(), "who lacks a slot has offered nothing in a later one");
                self.recent.remember(slot, &list);
                out.remembered = true;
            }
        }
        if next > self.state.slot {
            let was_offering = self.state.offer.is_some();
            self.conclude(next, port, out);
            if was_offering {
                out.endings.push(Ending::Dead(Cause::Busy));
            }
        }
    }

    fn on_ask(&mut self, from: SiteId, slot: u64, ballot: Ballot, out: &mut Out) {
        if !self.is_in_slot(from, slot, out) || ballot.leader != self.cluster.me || self.state.proposed {
            return;
        }
        let runs = matches!(&self.role, Role::Candidate { ballot: own, .. } if *own <= ballot);
        if !runs {
            // That this ballot was promised by this site has been on disk since before it was sent.
            out.promise(from, Promise::Dead { slot, ballot });
        }
    }

    /// Time passes: a member that has waited for too long for its leader leads (failure recovery).
    pub fn tick(&mut self, patience: &Patience, port: &mut dyn AccountPort, out: &mut Out) {
        let rank = self.cluster.rank() as u32;
        let take_over = patience.cohort + rank * patience.stagger;
        let frozen = self.state.offer.is_some();
        let due = |waited: u32| waited.is_multiple_of(patience.resend);
        match &mut self.role {
            Role::Cohort { waited } if frozen => {
                *waited += 1;
                let waited = *waited;
                if self.unfreezes(waited, patience, port, out) {
                    return;
                }
                if waited >= take_over {
                    self.campaign(Call::default(), port, out);
                } else if due(waited) {
                    self.ask_leaders(out);
                }
            }
            Role::Cohort { waited } => *waited = 0,
            Role::Candidate { waited, .. } => {
                *waited += 1;
                let waited = *waited;
                self.consider(waited >= patience.gather, port, out);
                if !matches!(self.role, Role::Candidate { .. }) {
                    return;
                }
                if waited >= patience.give_up {
                    self.step_down(Cause::Unanswered, port, out);
                } else if due(waited) {
                    self.cluster.others().for_each(|site| self.send_again(site, out));
                }
            }
            Role::Proposer { waited, .. } => {
                *waited += 1;
                let waited = *waited;
                if waited >= take_over {
                    // A majority may have promised a leader that died.
                    self.campaign(Call::default(), port, out);
                } else if due(waited) {
                    self.cluster.others().for_each(|site| self.send_again(site, out));
                }
            }
        }
    }

    fn ask_leaders(&self, out: &mut Out) {
        let slot = self.state.slot;
        for (&leader, &number) in self.state.offered_to.iter().filter(|(leader, _)| **leader != self.cluster.me) {
            out.note(leader, Note::Ask { slot, ballot: Ballot { number, leader } });
        }
    }
}
