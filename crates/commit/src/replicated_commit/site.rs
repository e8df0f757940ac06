//! The actor: one site with its three roles, gateway, coordinator and cohort, and what they share.
//!
//! A site drops what arrives before it has recovered from its disk, as if it had been lost on the way. Messages to
//! itself are handled at the end of the same step.
//!
//! Invariant kept here: the *ceiling*. No transaction begins at a timestamp, and no read is answered at one, that lies
//! above the ceiling on disk; a new life starts its clock, and refuses writes, at the ceiling of the lives before.

use super::catch_up::{self, CatchUp};
use super::cohort::Cohort;
use super::config::{Config, TRANSACTIONS_MAX};
use super::coordinator::Coordinator;
use super::gateway::{Gateway, Handoff, ReadRetry, too_many_transactions};
use super::joining::{CopyAsked, CopyPage, Join};
use super::measure::Measures;
use super::message::{Answer, Attempt, LogEntry, Note, Promise, Request, Status};
use super::moving::Moving;
use super::peers::{Closed, Peers};
use super::planted::Planted;
use super::reads::ReadJob;
use super::records::Number;
use super::recovery::Recovery;
use super::resolving::{Examinations, Proposal};
use crate::clock_lease::ClockLease;
use crate::placement::Placement;
use crate::transaction::{ReadMode, TxnError};
use rhumb_core::actor::{Collect, RequestId, Token};
use rhumb_core::{
    Actor, Batch, Body, Effects, Input, Inspect, Key, Loaded, RegionId, Rules, SiteId, Span, Table, Time, Timestamp, Topology,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The timers of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Look after what is overdue, ping, pull.
    Tick,
    /// Ask again for locks that were denied.
    RetryRead(ReadRetry),
}

/// What waits to begin until the ceiling on disk is high enough.
#[derive(Debug)]
pub(super) enum Begin {
    /// A transaction of a client.
    Client(RequestId, ReadMode),
    /// The commit of another gateway's.
    Handoff(SiteId, Handoff),
}

/// What a load or a persist is for.
#[derive(Debug)]
pub(super) enum Pending {
    /// A page of records of an earlier life.
    Recover,
    /// The newest rows for a prepare.
    Validate(Attempt),
    /// The rows of an attempt that is carried here.
    RowsOfCarried(Attempt),
    /// The rows of an attempt that others have forgotten.
    RowsOfForgotten(Attempt),
    /// What was read by an attempt that is to be committed by assumption.
    Examine(Attempt),
    /// Rows for a read.
    Read(ReadJob),
    /// Heads of the log for a peer.
    Log { to: SiteId, after: u64, closed: catch_up::Closed },
    /// Log records whose rows a peer fetches.
    FetchRecords { to: SiteId, seqs: BTreeSet<u64> },
    /// Rows of log records for a peer.
    FetchRows { to: SiteId, records: Vec<(u64, super::records::LogRecord)> },
    /// Rows for a peer that copies all.
    CopyRows { to: SiteId, from: Key, epoch: u64, collected: Timestamp },
    /// The rows that are here already where these were copied.
    CopiedRows(CopyPage),
    /// The ceiling is on disk.
    Ceiling(Timestamp),
    /// How far versions are about to be collected is on disk.
    Collect(Collect),
}

/// One site.
pub struct Site {
    pub(super) me: SiteId,
    pub(super) topology: Arc<Topology>,
    pub(super) placement: Placement,
    pub(super) moving: Moving,
    pub(super) measures: Measures,
    pub(super) join: Option<Join>,
    pub(super) config: Config,
    /// This site's clock at the current step.
    pub(super) now: Time,
    pub(super) clock: ClockLease,
    pub(super) peers: Peers,
    pub(super) gateway: Gateway,
    pub(super) coordinator: Coordinator,
    pub(super) examinations: Examinations,
    pub(super) cohort: Cohort,
    pub(super) catch_up: CatchUp,
    /// Attempts made at or below it, and not on record, are forgotten.
    pub(super) forgotten: Timestamp,
    recovery: Option<Recovery>,
    pending: BTreeMap<Token, Pending>,
    next_token: Token,
    /// Messages to itself, handled before the step ends.
    inbox: VecDeque<Note>,
    /// What is to begin above the ceiling.
    pub(super) waiting_to_begin: Vec<Begin>,
    /// This life began above it; no other did.
    pub(super) life: Timestamp,
    pub(super) rules: Rules<Planted>,
}

impl Site {
    /// The site `me`, before its first step.
    pub fn new(me: SiteId, topology: Arc<Topology>, placement: Placement, config: Config) -> Site {
        assert!(topology.has(me), "a site belongs to its cluster");
        assert!(!placement.voters.is_empty(), "somebody decides");
        assert!(config.keep_versions > config.forget_after, "what can still be prepared finds the versions that refuse it");
        Site {
            me,
            placement,
            moving: Moving::default(),
            measures: Measures::default(),
            join: None,
            now: Time::ZERO,
            clock: ClockLease::new(config.ceiling_lead),
            config,
            peers: Peers::default(),
            gateway: Gateway::default(),
            coordinator: Coordinator::default(),
            examinations: Examinations::default(),
            cohort: Cohort::default(),
            catch_up: CatchUp::default(),
            forgotten: Timestamp::ZERO,
            recovery: Some(Recovery::default()),
            pending: BTreeMap::new(),
            next_token: 0,
            inbox: VecDeque::new(),
            waiting_to_begin: Vec::new(),
            life: Timestamp::ZERO,
            topology,
            rules: Rules::HOLD,
        }
    }

    /// True once it has recovered from its disk.
    pub fn is_serving(&self) -> bool {
        self.recovery.is_none()
    }

    /// The state of the site, for operators and tests.
    pub fn status(&self) -> Status {
        let same_shard = |region: RegionId| SiteId { region, shard: self.me.shard };
        Status {
            serving: self.is_serving(),
            measured: self.all_measures(),
            placement: self.placement.clone(),
            settled: self.is_settled() || !self.has_copy(),
            open_transactions: self.gateway.open(),
            prepared: self.cohort.prepared(),
            in_doubt: self.in_doubt(),
            safe: self.safe(),
            reachable: self.reachable(&self.all_shards()),
            rtts: self.topology.regions().filter_map(|region| Some((region, self.peers.rtt(same_shard(region))?))).collect(),
            tables: self.list_tables(),
        }
    }

    pub(super) fn all_shards(&self) -> Vec<u16> {
        (0..self.topology.shard_count()).collect()
    }

    /// True if a site in doubt should ask the regions rather than this gateway, for an attempt that it has held for `age`.
    pub(super) fn is_past_asking(&self, gateway: SiteId, over: bool, age: Span) -> bool {
        let silent = gateway != self.me && self.peers.is_silent(gateway, self.config.gateway_silent_ticks);
        // A gateway that is heard but does not hear us would be asked for ever.
        over || silent || age >= self.config.outcome_deadline + self.config.withdraw_after
    }

    /// The regions in which the sites of all `shards` answered lately.
    pub(super) fn reachable(&self, shards: &[u16]) -> Vec<RegionId> {
        self.peers.reachable(&self.topology, shards, self.now, self.config.suspect_after)
    }

    /// Names a load or a persist.
    pub(super) fn token(&mut self, pending: Pending) -> Token {
        self.next_token += 1;
        self.pending.insert(self.next_token, pending);
        self.next_token
    }

    /// Sends a note; one to itself is handled before this step ends.
    pub(super) fn send(&mut self, to: SiteId, note: Note, fx: &mut Effects<Site>) {
        if to == self.me {
            self.inbox.push_back(note);
        } else {
            fx.send(to, note);
        }
    }

    /// True if a commit, or a read of a majority, leaves this region.
    pub(super) fn is_wide(&self) -> bool {
        self.placement.voters != self.me.region.into()
    }

    /// The active regions in which the sites of all `shards` answered lately.
    pub(super) fn reachable_voters(&self, shards: &[u16]) -> Vec<RegionId> {
        self.reachable(shards).into_iter().filter(|region| self.placement.voters.contains(*region)).collect()
    }

    /// The site that coordinates for shard `shard` in `region`.
    pub(super) fn site(&self, region: RegionId, shard: u16) -> SiteId {
        SiteId { region, shard }
    }

    /// Writes `batch` with a ceiling of at least `at` in it, unless an earlier write has one.
    pub(super) fn cover(&mut self, batch: &mut Batch, at: Timestamp) {
        if let Some(bound) = self.clock.cover(at) {
            Number::Ceiling.put(batch, bound.bits());
        }
    }

    /// True if as many transactions are open here, or wait to begin, as may be.
    pub(super) fn begins_no_more(&self) -> bool {
        self.gateway.open() + self.waiting_to_begin.len() >= TRANSACTIONS_MAX
    }

    /// Writes a ceiling, if one is to be written.
    pub(super) fn write_ceiling(&mut self, bound: Option<Timestamp>, fx: &mut Effects<Site>) {
        let Some(bound) = bound else { return };
        let mut batch = Batch::new();
        Number::Ceiling.put(&mut batch, bound.bits());
        let token = self.token(Pending::Ceiling(bound));
        fx.persist(batch).notify(token);
    }

    /// True if a transaction may begin now; else the ceiling on disk is being raised for it.
    pub(super) fn may_begin(&mut self, fx: &mut Effects<Site>) -> bool {
        let bound = self.clock.renew(self.now);
        self.write_ceiling(bound, fx);
        self.clock.may_issue()
    }

    /// The timestamp at which a transaction begins that [`may_begin`](Site::may_begin).
    pub(super) fn begin_now(&mut self) -> Timestamp {
        self.clock.issue(self.now).expect("a transaction begins only below the ceiling on disk")
    }

    fn on_persisted(&mut self, token: Token, fx: &mut Effects<Site>) {
        match self.pending.remove(&token) {
            Some(Pending::Ceiling(ceiling)) => {
                self.clock.on_durable(ceiling);
                for begin in std::mem::take(&mut self.waiting_to_begin) {
                    match begin {
                        Begin::Client(id, mode) => self.on_request(id, Request::Begin { mode }, fx),
                        Begin::Handoff(from, handoff) => self.on_handoff(from, handoff, fx),
                    }
                }
                self.serve_reads_below_ceiling(fx);
            }
            Some(Pending::Collect(collect)) => fx.collect(collect),
            other => unreachable!("nothing else asks to be told: {other:?}"),
        }
    }

    fn on_loaded(&mut self, token: Token, loaded: Loaded, fx: &mut Effects<Site>) {
        match self.pending.remove(&token).expect("every load was asked for by this life") {
            Pending::Recover => self.recover(Some(loaded), fx),
            Pending::Validate(attempt) => self.on_validation(attempt, token, loaded, fx),
            Pending::RowsOfCarried(attempt) => self.on_rows_of_carried(attempt, loaded, fx),
            Pending::RowsOfForgotten(attempt) => self.on_rows_of_forgotten(attempt, loaded, fx),
            Pending::Examine(attempt) => self.on_examined(attempt, token, loaded, fx),
            Pending::Read(job) => self.on_read_loaded(job, loaded, fx),
            Pending::Log { to, after, closed } => self.on_log_loaded(to, after, closed, loaded, fx),
            Pending::FetchRecords { to, seqs } => self.on_fetch_records(to, &seqs, loaded, fx),
            Pending::FetchRows { to, records } => self.on_fetch_rows(to, records, loaded, fx),
            Pending::CopyRows { to, from, epoch, collected } => self.on_copy_loaded(to, CopyAsked { from, epoch, collected }, loaded, fx),
            Pending::CopiedRows(page) => self.on_own_rows_loaded(page, loaded, fx),
            Pending::Ceiling(_) | Pending::Collect(_) => unreachable!("these are written, not loaded"),
        }
    }

    pub(super) fn on_note(&mut self, from: SiteId, note: Note, fx: &mut Effects<Site>) {
        match note {
            note @ Note::Read { .. } => self.on_read(from, note, fx),
            Note::Rows { read, rows, upto, above, high, floor } => {
                self.on_rows(from, read, super::gateway::Reply { rows, upto, above, high, floor }, fx);
            }
            Note::Denied { read, denial } => self.on_denied(from, read, denial, fx),
            Note::Release { txn } => self.on_release(txn, fx),
            Note::Accept { meta, parts } => self.on_accept(meta, parts, fx),
            Note::Heard { at } => self.clock.observe(at),
            Note::Prepare { meta, part } => self.on_prepare(meta, part, fx),
            Note::CannotPrepare { attempt, refusal } => self.on_cannot_prepare(attempt, refusal, fx),
            Note::Unprepare { attempt } => self.on_unprepare(attempt, fx),
            Note::Apply { meta, part, floor } => self.on_apply(&meta, part, floor, fx),
            Note::Withdraw { meta } => self.on_withdraw(from, meta, fx),
            Note::Decided { meta, .. } | Note::Inquire { meta, .. } | Note::Propose { meta, .. } | Note::Concluded { meta, .. }
                if self.is_lost(from.region, &meta) =>
            {
                fx.count("commit.outcome_of_lost")
            }
            Note::Decided { meta, decision } => {
                self.on_decided_as_coordinator(from, &meta, decision, fx);
                self.on_decided_as_cohort(&meta, decision, fx);
                self.on_claimed_as_gateway(&meta, decision, fx);
            }
            Note::AskHigh { attempt, epoch } => self.on_ask_high(from, attempt, epoch, fx),
            Note::High { attempt, high } => self.on_high(from, attempt, high, fx),
            Note::Copy { attempt, at, floor, writes, meta } => {
                self.on_copy(LogEntry { seq: 0, attempt, at, floor, writes, partial: false, meta }, fx);
            }
            Note::AskGateway { meta } => self.on_ask_gateway(from, meta, fx),
            Note::Over { attempt } => self.on_over(attempt, fx),
            Note::AskVote { meta } => self.on_ask_vote(from, meta, fx),
            Note::Bind { meta } => self.on_bind(from, meta, fx),
            Note::Inquire { meta, round, without } => self.on_inquire(from, meta, round, without, fx),
            Note::Concluded { meta, decision } => self.on_concluded(&meta, decision, fx),
            Note::Propose { meta, round, decision, contents } => self.on_propose(from, Proposal { meta, round, decision }, contents, fx),
            Note::Outranked { attempt, promised } => self.on_outranked(attempt, promised, fx),
            Note::Fetch { seqs } => self.on_fetch(from, seqs, fx),
            Note::Handoff { id, life, parts, two_rounds } => self.on_handoff(from, Handoff { id, life, parts, two_rounds }, fx),
            Note::HandedBack { id, result } => self.on_handed_back(id, result, fx),
            Note::Settle { lost } => self.settle_placements(lost, fx),
            Note::Measured(measured) => self.on_measured(from, measured),
            Note::AskPlacement => self.tell_placement(from, fx),
            Note::AskStopped { placement, after } => self.on_ask_stopped(from, placement, after, fx),
            Note::CopyRows { from: first, epoch } => self.on_copy_rows(from, first, epoch, fx),
            Note::Ping { sent, oldest, handing, life, ping, epoch, closed } => {
                self.compare_epoch(from, epoch, fx);
                self.peers.running_since(from, oldest, handing, life);
                if epoch == self.placement.epoch {
                    self.peers.closes(from, Closed { life, ping, upto: closed });
                }
                self.send(from, Note::Pong { sent }, fx);
            }
            Note::Pong { sent } => self.peers.measured(from, sent, self.now),
        }
    }

    fn on_promise(&mut self, from: SiteId, promise: Promise, fx: &mut Effects<Site>) {
        match promise {
            Promise::Apply { meta, part, floor } => self.on_apply(&meta, part, floor, fx),
            Promise::Bound { attempt, votes } => self.coordinator.on_bound(&attempt, from, votes),
            Promise::Prepared { attempt, shard } => self.on_prepared(attempt, shard, fx),
            Promise::PrepareNext { meta, part } => self.on_prepare(meta, part, fx),
            Promise::Vote(voted) if self.is_lost(voted.region, &voted.meta) => fx.count("commit.vote_of_lost"),
            Promise::Vote(voted) => {
                // One message serves all roles that this site may have in the attempt.
                self.on_vote_as_coordinator(&voted, fx);
                self.on_vote_as_cohort(&voted, fx);
                self.on_vote_as_gateway(&voted, fx);
            }
            Promise::Aborted { meta } => {
                self.on_aborted_as_cohort(from, &meta, fx);
                self.on_aborted_as_gateway(from, &meta, fx);
            }
            Promise::Testified { attempt, region, round, testimony, contents } => {
                self.coordinator.hear_contents(&attempt, contents);
                self.on_testified(attempt, region, round, testimony, fx);
            }
            Promise::Contested { attempt, region, round } => self.on_contested(attempt, region, round, fx),
            Promise::Accepted { attempt, region, round } => self.on_accepted(attempt, region, round, fx),
            Promise::Forgotten { attempt, region, log_end } => self.on_forgotten(attempt, region, log_end, fx),
            Promise::Applied { attempt, shard } => self.on_applied(attempt, shard, fx),
            Promise::Confirmed { attempt, region } => self.on_confirmed(attempt, region, fx),
            Promise::Pull { after, safe, epoch, settled } => {
                self.on_pull(from, super::catch_up::Pulled { after, safe, epoch, settled }, fx)
            }
            Promise::Log { after, heads, end, more, closed, begins, collected, epoch } => {
                self.on_log(from, super::catch_up::Page { after, heads, end, more, closed, begins, collected, epoch }, fx)
            }
            Promise::Placed { placement } => self.on_placed(placement, fx),
            Promise::Stopped(stopped) => self.on_stopped(from, stopped, fx),
            Promise::CopiedRows { from: first, rows, next, collected, highest, epoch } => {
                self.on_copied_rows(from, CopyPage { from: first, rows, next, collected, highest, epoch }, fx)
            }
            Promise::Entries { entries } => self.on_entries(from, entries, fx),
        }
    }

    fn on_request(&mut self, id: RequestId, request: Request, fx: &mut Effects<Site>) {
        if let Request::Status = request {
            return fx.answer(id, Answer::Status(self.status()));
        }
        if !self.is_serving() {
            let error = TxnError::Unavailable("this site is still recovering from its disk; try again shortly".into());
            return fx.answer(id, Answer::Failed(error));
        }
        match request {
            Request::Begin { mode } => {
                if self.begins_no_more() {
                    fx.answer(id, too_many_transactions());
                } else if self.may_begin(fx) {
                    self.on_begin(id, mode, fx);
                } else {
                    self.waiting_to_begin.push(Begin::Client(id, mode));
                }
            }
            Request::Get { txn, mode, keys, expect } => self.on_get(id, txn, mode, keys, expect, fx),
            Request::Scan { txn, mode, range, limit, reverse, expect } => {
                self.on_scan(id, txn, mode, super::gateway::ScanAsked { range, limit, reverse }, expect, fx);
            }
            Request::Commit { txn, writes, expect, options } => self.on_commit(id, txn, writes, expect, options, fx),
            Request::Rollback { txn } => self.on_rollback(id, txn, fx),
            Request::Settle { lost } => self.on_settle(id, lost, fx),
            Request::Status => unreachable!("answered above"),
        }
    }

    fn on_tick(&mut self, fx: &mut Effects<Site>) {
        fx.set_timer(Timer::Tick, self.config.tick);
        self.peers.tick();
        self.peers.heard(self.me, self.now);
        let bound = self.clock.renew_ahead(self.now);
        self.write_ceiling(bound, fx);
        let oldest = self.gateway.oldest().unwrap_or(self.clock.last());
        let handing = self.gateway.handing().unwrap_or(self.clock.last());
        // A read that waited here may have taken locks after its transaction was over.
        self.peers.running_since(self.me, oldest, handing, self.life);
        let (sent, life, ping, epoch, closed) = (self.now, self.life, self.peers.ticks(), self.placement.epoch, self.close());
        for site in self.topology.sites().filter(|site| *site != self.me) {
            fx.send(site, Note::Ping { sent, oldest, handing, life, ping, epoch, closed });
        }
        self.gateway_tick(fx);
        self.coordinator_tick(fx);
        self.cohort_tick(fx);
        self.measures_tick(fx);
        self.moving_tick(fx);
        self.catch_up_tick(fx);
    }

    /// Begins to serve, once recovered.
    pub(super) fn serve(&mut self, fx: &mut Effects<Site>) {
        self.recovery = None;
        let ceiling = self.clock.bound();
        // A life that begins anything puts a higher ceiling on disk first, so the next life has another name.
        self.life = ceiling;
        self.cohort.ceilings.raise_floor(ceiling.max(self.catch_up.collected));
        self.coordinator.closed = ceiling;
        fx.trace(|| format!("serves above {ceiling}"));
        self.drop_orphans(fx);
        self.settle_copied_ballots(self.since());
        self.on_tick(fx);
    }

    /// What recovery has found so far; only while recovering.
    pub(super) fn recovery(&mut self) -> &mut Recovery {
        self.recovery.as_mut().expect("recovery is asked for only while recovering")
    }
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let (sites, regions) = (self.topology.sites().count(), self.topology.region_count());
        let everywhere = sites * TRANSACTIONS_MAX;
        self.gateway.tables(sites, visit);
        self.coordinator.tables(self.now, &self.config, visit);
        self.examinations.tables(self.coordinator.ballots.len(), visit);
        self.cohort.tables(everywhere, &self.config, visit);
        self.moving.tables(sites, regions, visit);
        let log_end = self.placement.voters.contains(self.me.region).then_some(self.cohort.log_end);
        self.catch_up.tables(regions, log_end, &self.config, visit);
        visit(Table::new("peers", self.peers.len(), sites).stays());
        visit(Table::new("measures", self.measures.len(), sites).stays());
        // A read each, and a page of the log or of rows for each replica that takes over.
        visit(Table::new("loads", self.pending.len(), everywhere + sites).resting_at(2 * sites));
        visit(Table::new("waiting_to_begin", self.waiting_to_begin.len(), TRANSACTIONS_MAX));
        visit(Table::new("inbox", self.inbox.len(), 0));
    }
}

impl Actor for Site {
    type Note = Note;
    type Promise = Promise;
    type Timer = Timer;
    type Request = Request;
    type Answer = Answer;

    fn step(&mut self, now: Time, input: Input<Site>, fx: &mut Effects<Site>) {
        self.now = now;
        match input {
            Input::Start => self.recover(None, fx),
            Input::Loaded { token, loaded } => self.on_loaded(token, loaded, fx),
            Input::Persisted { token } => self.on_persisted(token, fx),
            Input::Client { id, request } => self.on_request(id, request, fx),
            Input::Message { .. } if !self.is_serving() => {}
            Input::Message { from, body } => {
                self.peers.heard(from, now);
                match body {
                    Body::Note(note) => self.on_note(from, note, fx),
                    Body::Promise(promise) => self.on_promise(from, promise, fx),
                }
            }
            Input::Timer(Timer::Tick) => self.on_tick(fx),
            Input::Timer(Timer::RetryRead(retry)) => self.on_retry_read(retry, fx),
        }
        loop {
            if let Some(note) = self.inbox.pop_front() {
                self.on_note(self.me, note, fx);
            } else if let Some(job) = self.cohort.ready.pop_front() {
                self.serve_read(job, fx);
            } else if !self.go_on_moving(fx) {
                break;
            }
        }
    }
}
