//! Consensus of one group, the replicas of a shard, on a log of commands: Multi-Paxos with a leader, whose ballots elect it for good.
//!
//! ```text
//!   candidate                 the others
//!     ├── Canvass (my log) ───────▶│ would you? Nothing is promised: who cannot win disturbs nobody
//!     │◀─────────────── Support ───┤ nobody holds a lease here, and your log is no shorter than mine
//!     ├── Campaign (ballot) ──────▶│ the same once more
//!     │◀────────────────── Vote ───┤ on disk: no lower ballot any more
//!   leader: a majority votes, itself included
//!     ├── Append (entries) ───────▶│ one after the other, none waits for the one before
//!     │◀────────────── Accepted ───┤ on disk; and for the length of a lease no vote for others
//!     │ a majority: chosen
//! ```
//!
//! A replica votes only for a log that reaches as far as its own, by the ballot of the last entry and then by length, so a leader has
//! all that was chosen before it (Ongaro and Ousterhout, "In search of an understandable consensus algorithm"); a ballot names its
//! leader, so no two share one (Lamport, "The part-time parliament").
//!
//! Invariants:
//!
//! 1. What is promised and accepted is on disk before anybody hears of it: each step returns its writes, and the promises that wait for them.
//! 2. An entry is chosen once a majority has it and it, or a later one that a majority has, is of the present leader's ballot. What is
//!    chosen is never replaced.
//! 3. A replica that has taken in a round of a leader votes for nobody else until it has itself counted a lease from there. One that
//!    has restarted does not know when that was: it counts from its start. So nobody else is elected while a leader
//!    [holds its lease](Group::holds_lease).
//! 4. Safety of the log depends on no count of time; a lease only spares reads a round.

mod candidacy;
mod leading;
mod log;
mod message;
#[cfg(test)]
mod tests;

pub use log::{Command, Entry, Log, NO_BALLOT, Position, Slot};
pub use message::{GroupNote, GroupPromise};

use crate::planted::Planted;
use leading::Leading;
use rhumb_core::{Ballot, Rules, SiteId, Span, Table, Time};
use std::collections::BTreeSet;

/// Bytes of entries in one message; one entry at least.
pub const APPEND_BYTES_MAX: usize = 2 << 20;
/// Entries in one message.
pub const APPEND_ENTRIES_MAX: usize = 512;
/// Entries that a peer is sent before it has accepted the first of them.
pub const WINDOW: u64 = 4_096;
/// Rounds that may be open before no further ones begin.
pub const ROUNDS_MAX: usize = 4_096;

/// How long what takes, in ticks of the site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pace {
    /// A follower votes for nobody else for so long. Zero: there are no leases, and anybody may be elected at any time.
    pub lease_ticks: u64,
    /// A leader counts on that for so long.
    pub lease: Span,
    /// Between two rounds of a leader that has nothing else to say.
    pub heartbeat_ticks: u64,
    /// A candidate tries again after so long.
    pub campaign_ticks: u64,
    /// The next in the order of preference waits for so long more before it becomes a candidate.
    pub stagger_ticks: u64,
    /// A leader yields to a preferred replica that has kept up for so long.
    pub yield_ticks: u64,
}

/// Something to be written down; in the order of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<C> {
    /// The ballot promised.
    Promised(Ballot),
    /// An entry, in place of what was in its slot.
    Entry(Slot, Entry<C>),
    /// No entry in these slots any more, the first and the last.
    Dropped(Slot, Slot),
}

/// What comes of a step. All of it is to be carried out: the writes in one batch, and the promises once they are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<C> {
    /// What is to be written.
    pub writes: Vec<Write<C>>,
    /// What may be sent at once.
    pub notes: Vec<(SiteId, GroupNote<C>)>,
    /// What may be sent once the writes, and all before them, are durable; also to the replica itself.
    pub promises: Vec<(SiteId, GroupPromise)>,
}

impl<C> Default for Step<C> {
    fn default() -> Step<C> {
        Step { writes: Vec::new(), notes: Vec::new(), promises: Vec::new() }
    }
}

/// What a replica does at present.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// It follows whoever leads.
    Following,
    /// It asks whether it would be elected.
    Canvassing { ballot: Ballot, supporters: BTreeSet<SiteId>, since: u64 },
    /// It asks for votes.
    Campaigning { ballot: Ballot, voters: BTreeSet<SiteId>, since: u64 },
    /// It leads.
    Leading(Leading),
}

/// To whom a replica may have promised not to vote for others, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Heard {
    leader: SiteId,
    tick: u64,
}

/// What a replica finds on its disk.
#[derive(Clone, Debug)]
pub struct Recovered<C> {
    /// The ballot that it has promised.
    pub promised: Ballot,
    /// Its log.
    pub log: Log<C>,
    /// What it knows to be chosen.
    pub chosen: Slot,
}

/// One replica of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group<C> {
    me: SiteId,
    /// All replicas, the preferred leader first.
    members: Vec<SiteId>,
    pace: Pace,
    rules: Rules<Planted>,
    promised: Ballot,
    log: Log<C>,
    chosen: Slot,
    role: Role,
    heard: Option<Heard>,
    /// The highest number of a ballot heard of.
    highest: u64,
    /// Ticks in this incarnation.
    tick: u64,
    /// When to become a candidate at the earliest.
    next_try: u64,
    /// The steady reading of the present step.
    now: Option<Time>,
}

impl<C: Command> Group<C> {
    /// The replica `me`, with what its disk holds.
    pub fn recovered(me: SiteId, members: Vec<SiteId>, pace: Pace, rules: Rules<Planted>, disk: Recovered<C>) -> Group<C> {
        let Recovered { promised, log, chosen } = disk;
        // Whoever holds a lease that this replica has granted is the leader of the ballot promised: no other one was voted for since.
        let may_have_granted = promised != NO_BALLOT && !rules.breaks(Planted::LeaseNotWaitedOut);
        let heard = may_have_granted.then_some(Heard { leader: promised.leader, tick: 0 });
        let mut group = Group {
            me,
            members,
            pace,
            rules,
            promised,
            log,
            chosen,
            role: Role::Following,
            heard,
            highest: promised.number,
            tick: 0,
            next_try: 0,
            now: None,
        };
        group.next_try = group.stagger();
        group
    }

    /// Takes note of the steady clock, as it reads in this step.
    pub fn at(&mut self, now: Option<Time>) {
        self.now = now;
    }

    /// The ballot in which it leads, if it does.
    pub fn leads(&self) -> Option<Ballot> {
        match &self.role {
            Role::Leading(leading) => Some(leading.ballot),
            _ => None,
        }
    }

    /// As a leader, its own first entry.
    pub fn first_led(&self) -> Option<Slot> {
        match &self.role {
            Role::Leading(leading) => Some(leading.first),
            _ => None,
        }
    }

    /// The leader that was heard last, as far as this replica knows.
    pub fn leader(&self) -> Option<SiteId> {
        match self.leads() {
            Some(ballot) => Some(ballot.leader),
            None => self
                .heard
                .filter(|heard| heard.leader != self.me && self.tick < heard.tick + 2 * self.pace.lease_ticks)
                .map(|heard| heard.leader),
        }
    }

    /// The last slot known to be chosen.
    pub fn chosen(&self) -> Slot {
        self.chosen
    }

    /// Its log.
    pub fn log(&self) -> &Log<C> {
        &self.log
    }

    /// The ballot that it has promised.
    pub fn promised(&self) -> Ballot {
        self.promised
    }

    /// True if it leads and nobody else can have been elected by now.
    pub fn holds_lease(&self) -> bool {
        let Role::Leading(leading) = &self.role else { return false };
        match (self.now, leading.lease_end(self.pace.lease)) {
            (_, Some(_)) if self.rules.breaks(Planted::LeaseEndless) => true,
            (Some(now), Some(end)) => now < end,
            _ => false,
        }
    }

    /// The last round that a majority has taken in: nobody else was elected before it began.
    pub fn confirmed(&self) -> u64 {
        match &self.role {
            Role::Leading(leading) => leading.confirmed(),
            _ => 0,
        }
    }

    /// Begins a round; its number. None if it does not lead, or [`ROUNDS_MAX`] rounds wait for a majority.
    pub fn begin_round(&mut self, step: &mut Step<C>) -> Option<u64> {
        let now = self.now;
        let Role::Leading(leading) = &mut self.role else { return None };
        if leading.rounds_open() >= ROUNDS_MAX {
            return None;
        }
        leading.begin_round(now);
        let round = leading.round;
        // It takes the round in itself: it votes for nobody else either.
        self.heard = Some(Heard { leader: self.me, tick: self.tick });
        self.send_to_all(true, step);
        Some(round)
    }

    /// As a leader, proposes a command; its slot.
    ///
    /// # Panics
    /// If it does not lead.
    pub fn propose(&mut self, command: C, step: &mut Step<C>) -> Slot {
        let Role::Leading(leading) = &self.role else { unreachable!("only a leader proposes") };
        let (ballot, round) = (leading.ballot, leading.round);
        let entry = Entry { ballot, command };
        let slot = self.log.push(entry.clone());
        step.writes.push(Write::Entry(slot, entry));
        step.promises.push((self.me, GroupPromise::Accepted { ballot, upto: slot, round }));
        slot
    }

    /// As a leader, sends what was proposed to those who lack it.
    pub fn send_proposals(&mut self, step: &mut Step<C>) {
        self.send_to_all(false, step);
    }

    fn send_to_all(&mut self, even_nothing: bool, step: &mut Step<C>) {
        let Role::Leading(leading) = &self.role else { return };
        let peers: Vec<SiteId> = leading.peers.keys().copied().filter(|peer| *peer != self.me).collect();
        peers.into_iter().for_each(|peer| self.send_entries(peer, even_nothing, step));
        if even_nothing {
            let Role::Leading(leading) = &self.role else { return };
            let (ballot, round) = (leading.ballot, leading.round);
            let upto = self.log.last().slot;
            step.promises.push((self.me, GroupPromise::Accepted { ballot, upto, round }));
        }
    }

    /// Sends a peer the entries that come next for it, as far as its window and a message allow.
    fn send_entries(&mut self, peer: SiteId, even_nothing: bool, step: &mut Step<C>) {
        let Role::Leading(leading) = &mut self.role else { return };
        let (ballot, round) = (leading.ballot, leading.round);
        let state = leading.peers.get_mut(&peer).expect("it is a member");
        let Some(previous) = self.log.position(state.next - 1) else {
            // It is too far behind: what it needs is compacted away. Until it has that, it is sent none of what follows.
            (state.next, state.is_behind) = (self.log.base().slot + 1, true);
            return step.notes.push((peer, GroupNote::Compacted { ballot }));
        };
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while !state.is_behind
            && entries.len() < APPEND_ENTRIES_MAX
            && state.next <= state.matched + WINDOW
            && let Some(entry) = self.log.get(state.next)
        {
            bytes += entry.command.bytes();
            if !entries.is_empty() && bytes > APPEND_BYTES_MAX {
                break;
            }
            entries.push(entry.clone());
            state.next += 1;
        }
        if even_nothing || !entries.is_empty() {
            step.notes.push((peer, GroupNote::Append { ballot, round, previous, entries, chosen: self.chosen }));
        }
    }

    /// Takes what another replica, or this one, has sent.
    pub fn on_promise(&mut self, from: SiteId, promise: GroupPromise, step: &mut Step<C>) {
        match promise {
            GroupPromise::Vote { ballot } => self.on_vote(from, ballot, step),
            GroupPromise::Accepted { ballot, upto, round } => self.on_accepted(from, ballot, (upto, round), step),
        }
    }

    /// Takes what another replica has sent.
    pub fn on_note(&mut self, from: SiteId, note: GroupNote<C>, step: &mut Step<C>) {
        match note {
            GroupNote::Canvass { ballot, last } => self.on_canvass(from, ballot, last, step),
            GroupNote::Support { ballot } => self.on_support(from, ballot, step),
            GroupNote::Campaign { ballot, last } => self.on_campaign(from, ballot, last, step),
            GroupNote::Append { ballot, round, previous, entries, chosen } => {
                self.on_append(from, (ballot, round), (previous, entries), chosen, step);
            }
            GroupNote::Refused { promised } => self.on_refused(promised),
            GroupNote::Mismatch { ballot, last } => self.on_mismatch(from, ballot, last, step),
            GroupNote::Compacted { ballot } => drop(self.follow(from, ballot, step)),
            GroupNote::Yield { ballot, to } => self.on_yield(ballot, to),
        }
    }

    /// Follows the leader of `ballot`, unless a higher one is promised.
    fn follow(&mut self, from: SiteId, ballot: Ballot, step: &mut Step<C>) -> bool {
        self.highest = self.highest.max(ballot.number);
        if ballot < self.promised {
            step.notes.push((from, GroupNote::Refused { promised: self.promised }));
            return false;
        }
        self.promise(ballot, step);
        self.role = Role::Following;
        self.heard = Some(Heard { leader: from, tick: self.tick });
        self.next_try = self.tick + self.pace.lease_ticks + self.stagger();
        true
    }

    fn promise(&mut self, ballot: Ballot, step: &mut Step<C>) {
        if ballot > self.promised {
            self.promised = ballot;
            if !self.rules.breaks(Planted::PromiseForgotten) {
                step.writes.push(Write::Promised(ballot));
            }
        }
    }

    fn on_append(
        &mut self,
        from: SiteId,
        (ballot, round): (Ballot, u64),
        (previous, entries): (Position, Vec<Entry<C>>),
        chosen: Slot,
        step: &mut Step<C>,
    ) {
        if !self.follow(from, ballot, step) {
            return;
        }
        let base = self.log.base().slot;
        let agrees = previous.slot < base || self.log.position(previous.slot) == Some(previous);
        if !agrees {
            // Where the entries differ, from what is chosen on: looked for slot by slot, it would take a round trip each.
            let last = if previous.slot <= self.log.last().slot { self.chosen } else { self.log.last().slot };
            return step.notes.push((from, GroupNote::Mismatch { ballot, last }));
        }
        let upto = previous.slot + entries.len() as u64;
        for (slot, entry) in (previous.slot + 1..).zip(entries) {
            // What is compacted was chosen.
            let known = slot <= base || self.log.get(slot).is_some_and(|known| known.ballot == entry.ballot);
            if known {
                continue;
            }
            let last = self.log.last().slot;
            if slot <= last {
                assert!(slot > self.chosen || self.rules.are_broken(), "what is chosen is never replaced");
                self.log.truncate(slot);
                step.writes.push(Write::Dropped(slot, last));
            }
            self.log.push(entry.clone());
            step.writes.push(Write::Entry(slot, entry));
        }
        self.chosen = self.chosen.max(chosen.min(upto));
        step.promises.push((from, GroupPromise::Accepted { ballot, upto, round }));
    }

    fn on_accepted(&mut self, from: SiteId, ballot: Ballot, (upto, round): (Slot, u64), step: &mut Step<C>) {
        let (tick, last) = (self.tick, self.log.last().slot);
        let counts_old = self.rules.breaks(Planted::OldBallotCounted);
        let Role::Leading(leading) = &mut self.role else { return };
        if leading.ballot != ballot {
            return;
        }
        leading.on_accepted(from, upto.min(last), round, tick);
        let held = leading.held_by_majority();
        if held > self.chosen && (held >= leading.first || counts_old) {
            self.chosen = held;
        }
        if from != self.me {
            self.send_entries(from, false, step);
        }
    }

    fn on_mismatch(&mut self, from: SiteId, ballot: Ballot, last: Slot, step: &mut Step<C>) {
        let (tick, base) = (self.tick, self.log.base().slot);
        let Role::Leading(leading) = &mut self.role else { return };
        let Some(peer) = leading.peers.get_mut(&from).filter(|_| leading.ballot == ballot) else { return };
        peer.heard = tick;
        if peer.is_behind && last < base {
            return step.notes.push((from, GroupNote::Compacted { ballot }));
        }
        if last + 1 < peer.next || peer.is_behind {
            (peer.next, peer.is_behind) = (last.max(peer.matched) + 1, false);
            self.send_entries(from, true, step);
        }
    }

    /// The state up to `position`, which is chosen, has come from another replica.
    pub fn install(&mut self, position: Position, step: &mut Step<C>) {
        let (first, last) = (self.log.base().slot + 1, self.log.last().slot);
        if position.slot <= self.log.base().slot {
            return;
        }
        if self.log.position(position.slot) == Some(position) {
            self.compact(position.slot, step);
        } else {
            self.log = Log::behind(position);
            step.writes.push(Write::Dropped(first, last));
        }
        self.chosen = self.chosen.max(position.slot);
    }

    /// Drops the entries up to `slot`, which must be chosen, and applied to a state that is on disk with this step's writes.
    pub fn compact(&mut self, slot: Slot, step: &mut Step<C>) {
        let first = self.log.base().slot + 1;
        let slot = slot.min(self.chosen);
        self.log.compact(slot);
        if self.log.base().slot >= first {
            step.writes.push(Write::Dropped(first, self.log.base().slot));
        }
    }

    /// As a leader, the last slot that all replicas have which were heard lately.
    pub fn held_by_all_heard(&self) -> Slot {
        let Role::Leading(leading) = &self.role else { return self.chosen };
        let heard = leading.peers.values().filter(|peer| self.tick < peer.heard + 2 * self.pace.lease_ticks);
        heard.map(|peer| peer.matched).min().unwrap_or(0)
    }

    /// Lists its tables; `entries_max` are kept at the most.
    pub fn tables(&self, entries_max: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("group.log", self.log.len(), entries_max).stays());
        if let Role::Leading(leading) = &self.role {
            visit(Table::new("group.rounds", leading.rounds_open(), ROUNDS_MAX).stays());
        }
    }
}
