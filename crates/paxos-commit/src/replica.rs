//! A region's part: it executes attempts, votes on them, and applies what was decided.
//!
//! ```text
//!   Execute ─▶ waits for its locks ─▶ reads ─▶ executed ─┐
//!                    ▲                  │ wounded        ├─ Prepare ─▶ votes yes ─▶ in doubt ─▶ outcome known
//!                    └──────────────────┘                └───────────▶ votes no
//! ```
//!
//! Invariants: a register is written once, and locks of an attempt that was voted for stay until its outcome is applied.

use super::config::{Concurrency, TICK};
use super::context::{Context, Job};
use super::control::{Change, Control};
use super::message::{Note, Promise, Proposal};
use super::planted::Planted;
use super::reading::{Found, Reading};
use super::records::{self, Register};
use rhumb_commit::one_shot::execution::Writes;
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_commit::timestamp_cache::TimestampCache;
use rhumb_commit::votes::{Outcome, Refusal, Tally, Vote};
use rhumb_core::{Batch, Key, Loaded, RegionId, Row, SiteId, Table, Timestamp, TxnId, work};
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

/// What a replica knows of attempts, and what it grants them.
#[derive(Debug)]
pub(super) struct Replica {
    control: Control,
    /// Up to which timestamp keys were read by what was voted for here.
    timestamp_cache: TimestampCache,
    executing: BTreeMap<TxnId, Executing>,
    /// Being validated: their locks are held, and there is no vote yet.
    validating: BTreeMap<TxnId, Proposal>,
    doubts: BTreeMap<TxnId, Doubt>,
    votes: BTreeMap<TxnId, Vote>,
    rounds: u64,
}

impl Replica {
    /// One that knows of none.
    pub(super) fn new(concurrency: Concurrency) -> Replica {
        Replica {
            control: Control::new(concurrency),
            timestamp_cache: TimestampCache::default(),
            executing: BTreeMap::new(),
            validating: BTreeMap::new(),
            doubts: BTreeMap::new(),
            votes: BTreeMap::new(),
            rounds: 0,
        }
    }

    /// Lists its tables; `transactions_max` at the most are under way anywhere. A register is kept for ever: whoever is in doubt about an
    /// attempt, however late, must not take the lack of a vote for one that will never be cast.
    pub(super) fn tables(&self, transactions_max: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("replica.executing", self.executing.len(), transactions_max));
        visit(Table::new("replica.validating", self.validating.len(), transactions_max));
        visit(Table::new("replica.doubts", self.doubts.len(), transactions_max));
        visit(Table::new("replica.votes", self.votes.len(), usize::MAX).stays());
        self.timestamp_cache.tables(visit);
    }

    /// How many attempts wait for their outcome.
    pub(super) fn in_doubt(&self) -> usize {
        self.doubts.len()
    }

    /// A coordinator wants to know the rows of a transaction, for the first time or again.
    pub(super) fn on_execute(&mut self, txn: TxnId, transaction: &Transaction, cx: &mut Context<'_>) {
        if self.votes.contains_key(&txn) || self.validating.contains_key(&txn) {
            return;
        }
        let now = cx.ticks;
        self.rounds += 1;
        let round = self.rounds;
        if let Some(executing) = self.executing.get_mut(&txn) {
            executing.since = now;
            if executing.is_ready {
                executing.round = round;
                self.read(txn, cx);
            }
            return;
        }
        let footprint = transaction.footprint();
        let executing = Executing { footprint: footprint.clone(), round, is_ready: false, found: None, since: now };
        self.executing.insert(txn, executing);
        let changes = self.control.execute(txn, &footprint);
        self.follow(changes, cx);
    }

    /// Follows up on what concurrency control says.
    fn follow(&mut self, changes: Vec<Change>, cx: &mut Context<'_>) {
        for change in changes {
            match change {
                Change::Ready(txn) => {
                    self.executing.get_mut(&txn).expect("only who executes gets ready").is_ready = true;
                    self.read(txn, cx);
                }
                Change::Wounded(txn) => {
                    cx.fx.count("paxos_commit.wounded");
                    self.rounds += 1;
                    let executing = self.executing.get_mut(&txn).expect("only who executes is wounded");
                    (executing.is_ready, executing.round) = (false, self.rounds);
                    if executing.found.take().is_some() {
                        cx.fx.send(txn.gateway, Note::Wounded { txn });
                    }
                }
            }
        }
    }

    fn read(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let executing = &self.executing[&txn];
        let (round, reading) = (executing.round, Reading::new(&executing.footprint));
        self.go_on_reading(txn, Some(round), reading, cx);
    }

    /// Reads on, for an execution of this round, or to validate.
    fn go_on_reading(&mut self, txn: TxnId, round: Option<u64>, reading: Reading, cx: &mut Context<'_>) {
        match (reading.next(), round) {
            (Ok((reading, load)), _) => {
                let is_range = matches!(load, rhumb_core::Load::Scan { .. });
                let token = cx.jobs.begin(Job::Read { txn, round, reading, is_range });
                cx.fx.load(token, load);
            }
            (Err(found), Some(round)) => self.executed(txn, round, found, cx),
            (Err(found), None) => {
                let proposal = self.validating.remove(&txn).expect("it is being validated");
                let vote = validate(&proposal, &found);
                let vote = if cx.rules.breaks(Planted::ValidationSkipped) { Ok(()) } else { vote };
                self.vote(txn, proposal, vote, cx);
            }
        }
    }

    /// Rows that were asked for.
    pub(super) fn on_read(
        &mut self,
        (txn, round, is_range): (TxnId, Option<u64>, bool),
        mut reading: Reading,
        loaded: Loaded,
        cx: &mut Context<'_>,
    ) {
        let counts = match round {
            Some(round) => self.executing.get(&txn).is_some_and(|executing| executing.round == round),
            None => self.validating.contains_key(&txn),
        };
        if counts {
            reading.take(loaded, is_range);
            self.go_on_reading(txn, round, reading, cx);
        }
    }

    fn executed(&mut self, txn: TxnId, round: u64, found: Found, cx: &mut Context<'_>) {
        let executing = self.executing.get_mut(&txn).expect("it was just looked at");
        assert_eq!(executing.round, round, "what was read before a wound is not told");
        let written = executing.footprint.keys.iter().filter(|(_, writes)| **writes);
        let above = written.map(|(key, _)| self.timestamp_cache.of(key)).max().unwrap_or_default();
        let Found { rows, ranges, more } = found.clone();
        executing.found = Some(found);
        cx.fx.send(txn.gateway, Note::Executed { txn, rows, ranges, more, above });
    }

    /// The coordinator has given an attempt up.
    pub(super) fn on_release(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        if self.executing.remove(&txn).is_some() {
            let changes = self.control.release(txn);
            self.follow(changes, cx);
        }
    }

    /// The coordinator asks for this region's vote.
    pub(super) fn on_prepare(&mut self, txn: TxnId, proposal: Proposal, cx: &mut Context<'_>) {
        if let Some(vote) = self.votes.get(&txn) {
            return self.send_vote(txn.gateway, txn, vote.clone(), cx);
        }
        if self.validating.contains_key(&txn) {
            return;
        }
        let footprint = proposal.footprint();
        let executed = self.executing.remove(&txn);
        if let Err(refusal) = self.control.prepare(txn, &footprint) {
            return self.vote(txn, proposal, Err(refusal), cx);
        }
        let read_upto = proposal.keys.iter().filter(|(_, (_, writes))| *writes).map(|(key, _)| self.timestamp_cache.of(key)).max();
        if let Some(above) = read_upto.filter(|above| proposal.at <= *above) {
            return self.vote(txn, proposal, Err(Refusal::TimestampTooLow(above)), cx);
        }
        match (&self.control, executed.and_then(|executing| executing.found)) {
            // Held since it was read here, so it is as it was read.
            (Control::Locking(_), Some(found)) => {
                let vote = validate(&proposal, &found);
                let vote = if cx.rules.breaks(Planted::ValidationSkipped) { Ok(()) } else { vote };
                self.vote(txn, proposal, vote, cx);
            }
            _ => {
                self.validating.insert(txn, proposal);
                self.go_on_reading(txn, None, Reading::new(&footprint), cx);
            }
        }
    }

    /// Writes the register of this region, and tells the coordinator.
    fn vote(&mut self, txn: TxnId, proposal: Proposal, verdict: Result<(), Refusal>, cx: &mut Context<'_>) {
        let register = match verdict {
            Ok(()) => {
                self.note_reads(&proposal);
                if cx.rules.breaks(Planted::ReleasedAtVote) {
                    let changes = self.control.release(txn);
                    self.follow(changes, cx);
                }
                let at = proposal.at;
                let tally = Tally::default();
                self.doubts.insert(txn, Doubt { proposal: proposal.clone(), tally, since: cx.ticks });
                Register { vote: Vote::Firm, proposal: Some(proposal), at }
            }
            Err(refusal) => {
                cx.fx.count(match refusal {
                    Refusal::Stale => "paxos_commit.stale",
                    Refusal::Locked => "paxos_commit.locked",
                    Refusal::LockLost => "paxos_commit.lock_lost",
                    Refusal::TimestampTooLow(_) => "paxos_commit.timestamp_too_low",
                    _ => "paxos_commit.unknown_transaction",
                });
                let changes = self.control.release(txn);
                self.follow(changes, cx);
                Register { vote: Vote::No(refusal), proposal: None, at: Timestamp::ZERO }
            }
        };
        let mut batch = Batch::new();
        records::put_register(&mut batch, txn, &register);
        self.votes.insert(txn, register.vote.clone());
        // This site, too, counts its vote once that is on disk only: a later incarnation that knew nothing of it would refuse.
        let voted = Promise::Voted { txn, vote: register.vote };
        let me = cx.me;
        let persist = cx.fx.persist(batch).send(txn.gateway, voted.clone());
        if txn.gateway != me {
            persist.send(me, voted);
        }
    }

    /// Says a vote again; what is on disk before it is.
    fn send_vote(&self, to: SiteId, txn: TxnId, vote: Vote, cx: &mut Context<'_>) {
        cx.fx.persist(Batch::new()).send(to, Promise::Voted { txn, vote });
    }

    fn note_reads(&mut self, proposal: &Proposal) {
        proposal.keys.keys().for_each(|key| self.timestamp_cache.raise(key, proposal.at));
        proposal.ranges.iter().for_each(|(range, _)| self.timestamp_cache.raise_range(range, proposal.at));
    }

    /// `doubter` has voted yes, and asks for this region's vote, or has `from` ask for it. If there is none, it is no. Who is asked by the doubter
    /// itself asks the others, too: it may not hear them.
    pub(super) fn on_inquire(&mut self, from: SiteId, txn: TxnId, doubter: SiteId, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        if !self.votes.contains_key(&txn) {
            cx.fx.count("paxos_commit.refused_in_doubt");
            self.executing.remove(&txn);
            self.validating.remove(&txn);
            let changes = self.control.release(txn);
            self.follow(changes, cx);
            let vote = Vote::No(Refusal::UnknownTransaction);
            records::put_register(&mut batch, txn, &Register { vote: vote.clone(), proposal: None, at: Timestamp::ZERO });
            self.votes.insert(txn, vote);
        }
        let vote = self.votes[&txn].clone();
        let is_direct = from == doubter;
        cx.fx.persist(batch).send(from, if is_direct { Promise::Voted { txn, vote } } else { Promise::Pass { txn, vote, doubter } });
        for other in cx.others().filter(|other| is_direct && *other != doubter) {
            cx.fx.send(other, Note::Inquire { txn, doubter });
        }
    }

    /// Another region's vote on an attempt that this one is in doubt about.
    pub(super) fn count_vote(&mut self, from: RegionId, txn: TxnId, vote: &Vote, cx: &mut Context<'_>) {
        let Some(doubt) = self.doubts.get_mut(&txn) else { return };
        doubt.tally.record(from, vote.clone(), cx.rules);
        let Some(outcome) = doubt.tally.outcome(cx.regions) else { return };
        let committed = (outcome == Outcome::Committed).then(|| (doubt.proposal.at, doubt.proposal.writes.clone()));
        if txn.gateway != cx.me {
            cx.fx.count("paxos_commit.resolved_in_doubt");
            // A cut link may keep the votes from the coordinator, which hears all of them otherwise.
            cx.fx.send(txn.gateway, Note::Decided { txn, committed: committed.clone() });
        }
        self.apply(txn, committed, cx);
    }

    /// An attempt's outcome is known: what it wrote is written, also by those who did not vote for it, and its locks are released.
    pub(super) fn apply(&mut self, txn: TxnId, committed: Option<(Timestamp, Writes)>, cx: &mut Context<'_>) {
        cx.fx.agree("attempt", txn, &committed.as_ref().map(|(at, _)| *at));
        let mut batch = Batch::new();
        if let Some((at, writes)) = committed {
            cx.clock.observe(at);
            writes.into_iter().for_each(|(key, value)| batch.put_version(key, at, value));
        }
        if let Some(Doubt { proposal, .. }) = self.doubts.remove(&txn) {
            records::put_register(&mut batch, txn, &Register { vote: Vote::Firm, proposal: None, at: proposal.at });
        }
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
        self.executing.remove(&txn);
        // What is being validated still gets its vote: no register is left open.
        if !self.validating.contains_key(&txn) {
            let changes = self.control.release(txn);
            self.follow(changes, cx);
        }
    }

    /// Looks after what was left behind: asks about what is in doubt, forgets executions whose coordinator has.
    pub(super) fn look_after_attempts(&mut self, cx: &mut Context<'_>) {
        let (ticks, doubt) = (cx.ticks, cx.config.doubt.as_micros() / TICK.as_micros());
        let others: Vec<SiteId> = cx.others().collect();
        for (&txn, waiting) in self.doubts.iter_mut().filter(|(_, waiting)| waiting.since + doubt <= ticks) {
            waiting.since = ticks;
            others.iter().for_each(|other| cx.fx.send(*other, Note::Inquire { txn, doubter: cx.me }));
        }
        work::add(self.doubts.len() + self.executing.len());
        let late = 2 * cx.config.patience.as_micros() / TICK.as_micros();
        let left: Vec<TxnId> =
            self.executing.iter().filter(|(_, executing)| executing.since + late <= ticks).map(|(txn, _)| *txn).collect();
        for txn in left {
            cx.fx.count("paxos_commit.left_behind");
            self.on_release(txn, cx);
        }
    }

    /// A register that an earlier incarnation has written.
    pub(super) fn resume(&mut self, txn: TxnId, register: Register, cx: &mut Context<'_>) {
        cx.clock.observe(register.at);
        self.timestamp_cache.raise_low_water(register.at);
        self.votes.insert(txn, register.vote);
        if let Some(proposal) = register.proposal {
            let forgets = cx.rules.breaks(Planted::LocksNotRestored);
            if !forgets {
                self.control.restore(txn, &proposal.footprint());
            }
            let mut tally = Tally::default();
            tally.record_if_open(cx.me.region, Vote::Firm);
            self.doubts.insert(txn, Doubt { proposal, tally, since: 0 });
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
