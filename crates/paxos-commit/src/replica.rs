//! A region's part: it executes attempts, votes on them, and applies what was decided.
//!
//! ```text
//!   Execute ─▶ waits for its locks ─▶ reads ─▶ executed ─┐
//!                    ▲                  │ wounded        ├─ Prepare ─▶ votes yes ─▶ in doubt ─▶ outcome known
//!                    └──────────────────┘                └───────────▶ votes no
//! ```
//!
//! Invariants: a register is written once, and locks of an attempt that was voted for stay until its outcome is applied.

use super::config::TICK;
use super::control::Change;
use super::message::{Note, Promise, Proposal};
use super::planted::Planted;
use super::reading::{Found, Reading};
use super::records::{self, Register};
use super::site::{Job, Site};
use rhumb_commit::one_shot::execution::Writes;
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_commit::votes::{Outcome, Refusal, Tally, Vote};
use rhumb_core::{Batch, Effects, Key, Loaded, RegionId, Row, SiteId, Table, Timestamp, TxnId, work};
use std::collections::BTreeMap;

/// An attempt that is not voted on.
#[derive(Debug)]
struct Executing {
    footprint: Footprint,
    /// Counts how often it was begun anew: what was read before a wound does not count.
    round: u64,
    is_ready: bool,
    /// What was read and told, unless it was wounded since.
    found: Option<Found>,
    /// The tick in which it was heard of last.
    since: u64,
}

/// An attempt that this region has voted for.
#[derive(Debug)]
struct Doubt {
    proposal: Proposal,
    tally: Tally,
    /// The tick in which it was voted for, or asked about last.
    since: u64,
}

/// What a replica knows of attempts.
#[derive(Debug, Default)]
pub(super) struct Replica {
    executing: BTreeMap<TxnId, Executing>,
    /// Being validated: their locks are held, and there is no vote yet.
    validating: BTreeMap<TxnId, Proposal>,
    doubts: BTreeMap<TxnId, Doubt>,
    votes: BTreeMap<TxnId, Vote>,
    rounds: u64,
}

impl Replica {
    /// Lists its tables; `transactions_max` at the most are under way anywhere. A register is kept for ever: whoever is in doubt about an
    /// attempt, however late, must not take the lack of a vote for one that will never be cast.
    pub(super) fn tables(&self, transactions_max: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("replica.executing", self.executing.len(), transactions_max));
        visit(Table::new("replica.validating", self.validating.len(), transactions_max));
        visit(Table::new("replica.doubts", self.doubts.len(), transactions_max));
        visit(Table::new("replica.votes", self.votes.len(), usize::MAX).stays());
    }

    /// How many attempts wait for their outcome.
    pub(super) fn in_doubt(&self) -> usize {
        self.doubts.len()
    }
}

impl Site {
    /// A coordinator wants to know the rows of a transaction, for the first time or again.
    pub(super) fn on_execute(&mut self, txn: TxnId, transaction: &Transaction, fx: &mut Effects<Site>) {
        if self.replica.votes.contains_key(&txn) || self.replica.validating.contains_key(&txn) {
            return;
        }
        let now = self.ticks;
        self.replica.rounds += 1;
        let round = self.replica.rounds;
        if let Some(executing) = self.replica.executing.get_mut(&txn) {
            executing.since = now;
            if executing.is_ready {
                executing.round = round;
                self.read(txn, fx);
            }
            return;
        }
        let footprint = transaction.footprint();
        let executing = Executing { footprint: footprint.clone(), round, is_ready: false, found: None, since: now };
        self.replica.executing.insert(txn, executing);
        let changes = self.control.execute(txn, &footprint);
        self.follow(changes, fx);
    }

    /// Follows up on what concurrency control says.
    fn follow(&mut self, changes: Vec<Change>, fx: &mut Effects<Site>) {
        for change in changes {
            match change {
                Change::Ready(txn) => {
                    self.replica.executing.get_mut(&txn).expect("only who executes gets ready").is_ready = true;
                    self.read(txn, fx);
                }
                Change::Wounded(txn) => {
                    fx.count("paxos_commit.wounded");
                    self.replica.rounds += 1;
                    let executing = self.replica.executing.get_mut(&txn).expect("only who executes is wounded");
                    (executing.is_ready, executing.round) = (false, self.replica.rounds);
                    if executing.found.take().is_some() {
                        fx.send(txn.gateway, Note::Wounded { txn });
                    }
                }
            }
        }
    }

    fn read(&mut self, txn: TxnId, fx: &mut Effects<Site>) {
        let executing = &self.replica.executing[&txn];
        let (round, reading) = (executing.round, Reading::new(&executing.footprint));
        self.go_on_reading(txn, Some(round), reading, fx);
    }

    /// Reads on, for an execution of this round, or to validate.
    fn go_on_reading(&mut self, txn: TxnId, round: Option<u64>, reading: Reading, fx: &mut Effects<Site>) {
        match (reading.next(), round) {
            (Ok((reading, load)), _) => {
                let is_range = matches!(load, rhumb_core::Load::Scan { .. });
                let token = self.job(Job::Read { txn, round, reading, is_range });
                fx.load(token, load);
            }
            (Err(found), Some(round)) => self.executed(txn, round, found, fx),
            (Err(found), None) => {
                let proposal = self.replica.validating.remove(&txn).expect("it is being validated");
                let vote = validate(&proposal, &found);
                let vote = if self.rules.breaks(Planted::ValidationSkipped) { Ok(()) } else { vote };
                self.vote(txn, proposal, vote, fx);
            }
        }
    }

    /// Rows that were asked for.
    pub(super) fn on_read(
        &mut self,
        (txn, round, is_range): (TxnId, Option<u64>, bool),
        mut reading: Reading,
        loaded: Loaded,
        fx: &mut Effects<Site>,
    ) {
        let counts = match round {
            Some(round) => self.replica.executing.get(&txn).is_some_and(|executing| executing.round == round),
            None => self.replica.validating.contains_key(&txn),
        };
        if counts {
            reading.take(loaded, is_range);
            self.go_on_reading(txn, round, reading, fx);
        }
    }

    fn executed(&mut self, txn: TxnId, round: u64, found: Found, fx: &mut Effects<Site>) {
        let executing = self.replica.executing.get_mut(&txn).expect("it was just looked at");
        assert_eq!(executing.round, round, "what was read before a wound is not told");
        let written = executing.footprint.keys.iter().filter(|(_, writes)| **writes);
        let above = written.map(|(key, _)| self.timestamp_cache.of(key)).max().unwrap_or_default();
        let Found { rows, ranges, more } = found.clone();
        executing.found = Some(found);
        fx.send(txn.gateway, Note::Executed { txn, rows, ranges, more, above });
    }

    /// The coordinator has given an attempt up.
    pub(super) fn on_release(&mut self, txn: TxnId, fx: &mut Effects<Site>) {
        if self.replica.executing.remove(&txn).is_some() {
            let changes = self.control.release(txn);
            self.follow(changes, fx);
        }
    }

    /// The coordinator asks for this region's vote.
    pub(super) fn on_prepare(&mut self, txn: TxnId, proposal: Proposal, fx: &mut Effects<Site>) {
        if let Some(vote) = self.replica.votes.get(&txn) {
            return self.tell_vote(txn.gateway, txn, vote.clone(), fx);
        }
        if self.replica.validating.contains_key(&txn) {
            return;
        }
        let footprint = proposal.footprint();
        let executed = self.replica.executing.remove(&txn);
        if let Err(refusal) = self.control.prepare(txn, &footprint) {
            return self.vote(txn, proposal, Err(refusal), fx);
        }
        let too_old = proposal.keys.iter().filter(|(_, (_, writes))| *writes).map(|(key, _)| self.timestamp_cache.of(key)).max();
        if let Some(above) = too_old.filter(|above| proposal.at <= *above) {
            return self.vote(txn, proposal, Err(Refusal::TimestampTooLow(above)), fx);
        }
        match (&self.control, executed.and_then(|executing| executing.found)) {
            // Held since it was read here, so it is as it was read.
            (super::control::Control::Locking(_), Some(found)) => {
                let vote = validate(&proposal, &found);
                let vote = if self.rules.breaks(Planted::ValidationSkipped) { Ok(()) } else { vote };
                self.vote(txn, proposal, vote, fx);
            }
            _ => {
                self.replica.validating.insert(txn, proposal);
                self.go_on_reading(txn, None, Reading::new(&footprint), fx);
            }
        }
    }

    /// Writes the register of this region, and tells the coordinator.
    fn vote(&mut self, txn: TxnId, proposal: Proposal, verdict: Result<(), Refusal>, fx: &mut Effects<Site>) {
        let register = match verdict {
            Ok(()) => {
                self.raise_ceilings(&proposal);
                if self.rules.breaks(Planted::ReleasedAtVote) {
                    let changes = self.control.release(txn);
                    self.follow(changes, fx);
                }
                let at = proposal.at;
                let tally = Tally::default();
                self.replica.doubts.insert(txn, Doubt { proposal: proposal.clone(), tally, since: self.ticks });
                Register { vote: Vote::Firm, proposal: Some(proposal), at }
            }
            Err(refusal) => {
                fx.count(match refusal {
                    Refusal::Stale => "paxos_commit.stale",
                    Refusal::Locked => "paxos_commit.locked",
                    Refusal::LockLost => "paxos_commit.lock_lost",
                    Refusal::TimestampTooLow(_) => "paxos_commit.too_old",
                    _ => "paxos_commit.never_heard",
                });
                let changes = self.control.release(txn);
                self.follow(changes, fx);
                Register { vote: Vote::No(refusal), proposal: None, at: Timestamp::ZERO }
            }
        };
        let mut batch = Batch::new();
        records::put_register(&mut batch, txn, &register);
        self.replica.votes.insert(txn, register.vote.clone());
        // This site, too, counts its vote once that is on disk only: a later life that knew nothing of it would refuse.
        let voted = Promise::Voted { txn, vote: register.vote };
        let persist = fx.persist(batch).send(txn.gateway, voted.clone());
        if txn.gateway != self.me {
            persist.send(self.me, voted);
        }
    }

    /// Says a vote again; what is on disk before it is.
    fn tell_vote(&self, to: SiteId, txn: TxnId, vote: Vote, fx: &mut Effects<Site>) {
        fx.persist(Batch::new()).send(to, Promise::Voted { txn, vote });
    }

    fn raise_ceilings(&mut self, proposal: &Proposal) {
        proposal.keys.keys().for_each(|key| self.timestamp_cache.raise(key, proposal.at));
        proposal.ranges.iter().for_each(|(range, _)| self.timestamp_cache.raise_range(range, proposal.at));
    }

    /// `doubter` has voted yes, and asks for this region's vote, or has `from` ask for it. If there is none, it is no. Who is asked by the doubter
    /// itself asks the others, too: it may not hear them.
    pub(super) fn on_inquire(&mut self, from: SiteId, txn: TxnId, doubter: SiteId, fx: &mut Effects<Site>) {
        let mut batch = Batch::new();
        if !self.replica.votes.contains_key(&txn) {
            fx.count("paxos_commit.refused_in_doubt");
            self.replica.executing.remove(&txn);
            self.replica.validating.remove(&txn);
            let changes = self.control.release(txn);
            self.follow(changes, fx);
            let vote = Vote::No(Refusal::UnknownTransaction);
            records::put_register(&mut batch, txn, &Register { vote: vote.clone(), proposal: None, at: Timestamp::ZERO });
            self.replica.votes.insert(txn, vote);
        }
        let vote = self.replica.votes[&txn].clone();
        let is_direct = from == doubter;
        fx.persist(batch).send(from, if is_direct { Promise::Voted { txn, vote } } else { Promise::Pass { txn, vote, doubter } });
        for other in self.others().filter(|other| is_direct && *other != doubter) {
            fx.send(other, Note::Inquire { txn, doubter });
        }
    }

    /// Another region's vote on an attempt that this one is in doubt about.
    pub(super) fn count_vote(&mut self, from: RegionId, txn: TxnId, vote: &Vote, fx: &mut Effects<Site>) {
        let Some(doubt) = self.replica.doubts.get_mut(&txn) else { return };
        doubt.tally.record(from, vote.clone());
        let Some(outcome) = doubt.tally.outcome(self.regions) else { return };
        let committed = (outcome == Outcome::Committed).then(|| (doubt.proposal.at, doubt.proposal.writes.clone()));
        if txn.gateway != self.me {
            fx.count("paxos_commit.resolved_in_doubt");
            // A cut link may keep the votes from the coordinator, which hears all of them otherwise.
            fx.send(txn.gateway, Note::Decided { txn, committed: committed.clone() });
        }
        self.apply(txn, committed, fx);
    }

    /// An attempt's outcome is known: what it wrote is written, also by those who did not vote for it, and its locks are released.
    pub(super) fn apply(&mut self, txn: TxnId, committed: Option<(Timestamp, Writes)>, fx: &mut Effects<Site>) {
        fx.agree("attempt", txn, &committed.as_ref().map(|(at, _)| *at));
        let mut batch = Batch::new();
        if let Some((at, writes)) = committed {
            self.clock.observe(at);
            writes.into_iter().for_each(|(key, value)| batch.put_version(key, at, value));
        }
        if let Some(Doubt { proposal, .. }) = self.replica.doubts.remove(&txn) {
            records::put_register(&mut batch, txn, &Register { vote: Vote::Firm, proposal: None, at: proposal.at });
        }
        if !batch.ops.is_empty() {
            fx.persist(batch);
        }
        self.replica.executing.remove(&txn);
        // What is being validated still gets its vote: no register is left open.
        if !self.replica.validating.contains_key(&txn) {
            let changes = self.control.release(txn);
            self.follow(changes, fx);
        }
    }

    /// Looks after what was left behind: asks about what is in doubt, forgets executions whose coordinator has.
    pub(super) fn look_after_attempts(&mut self, fx: &mut Effects<Site>) {
        let (ticks, doubt) = (self.ticks, self.config.doubt.as_micros() / TICK.as_micros());
        let others: Vec<SiteId> = self.others().collect();
        for (&txn, waiting) in self.replica.doubts.iter_mut().filter(|(_, waiting)| waiting.since + doubt <= ticks) {
            waiting.since = ticks;
            others.iter().for_each(|other| fx.send(*other, Note::Inquire { txn, doubter: self.me }));
        }
        work::add(self.replica.doubts.len() + self.replica.executing.len());
        let late = 2 * self.config.patience.as_micros() / TICK.as_micros();
        let left: Vec<TxnId> =
            self.replica.executing.iter().filter(|(_, executing)| executing.since + late <= ticks).map(|(txn, _)| *txn).collect();
        for txn in left {
            fx.count("paxos_commit.left_behind");
            self.on_release(txn, fx);
        }
    }

    /// A register that an earlier life has written.
    pub(super) fn resume(&mut self, txn: TxnId, register: Register) {
        self.clock.observe(register.at);
        self.timestamp_cache.raise_low_water(register.at);
        self.replica.votes.insert(txn, register.vote);
        if let Some(proposal) = register.proposal {
            let forgets = self.rules.breaks(Planted::LocksNotRestored);
            if !forgets {
                self.control.restore(txn, &proposal.footprint());
            }
            let mut tally = Tally::default();
            tally.record(self.me.region, Vote::Firm);
            self.replica.doubts.insert(txn, Doubt { proposal, tally, since: 0 });
        }
    }
}

/// Whether nothing found is newer than what was read. What is older says nothing: this region may be behind, and a majority is not.
fn validate(proposal: &Proposal, found: &Found) -> Result<(), Refusal> {
    let is_current = |row: &Row| proposal.keys.get(&row.key).is_some_and(|(version, _)| row.version <= *version);
    let known = |read: &BTreeMap<Key, Timestamp>, row: &Row| read.get(&row.key).is_some_and(|version| row.version <= *version);
    let mut ranges = proposal.ranges.iter().zip(&found.ranges);
    let current = found.rows.iter().all(is_current) && ranges.all(|((_, read), rows)| rows.iter().all(|row| known(read, row)));
    if current && !found.more { Ok(()) } else { Err(Refusal::Stale) }
}
