//! Avantan\[\*\] (Samya, 4.3.2): an atomic commit among whichever sites have enough, however few they are.
//!
//! ```text
//!   leader                     a member                     another member
//!     │ freezes its own offer
//!     ├─Election───────────────▶│ freezes an offer
//!     │◀──────────ElectionOk────┤ (or Busy: it is in another instance)
//!     │ enough: chooses the members, for good
//!     ├─Accept(list)───────────▶│ holds the list            to those asked but not chosen: Discard
//!     │◀────────────AcceptOk────┤
//!     │ all members: decided; applies it
//!     ├─Decided────────────────▶│ applies it
//!     ✗                         ├─────────────Ask──────────▶│ the leader is silent: did you accept?
//!                               │◀─AcceptOk/Refused/Decided─┤ all accepted: decided; one refused: dead
//! ```
//!
//! A list is decided if and only if every member has it on disk. So a member without the list may end the instance for
//! itself, as long as it refuses the list for ever; a member with the list must find out, and waits as long as it cannot
//! ask them all. A leader that has sent its list may end the instance only on a member's refusal.
//!
//! An instance is named by its leader and a number that the leader raises. A leader runs one at a time, so a member
//! that is asked for a later one knows that the earlier, if it has no list of it, is dead. What a site has ended, one way
//! or the other, it remembers as one number per leader; what it has ended by deciding, as the last list of each site
//! ([`Recent`]): a member that still asks is in nothing later.
//!
//! A member may be declared lost meanwhile (`lost`).
//!
//! Invariants: no member accepts a list that some member has refused; a site is in one instance at a time.

mod lost;
mod message;
mod state;

pub use message::{Note, Promise};
pub use state::{Current, Instance, State};

use super::{AccountPort, Call, Cause, Ending, Outbox, Patience, Recent, is_satisfied};
use crate::cluster::Cluster;
use crate::list::{Entry, List};
use crate::planted::Planted;
use crate::spec::Reallocation;
use rhumb_core::{Rules, SiteId};
use std::collections::{BTreeMap, BTreeSet};

/// What this site is doing in its instance. Forgotten in a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// Waits for the leader; with the list, asks around in time.
    Member {
        accepted_by: Accepted,
        waited: u32,
    },
    Candidate {
        call: Call,
        answers: BTreeMap<SiteId, Entry>,
        busy: BTreeSet<SiteId>,
        refused: BTreeSet<SiteId>,
        waited: u32,
    },
    Proposer {
        accepted_by: Accepted,
        waited: u32,
    },
}

/// Who has the list, and how many losses each knew when it said so.
type Accepted = BTreeMap<SiteId, u32>;

type Out = Outbox<Note, Promise>;

/// One quota's part in Avantan\[\*\] at one site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Any {
    pub(super) cluster: Cluster,
    reallocation: Reallocation,
    state: State,
    recent: Recent<Instance>,
    role: Role,
    pub(super) rules: Rules<Planted>,
}

impl Any {
    /// The part of `cluster.me`, in a quota that was never redistributed.
    pub fn new(cluster: Cluster, reallocation: Reallocation) -> Any {
        Any {
            cluster,
            reallocation,
            state: State::default(),
            recent: Recent::default(),
            role: Role::Member { accepted_by: Accepted::new(), waited: 0 },
            rules: Rules::HOLD,
        }
    }

    /// Takes up what an earlier incarnation had on disk. An instance of its own without a list died with it.
    pub fn recover(&mut self, state: State, recent: Recent<Instance>, port: &mut dyn AccountPort, out: &mut Out) {
        self.state = state;
        self.recent = recent;
        let own = |current: &&Current| current.instance.leader == self.cluster.me && current.accepted.is_none();
        if self.state.current.as_ref().filter(own).is_some() {
            self.end(None, Cause::Unanswered, port, out);
        }
        if let Some(current) = &self.state.current
            && current.accepted.is_some()
        {
            self.role = self.member_with_list(current.instance);
        }
    }

    /// What must be on disk before a promise leaves.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The decided lists that others may lack; on disk with the state.
    pub fn recent(&self) -> &Recent<Instance> {
        &self.recent
    }

    /// True if this site is in no instance.
    pub fn is_idle(&self) -> bool {
        self.state.current.is_none()
    }

    /// Leads a redistribution. The site must be idle.
    pub fn start(&mut self, call: Call, port: &mut dyn AccountPort, out: &mut Out) {
        assert!(self.is_idle(), "a site is in one redistribution at a time");
        self.state.number += 1;
        let instance = Instance { leader: self.cluster.me, number: self.state.number };
        let entry = port.offer(call);
        self.state.current = Some(Current { instance, entry: entry.clone(), accepted: None });
        out.changed = true;
        self.role = Role::Candidate {
            call,
            answers: BTreeMap::from([(self.cluster.me, entry)]),
            busy: BTreeSet::new(),
            refused: BTreeSet::new(),
            waited: 0,
        };
        out.called = true;
        for site in self.cluster.others() {
            out.promise(site, Promise::Election { instance, call });
        }
        self.consider(false, port, out);
    }

    /// Takes a note.
    pub fn on_note(&mut self, from: SiteId, note: Note, port: &mut dyn AccountPort, out: &mut Out) {
        let Note::Busy { instance } = note;
        if self.is_current(instance)
            && let Role::Candidate { busy, .. } = &mut self.role
        {
            busy.insert(from);
            self.consider(false, port, out);
        }
    }

    /// Takes a promise.
    pub fn on_promise(&mut self, from: SiteId, promise: Promise, port: &mut dyn AccountPort, out: &mut Out) {
        match promise {
            Promise::Election { instance, call } => self.on_election(from, instance, call, port, out),
            Promise::ElectionOk { instance, entry } => self.on_election_ok(from, instance, entry, port, out),
            Promise::Accept { instance, list } => self.on_accept(from, instance, list, out),
            Promise::AcceptOk { instance, losses } => {
                if self.is_current(instance)
                    && let Role::Proposer { accepted_by, .. } | Role::Member { accepted_by, .. } = &mut self.role
                {
                    let known = accepted_by.entry(from).or_default();
                    *known = losses.max(*known);
                    self.count_accepted(port, out);
                }
            }
            Promise::Refused { instance } => self.on_refused(from, instance, port, out),
            Promise::Discard { instance } => {
                if self.is_current(instance) && self.accepted().is_none() {
                    self.end(None, Cause::Busy, port, out);
                }
            }
            Promise::Ask { instance } => self.on_ask(from, instance, port, out),
            Promise::Decided { instance, list } => {
                self.replay(instance, &list, port);
                if self.is_current(instance) {
                    self.end(Some(list), Cause::Busy, port, out);
                }
            }
        }
    }

    fn is_current(&self, instance: Instance) -> bool {
        self.state.current.as_ref().is_some_and(|current| current.instance == instance)
    }

    fn accepted(&self) -> Option<&List> {
        self.state.current.as_ref()?.accepted.as_ref()
    }

    pub(super) fn is_over(&self, instance: Instance) -> bool {
        !self.is_current(instance) && self.state.over.get(&instance.leader).is_some_and(|over| instance.number <= *over)
    }

    /// Tells `to` what became of an instance that is over for this site.
    fn tell_outcome(&self, to: SiteId, instance: Instance, out: &mut Out) {
        match self.recent.last_of(to) {
            Some((last, list)) if last == instance => out.promise(to, Promise::Decided { instance, list: list.clone() }),
            _ => out.promise(to, Promise::Refused { instance }),
        }
    }

    /// 4.3.2 (ii).
    fn on_election(&mut self, from: SiteId, instance: Instance, call: Call, port: &mut dyn AccountPort, out: &mut Out) {
        if self.is_over(instance) {
            return self.tell_outcome(from, instance, out);
        }
        if let Some(current) = &self.state.current {
            if current.instance == instance {
                let entry = current.entry.clone();
                return out.promise(from, Promise::ElectionOk { instance, entry });
            }
            let superseded = current.instance.leader == instance.leader && current.instance < instance && current.accepted.is_none();
            if !superseded {
                return out.note(from, Note::Busy { instance });
            }
            self.end(None, Cause::Busy, port, out);
        }
        let entry = port.offer(call);
        self.state.current = Some(Current { instance, entry: entry.clone(), accepted: None });
        self.role = Role::Member { accepted_by: Accepted::new(), waited: 0 };
        out.changed = true;
        out.promise(from, Promise::ElectionOk { instance, entry });
    }

    fn on_election_ok(&mut self, from: SiteId, instance: Instance, entry: Entry, port: &mut dyn AccountPort, out: &mut Out) {
        if !self.is_current(instance) {
            if self.is_over(instance) {
                self.tell_outcome(from, instance, out);
            }
            return;
        }
        if let Role::Candidate { answers, busy, refused, .. } = &mut self.role {
            // What it said before it refused may come after.
            if !refused.contains(&from) {
                busy.remove(&from);
                answers.insert(from, entry);
                self.consider(false, port, out);
            }
        } else if self.accepted().is_some_and(|list| list.entry(from).is_none()) {
            // It came too late to be chosen.
            out.promise(from, Promise::Discard { instance });
        }
    }

    /// Chooses the members if the answers allow it; `eager`: even if more of them would be better. 4.3.2 (i).
    fn consider(&mut self, eager: bool, port: &mut dyn AccountPort, out: &mut Out) {
        let Role::Candidate { answers, busy, waited, .. } = &self.role else { return };
        let entries = answers.values();
        let all = answers.len() == self.cluster.size();
        if !is_satisfied(entries.clone()) {
            let heard = answers.len() + busy.len() == self.cluster.size();
            if !(heard || eager) {
                return;
            }
            let gains = answers.iter().any(|(site, entry)| *site != self.cluster.me && !entry.offered.is_none());
            if !gains && !all {
                if heard {
                    self.give_up(Cause::Busy, port, out);
                }
                return;
            }
        }
        let list = List { reallocation: self.reallocation, gathered: Some(waited + 1), entries: answers.values().cloned().collect() };
        let current = self.state.current.as_mut().expect("a candidate is in its own instance");
        let instance = current.instance;
        current.accepted = Some(list.clone());
        out.changed = true;
        for site in self.cluster.others() {
            let promise = match list.entry(site) {
                Some(_) => Promise::Accept { instance, list: list.clone() },
                None => Promise::Discard { instance },
            };
            out.promise(site, promise);
        }
        self.role = Role::Proposer { accepted_by: Accepted::from([(self.cluster.me, self.cluster.losses())]), waited: 0 };
        self.count_accepted(port, out);
    }

    /// Ends the own instance, of which no list was sent.
    pub(super) fn give_up(&mut self, cause: Cause, port: &mut dyn AccountPort, out: &mut Out) {
        let instance = self.state.current.as_ref().expect("a candidate is in its own instance").instance;
        self.end(None, cause, port, out);
        for site in self.cluster.others() {
            out.promise(site, Promise::Discard { instance });
        }
    }

    fn on_accept(&mut self, from: SiteId, instance: Instance, list: List, out: &mut Out) {
        if self.is_over(instance) {
            return self.tell_outcome(from, instance, out);
        }
        let Some(current) = self.state.current.as_mut().filter(|current| current.instance == instance) else {
            // No list can hold an offer of a site that made none.
            return;
        };
        if current.accepted.is_none() {
            assert_eq!(list.entry(self.cluster.me), Some(&current.entry), "a list holds the offer that is frozen");
            current.accepted = Some(list);
            out.changed = true;
            self.role = self.member_with_list(instance);
        }
        // Even if the list is of two: what this site has accepted counts once it is on disk.
        out.promise(from, Promise::AcceptOk { instance, losses: self.cluster.losses() });
    }

    /// 4.3.2 (iii): decided once all members have the list ([`is_complete`](Self::is_complete), whoever is lost).
    fn count_accepted(&mut self, port: &mut dyn AccountPort, out: &mut Out) {
        let (Role::Proposer { accepted_by, .. } | Role::Member { accepted_by, .. }) = &self.role else { return };
        let Some(list) = self.accepted().filter(|list| self.is_complete(list, accepted_by)) else { return };
        let list = list.clone();
        let instance = self.state.current.as_ref().expect("there is a list of it").instance;
        let others = list.members().filter(|site| *site != self.cluster.me && !self.cluster.is_lost(*site));
        let others: Vec<SiteId> = others.collect();
        if self.has_lost_members(&list) && !self.counts_as_decided(&list) {
            self.end(None, Cause::Unanswered, port, out);
            return others.into_iter().for_each(|site| out.promise(site, Promise::Refused { instance }));
        }
        self.end(Some(list.clone()), Cause::Busy, port, out);
        for site in others {
            out.promise(site, Promise::Decided { instance, list: list.clone() });
        }
    }

    fn on_refused(&mut self, from: SiteId, instance: Instance, port: &mut dyn AccountPort, out: &mut Out) {
        if !self.is_current(instance) {
            return;
        }
        if let Role::Candidate { answers, busy, refused, .. } = &mut self.role {
            // It takes its offer back before it was chosen.
            answers.remove(&from);
            refused.insert(from);
            busy.insert(from);
            return self.consider(false, port, out);
        }
        let members: Vec<SiteId> = self.accepted().into_iter().flat_map(List::members).collect();
        // A site that was asked and not chosen may refuse as it likes.
        if !members.is_empty() && !members.contains(&from) {
            return;
        }
        self.end(None, Cause::Unanswered, port, out);
        for site in members.into_iter().filter(|site| *site != self.cluster.me && !self.cluster.is_lost(*site)) {
            out.promise(site, Promise::Refused { instance });
        }
    }

    /// 4.3.2, failure recovery.
    fn on_ask(&mut self, from: SiteId, instance: Instance, port: &mut dyn AccountPort, out: &mut Out) {
        if self.is_over(instance) {
            return self.tell_outcome(from, instance, out);
        }
        if self.is_current(instance) {
            if self.accepted().is_some() {
                return out.promise(from, Promise::AcceptOk { instance, losses: self.cluster.losses() });
            }
            self.end(None, Cause::Unanswered, port, out);
        }
        self.refuse(instance, out);
        out.promise(from, Promise::Refused { instance });
    }

    fn refuse(&mut self, instance: Instance, out: &mut Out) {
        let over = self.state.over.entry(instance.leader).or_default();
        *over = instance.number.max(*over);
        out.changed = true;
    }

    /// The instance is over for this site: with `list` decided, or dead.
    fn end(&mut self, list: Option<List>, cause: Cause, port: &mut dyn AccountPort, out: &mut Out) {
        let current = self.state.current.take().expect("an instance ends that is under way");
        self.refuse(current.instance, out);
        self.role = Role::Member { accepted_by: Accepted::new(), waited: 0 };
        let in_doubt = list.as_ref().or(current.accepted.as_ref()).map_or(0, |known| self.in_doubt(known, list.is_some()));
        if in_doubt > 0 {
            port.put_in_doubt(in_doubt);
        }
        match list {
            Some(list) => {
                assert_eq!(list.entry(self.cluster.me), Some(&current.entry), "a list holds the offer that is frozen");
                port.apply(&list);
                self.recent.remember(current.instance, &list);
                out.remembered = true;
                out.endings.push(Ending::Decided { list, led: current.instance.leader == self.cluster.me });
            }
            None => {
                port.withdraw();
                out.endings.push(Ending::Dead(cause));
            }
        }
    }

    /// Time passes.
    pub fn tick(&mut self, patience: &Patience, port: &mut dyn AccountPort, out: &mut Out) {
        let Some(current) = &self.state.current else { return };
        let (instance, has_list) = (current.instance, current.accepted.is_some());
        let due = |waited: u32| waited.is_multiple_of(patience.resend);
        match &mut self.role {
            Role::Member { waited, .. } => {
                *waited += 1;
                let waited = *waited;
                if waited >= patience.cohort && !has_list {
                    self.end(None, Cause::Unanswered, port, out);
                    out.promise(instance.leader, Promise::Refused { instance });
                } else if waited >= patience.cohort && due(waited) {
                    self.ask_members(instance, out);
                }
            }
            Role::Candidate { waited, .. } => {
                *waited += 1;
                let waited = *waited;
                self.consider(waited >= patience.gather, port, out);
                if !matches!(self.role, Role::Candidate { .. }) {
                    return;
                }
                if waited >= patience.give_up {
                    self.give_up(Cause::Unanswered, port, out);
                } else if due(waited) {
                    self.send_again(instance, out);
                }
            }
            Role::Proposer { waited, .. } => {
                *waited += 1;
                let waited = *waited;
                if self.aborts_after_accept(waited, patience, port, out) {
                    return;
                }
                if due(waited) {
                    self.send_again(instance, out);
                }
            }
        }
    }

    /// Sends once more what should have been answered.
    fn send_again(&self, instance: Instance, out: &mut Out) {
        for site in self.cluster.others() {
            match &self.role {
                Role::Candidate { call, answers, .. } if !answers.contains_key(&site) => {
                    out.promise(site, Promise::Election { instance, call: *call });
                }
                Role::Proposer { accepted_by, .. } if !self.has_accepted(site, accepted_by) => {
                    if let Some(list) = self.accepted().filter(|list| list.entry(site).is_some()) {
                        out.promise(site, Promise::Accept { instance, list: list.clone() });
                    }
                }
                _ => {}
            }
        }
    }

    fn ask_members(&self, instance: Instance, out: &mut Out) {
        let Role::Member { accepted_by, .. } = &self.role else { return };
        let is_asked = |site: &SiteId| *site != self.cluster.me && !self.cluster.is_lost(*site);
        for site in self.accepted().into_iter().flat_map(List::members).filter(is_asked) {
            // The leader is asked too: it may know that the instance is dead or decided.
            if site == instance.leader || !self.has_accepted(site, accepted_by) {
                out.promise(site, Promise::Ask { instance });
            }
        }
    }
}
