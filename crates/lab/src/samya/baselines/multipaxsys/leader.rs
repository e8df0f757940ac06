//! A leader: one queue of requests, and the slots of the log that are in flight.

use super::command::{Change, Command, CommandId, Entry};
use super::message::Note;
use super::{Effects, LEASE, QUEUE_MAX, RESEND, Settings};
use rhumb_core::{Ballot, SiteId, Time};
use rhumb_quota::request::Request;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a voter needs while it leads.
pub(super) struct Leader {
    pub(super) ballot: Ballot,
    voters: Vec<SiteId>,
    settings: Settings,
    queue: VecDeque<(CommandId, Request)>,
    /// What is queued or in flight: a request sent again is not queued again.
    known: BTreeSet<CommandId>,
    flights: BTreeMap<u64, Flight>,
    /// The next free slot.
    next: u64,
    /// When the last heartbeat left that each voter heard.
    heard: BTreeMap<SiteId, Time>,
}

/// A slot proposed and not yet applied.
struct Flight {
    entry: Entry,
    stored: BTreeSet<SiteId>,
    sent: Time,
}

/// What a leader does with the request at the head of its queue.
pub(super) enum Turn {
    /// It only looks, and nothing before it is in flight.
    Read(CommandId, Request),
    /// It is on its way, or there is none, or it has to wait.
    Wait,
}

impl Leader {
    /// The leader of `ballot`, which proposes again what was `open`: entries that may have been chosen after slot `applied`.
    pub(super) fn new(
        ballot: Ballot,
        (voters, settings): (Vec<SiteId>, Settings),
        (now, applied): (Time, u64),
        mut open: BTreeMap<u64, Entry>,
        fx: &mut Effects,
    ) -> Leader {
        let last = open.last_key_value().map_or(applied, |(slot, _)| *slot);
        let (queue, known, heard) = (VecDeque::new(), BTreeSet::new(), BTreeMap::new());
        let mut leader = Leader { ballot, voters, settings, queue, known, flights: BTreeMap::new(), next: applied + 1, heard };
        for slot in applied + 1..=last {
            leader.propose(now, open.remove(&slot).unwrap_or_default(), fx);
        }
        leader
    }

    fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// Takes a gateway's request, unless it is here already or the queue is full: the gateway asks again.
    pub(super) fn enqueue(&mut self, id: CommandId, request: Request) {
        if self.queue.len() < QUEUE_MAX && self.known.insert(id) {
            self.queue.push_back((id, request));
        }
    }

    /// Starts what may start, in the order of the queue.
    pub(super) fn turn(&mut self, now: Time, fx: &mut Effects) -> Turn {
        while self.flights.len() < self.settings.depth {
            let mut entry = Entry::new();
            while entry.len() < self.settings.batch
                && let Some(change) = self.queue.front().and_then(|(_, request)| Change::of(request))
                && let Some((id, _)) = self.queue.pop_front()
            {
                entry.push(Command { id, change });
            }
            if entry.is_empty() {
                break;
            }
            self.propose(now, entry, fx);
        }
        let is_read = self.queue.front().is_some_and(|(_, request)| Change::of(request).is_none());
        match self.queue.pop_front_if(|_| is_read && self.flights.is_empty()) {
            Some((id, request)) => {
                self.known.remove(&id);
                Turn::Read(id, request)
            }
            None => Turn::Wait,
        }
    }

    fn propose(&mut self, now: Time, entry: Entry, fx: &mut Effects) {
        let slot = self.next;
        self.next += 1;
        for &voter in &self.voters {
            fx.send(voter, Note::Accept { ballot: self.ballot, slot, entry: entry.clone() });
        }
        self.flights.insert(slot, Flight { entry, stored: BTreeSet::new(), sent: now });
    }

    /// A voter has stored the entry of `slot`.
    pub(super) fn stored(&mut self, from: SiteId, slot: u64) {
        if let Some(flight) = self.flights.get_mut(&slot) {
            flight.stored.insert(from);
        }
    }

    /// Takes the entry of `slot` out of flight, if it is chosen.
    pub(super) fn take_chosen(&mut self, slot: u64) -> Option<Entry> {
        self.flights.get(&slot).filter(|flight| flight.stored.len() >= self.majority())?;
        let flight = self.flights.remove(&slot)?;
        for command in &flight.entry {
            self.known.remove(&command.id);
        }
        Some(flight.entry)
    }

    /// A voter has heard the heartbeat that left at `sent`.
    pub(super) fn heard_by(&mut self, from: SiteId, sent: Time) {
        let latest = self.heard.entry(from).or_insert(sent);
        *latest = (*latest).max(sent);
    }

    /// True while nobody else can have been elected.
    pub(super) fn holds_lease(&self, now: Time) -> bool {
        self.heard.values().filter(|sent| now.since(**sent) <= LEASE).count() >= self.majority()
    }

    /// Sends again what has been in flight for long.
    pub(super) fn send_again(&mut self, now: Time, fx: &mut Effects) {
        for (&slot, flight) in &mut self.flights {
            if now.since(flight.sent) < RESEND {
                continue;
            }
            flight.sent = now;
            for &voter in self.voters.iter().filter(|voter| !flight.stored.contains(*voter)) {
                fx.send(voter, Note::Accept { ballot: self.ballot, slot, entry: flight.entry.clone() });
            }
        }
    }
}
