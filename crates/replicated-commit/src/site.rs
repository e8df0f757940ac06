//! The actor: one site, its roles, and which of them handles what arrives.
//!
//! A site drops what arrives before it has recovered from its disk, as if it had been lost on the way. What its roles tell each other is
//! handled at the end of the same step.

use super::catch_up::{self, CatchUp};
use super::cohort::{Cohort, PreparedHere};
use super::config::{Config, TRANSACTIONS_MAX};
use super::context::{Context, Local, Shared};
use super::coordinator::{Coordinator, Examinations, Proposal};
use super::gateway::{Gateway, Handoff, ReadRetry};
use super::joining::{CopyAsked, CopyPage, Join};
use super::measure::Measures;
use super::message::{Admin, Answer, Attempt, LogEntry, Meta, Note, Part, Promise, Request, Status};
use super::moving::Moving;
use super::nearby::{NearCohort, NearCoordinator};
use super::peers::Closed;
use super::reads::ReadJob;
use super::recovery::Recovery;
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{Collect, RequestId, Token};
use rhumb_core::{Actor, Body, Effects, Input, Inspect, Key, Loaded, RegionId, SiteId, Table, Time, Timestamp, Topology};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The timers of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Look after what is overdue, ping, pull.
    Tick,
    /// Ask again for locks that were denied.
    RetryRead(ReadRetry),
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

/// One site: its roles, and what they share.
pub struct Site {
    pub(super) shared: Shared,
    pub(super) roles: Roles,
}

/// The roles of a site.
#[derive(Default)]
pub(super) struct Roles {
    pub(super) gateway: Gateway,
    pub(super) coordinator: Coordinator,
    pub(super) examinations: Examinations,
    pub(super) cohort: Cohort,
    pub(super) catch_up: CatchUp,
    pub(super) moving: Moving,
    pub(super) measures: Measures,
    pub(super) join: Option<Join>,
    recovery: Option<Recovery>,
}

impl Site {
    /// The site `me`, before its first step.
    pub fn new(me: SiteId, topology: Arc<Topology>, placement: Placement, config: Config) -> Site {
        assert!(topology.has(me), "a site belongs to its cluster");
        assert!(!placement.voters.is_empty(), "somebody decides");
        assert!(config.keep_versions > config.forget_after, "what can still be prepared finds the versions that refuse it");
        let roles = Roles { recovery: Some(Recovery::default()), ..Roles::default() };
        Site { shared: Shared::new(me, topology, placement, config), roles }
    }

    /// True once it has recovered from its disk.
    pub fn is_serving(&self) -> bool {
        self.roles.is_serving()
    }

    /// The state of the site, for operators and tests.
    pub fn status(&self) -> Status {
        Status { tables: self.list_tables(), ..self.roles.status(&self.shared) }
    }
}

impl Roles {
    pub(super) fn is_serving(&self) -> bool {
        self.recovery.is_none()
    }

    fn status(&self, shared: &Shared) -> Status {
        let same_shard = |region: RegionId| SiteId { region, shard: shared.me.shard };
        Status {
            serving: self.is_serving(),
            measured: self.measures.all(self.gateway.workload(), shared),
            placement: shared.placement.clone(),
            settled: self.moving.is_settled(shared) || !shared.has_copy(),
            open_transactions: self.gateway.open(),
            prepared: self.cohort.prepared(),
            in_doubt: self.coordinator.in_doubt(shared),
            safe: self.safe(shared),
            reachable: shared.reachable(&shared.all_shards()),
            rtts: shared.topology.regions().filter_map(|region| Some((region, shared.peers.rtt(same_shard(region))?))).collect(),
            tables: Vec::new(),
        }
    }

    /// What the coordinator sees of the other roles.
    pub(super) fn near_coordinator(&self) -> NearCoordinator<'_> {
        NearCoordinator { gateway: &self.gateway, cohort: &self.cohort, catch_up: &self.catch_up, moving: &self.moving }
    }

    /// What the cohort sees of the other roles.
    pub(super) fn near_cohort(&self) -> NearCohort<'_> {
        NearCohort { coordinator: &self.coordinator, catch_up: &self.catch_up, moving: &self.moving }
    }

    /// Has the cohort act.
    pub(super) fn replicate<T>(&mut self, act: impl FnOnce(&mut Cohort, &NearCohort<'_>) -> T) -> T {
        let Roles { coordinator, cohort, catch_up, moving, .. } = self;
        act(cohort, &NearCohort { coordinator, catch_up, moving })
    }

    /// Has the coordinator act.
    pub(super) fn coordinate<T>(&mut self, act: impl FnOnce(&mut Coordinator, &NearCoordinator<'_>) -> T) -> T {
        let Roles { coordinator, gateway, cohort, catch_up, moving, .. } = self;
        act(coordinator, &NearCoordinator { gateway, cohort, catch_up, moving })
    }

    /// The coordinator of the region asks the cohort to prepare.
    fn on_prepare(&mut self, meta: Meta, part: Part, cx: &mut Context<'_>) {
        let prepared = self.replicate(|cohort, near| cohort.on_prepare(near, meta, part, cx));
        self.on_prepared_here(prepared, cx);
    }

    /// The only cohort of an attempt is prepared, whose coordinator is at this site as well.
    fn on_prepared_here(&mut self, prepared: Option<PreparedHere>, cx: &mut Context<'_>) {
        if let Some(PreparedHere { attempt, batch }) = prepared {
            self.coordinate(|coordinator, near| coordinator.on_prepared_here(near, attempt, batch, cx));
        }
    }

    fn on_persisted(&mut self, token: Token, cx: &mut Context<'_>) {
        match cx.take_pending(token) {
            Pending::Ceiling(ceiling) => {
                cx.clock.on_durable(ceiling);
                self.gateway.on_bound(cx);
                self.serve_reads_below_ceiling(cx);
            }
            Pending::Collect(collect) => cx.fx.collect(collect),
            other => unreachable!("nothing else asks to be told: {other:?}"),
        }
    }

    fn on_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        match cx.take_pending(token) {
            Pending::Recover => self.recover(Some(loaded), cx),
            Pending::Validate(attempt) => {
                let prepared = self.cohort.on_validation(attempt, token, loaded, cx);
                self.on_prepared_here(prepared, cx);
            }
            Pending::RowsOfCarried(attempt) => self.replicate(|cohort, near| cohort.on_rows_of_carried(near, attempt, loaded, cx)),
            Pending::RowsOfForgotten(attempt) => {
                self.coordinate(|coordinator, near| coordinator.on_rows_of_forgotten(near, attempt, loaded, cx))
            }
            Pending::Examine(attempt) => self.on_examined(attempt, token, loaded, cx),
            Pending::Read(job) => self.on_read_loaded(job, loaded, cx),
            Pending::Log { to, after, closed } => self.on_log_loaded(to, after, closed, loaded, cx),
            Pending::FetchRecords { to, seqs } => self.on_fetch_records(to, &seqs, loaded, cx),
            Pending::FetchRows { to, records } => self.on_fetch_rows(to, records, loaded, cx),
            Pending::CopyRows { to, from, epoch, collected } => self.on_copy_loaded(to, CopyAsked { from, epoch, collected }, loaded, cx),
            Pending::CopiedRows(page) => self.on_own_rows_loaded(page, loaded, cx),
            Pending::Ceiling(_) | Pending::Collect(_) => unreachable!("these are written, not loaded"),
        }
    }

    pub(super) fn on_note(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        match note {
            note @ Note::Read { .. } => self.on_read(from, note, cx),
            Note::Rows { read, rows, upto, above, high, floor } => {
                self.gateway.on_rows(from, read, super::gateway::Reply { rows, upto, above, high, floor }, cx);
            }
            Note::Denied { read, denial } => self.gateway.on_denied(from, read, denial, cx),
            Note::Release { txn } => self.cohort.on_release(txn, cx),
            Note::Accept { meta, parts } => self.coordinate(|coordinator, near| coordinator.on_accept(near, meta, parts, cx)),
            Note::Heard { at } => cx.clock.observe(at),
            Note::Prepare { meta, part } => self.on_prepare(meta, part, cx),
            Note::CannotPrepare { attempt, refusal } => {
                self.coordinate(|coordinator, near| coordinator.on_cannot_prepare(near, attempt, refusal, cx))
            }
            Note::Unprepare { attempt } => self.cohort.on_unprepare(attempt, cx),
            Note::Apply { meta, part, floor } => self.on_apply(&meta, part, floor, cx),
            Note::Withdraw { meta } => self.coordinate(|coordinator, near| coordinator.on_withdraw(near, from, meta, cx)),
            Note::Decided { meta, .. } | Note::Inquire { meta, .. } | Note::Propose { meta, .. } | Note::Concluded { meta, .. }
                if cx.is_lost(from.region, &meta) =>
            {
                cx.fx.count("commit.outcome_of_lost")
            }
            Note::Decided { meta, decision } => {
                self.coordinate(|coordinator, near| coordinator.on_decided_as_coordinator(near, from, &meta, decision, cx));
                self.cohort.on_decided_as_cohort(&meta, decision, cx);
                self.gateway.on_claimed(&meta, decision, cx);
            }
            Note::AskHigh { attempt, epoch } => self.on_ask_high(from, attempt, epoch, cx),
            Note::High { attempt, high } => self.on_high(from, attempt, high, cx),
            Note::Copy { attempt, at, floor, writes, meta } => {
                self.on_copy(LogEntry { seq: 0, attempt, at, floor, writes, partial: false, meta }, cx);
            }
            Note::AskGateway { meta } => self.gateway.on_ask_gateway(from, meta, cx),
            Note::Over { attempt } => {
                self.coordinate(|coordinator, near| coordinator.on_over(near, attempt, cx));
                self.cohort.on_over_as_cohort(attempt, cx);
            }
            Note::AskVote { meta } => self.coordinate(|coordinator, near| coordinator.on_ask_vote(near, from, meta, cx)),
            Note::Bind { meta } => self.on_bind(from, meta, cx),
            Note::Inquire { meta, round, without } => {
                self.coordinate(|coordinator, near| coordinator.on_inquire(near, from, meta, round, without, cx))
            }
            Note::Concluded { meta, decision } => {
                self.coordinate(|coordinator, near| coordinator.on_concluded(near, &meta, decision, cx));
                self.gateway.on_decided(&meta, decision, cx);
            }
            Note::Propose { meta, round, decision, contents } => self.on_propose(from, Proposal { meta, round, decision }, contents, cx),
            Note::Outranked { attempt, promised } => self.coordinator.on_outranked(attempt, promised, cx),
            Note::Fetch { seqs } => self.on_fetch(from, seqs, cx),
            Note::Handoff { id, life, parts, two_rounds } => self.gateway.on_handoff(from, Handoff { id, life, parts, two_rounds }, cx),
            Note::HandedBack { id, result } => self.gateway.on_handed_back(id, result, cx),
            Note::Settle { lost } => self.settle_placements(lost, cx),
            Note::Measured(measured) => self.measures.on_measured(from, measured),
            Note::AskPlacement => cx.tell_placement(from),
            Note::AskStopped { placement, after } => self.on_ask_stopped(from, placement, after, cx),
            Note::CopyRows { from: first, epoch } => self.on_copy_rows(from, first, epoch, cx),
            Note::Ping { sent, oldest, handing, life, ping, epoch, closed } => {
                cx.compare_epoch(from, epoch);
                cx.peers.running_since(from, oldest, handing, life);
                if epoch == cx.placement.epoch {
                    cx.peers.closes(from, Closed { life, ping, upto: closed });
                }
                cx.send(from, Note::Pong { sent });
            }
            Note::Pong { sent } => {
                let now = cx.now;
                cx.peers.measured(from, sent, now);
            }
        }
    }

    fn on_promise(&mut self, from: SiteId, promise: Promise, cx: &mut Context<'_>) {
        match promise {
            Promise::Apply { meta, part, floor } => self.on_apply(&meta, part, floor, cx),
            Promise::Bound { attempt, votes } => self.coordinator.on_bound(&attempt, from, votes),
            Promise::Prepared { attempt, shard } => self.coordinate(|coordinator, near| coordinator.on_prepared(near, attempt, shard, cx)),
            Promise::PrepareNext { meta, part } => self.on_prepare(meta, part, cx),
            Promise::Vote(voted) if cx.is_lost(voted.region, &voted.meta) => cx.fx.count("commit.vote_of_lost"),
            Promise::Vote(voted) => {
                // One message serves all roles that this site may have in the attempt.
                self.coordinate(|coordinator, near| coordinator.on_vote_as_coordinator(near, &voted, cx));
                self.replicate(|cohort, near| cohort.on_vote_as_cohort(near, &voted, cx));
                self.gateway.on_vote(&voted, cx);
            }
            Promise::Aborted { meta } => {
                self.on_aborted_as_cohort(from, &meta, cx);
                self.gateway.on_abort_on_record(from, &meta, cx);
            }
            Promise::Testified { attempt, region, round, testimony, contents } => {
                self.coordinator.hear_contents(&attempt, contents);
                self.coordinate(|coordinator, near| coordinator.on_testified(near, attempt, region, round, testimony, cx));
            }
            Promise::Contested { attempt, region, round } => self.coordinator.on_contested(attempt, region, round, cx),
            Promise::Accepted { attempt, region, round } => {
                self.coordinate(|coordinator, near| coordinator.on_accepted(near, attempt, region, round, cx))
            }
            Promise::Forgotten { attempt, region, log_end } => {
                self.cohort.on_forgotten(attempt, region, cx);
                self.coordinate(|coordinator, near| coordinator.on_forgotten(near, attempt, region, log_end, cx));
            }
            Promise::Applied { attempt, shard } => self.coordinator.on_applied(attempt, shard, cx),
            Promise::Confirmed { attempt, region } => self.gateway.on_confirmed(attempt, region, cx),
            Promise::Pull { after, safe, epoch, settled } => {
                self.on_pull(from, super::catch_up::Pulled { after, safe, epoch, settled }, cx)
            }
            Promise::Log { after, heads, end, more, closed, begins, collected, epoch } => {
                self.on_log(from, super::catch_up::Page { after, heads, end, more, closed, begins, collected, epoch }, cx)
            }
            Promise::Placed { placement } => self.on_placed(placement, cx),
            Promise::Stopped(stopped) => self.on_stopped(from, stopped, cx),
            Promise::CopiedRows { from: first, rows, next, collected, highest, epoch } => {
                self.on_copied_rows(from, CopyPage { from: first, rows, next, collected, highest, epoch }, cx)
            }
            Promise::Entries { entries } => self.on_entries(from, entries, cx),
        }
    }

    fn on_request(&mut self, id: RequestId, request: Request, cx: &mut Context<'_>) {
        if !self.is_serving() {
            let error = TxnError::Unavailable("this site is still recovering from its disk; try again shortly".into());
            return cx.fx.answer(id, Answer::Failed(error));
        }
        match request {
            Request::Begin { mode } => self.gateway.on_begin(id, mode, cx),
            Request::Get { txn, mode, keys, expect } => self.gateway.on_get(id, txn, mode, keys, expect, cx),
            Request::Scan { txn, mode, range, limit, reverse, expect } => {
                self.gateway.on_scan(id, txn, mode, super::gateway::ScanAsked { range, limit, reverse }, expect, cx);
            }
            Request::Commit { txn, writes, expect, options } => self.gateway.on_commit(id, txn, writes, expect, options, cx),
            Request::Rollback { txn } => self.gateway.on_rollback(id, txn, cx),
            Request::Admin(Admin::Settle { lost }) => self.on_settle(id, lost, cx),
            Request::Admin(Admin::Status) => unreachable!("answered by the site"),
        }
    }

    fn on_tick(&mut self, cx: &mut Context<'_>) {
        let Shared { me, now, life, .. } = *cx.shared;
        cx.fx.set_timer(Timer::Tick, cx.shared.config.tick);
        cx.peers.tick();
        cx.peers.heard(me, now);
        let bound = cx.clock.renew_ahead(now);
        cx.write_bound(bound);
        let oldest = self.gateway.oldest().unwrap_or(cx.clock.last());
        let handing = self.gateway.handing().unwrap_or(cx.clock.last());
        // A read that waited here may have taken locks after its transaction was over.
        cx.peers.running_since(me, oldest, handing, life);
        let (ping, epoch, closed) = (cx.peers.ticks(), cx.placement.epoch, self.close(cx));
        cx.broadcast(&Note::Ping { sent: now, oldest, handing, life, ping, epoch, closed });
        self.gateway.tick(cx);
        self.coordinate(|coordinator, near| coordinator.coordinator_tick(near, cx));
        self.replicate(|cohort, near| cohort.cohort_tick(near, cx));
        self.measures.tick(self.gateway.workload(), cx);
        self.moving_tick(cx);
        self.catch_up_tick(cx);
    }

    /// The timestamp up to which nothing is in doubt at this site, nor carried, nor will be in this epoch.
    fn close(&mut self, cx: &Shared) -> Timestamp {
        let own_closed = self.own_closed(cx);
        self.coordinate(|coordinator, near| coordinator.close(near, own_closed, cx))
    }

    /// Begins to serve, once recovered.
    pub(super) fn serve(&mut self, cx: &mut Context<'_>) {
        self.recovery = None;
        let ceiling = cx.clock.bound();
        // A life that begins anything puts a higher ceiling on disk first, so the next life has another name.
        cx.life = ceiling;
        self.cohort.ceilings.raise_floor(ceiling.max(self.catch_up.collected));
        self.coordinator.begin_above(ceiling);
        cx.fx.trace(|| format!("serves above {ceiling}"));
        self.replicate(|cohort, near| cohort.drop_orphans(near, cx));
        self.coordinate(|coordinator, near| coordinator.settle_copied(near, near.moving.since()));
        self.on_tick(cx);
    }

    /// What recovery has found so far; only while recovering.
    pub(super) fn recovery(&mut self) -> &mut Recovery {
        self.recovery.as_mut().expect("recovery is asked for only while recovering")
    }
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let Site { shared, roles } = self;
        let (sites, regions) = (shared.topology.sites().count(), shared.topology.region_count());
        let everywhere = sites * TRANSACTIONS_MAX;
        roles.gateway.tables(sites, visit);
        roles.coordinator.tables(shared.now, &shared.config, visit);
        roles.examinations.tables(roles.coordinator.len(), visit);
        roles.cohort.tables(everywhere, &shared.config, visit);
        roles.moving.tables(sites, regions, visit);
        let log_end = shared.placement.voters.contains(shared.me.region).then_some(roles.cohort.log_end);
        roles.catch_up.tables(regions, log_end, &shared.config, visit);
        visit(Table::new("measures", roles.measures.len(), sites).stays());
        shared.tables(everywhere, visit);
    }
}

impl Actor for Site {
    type Note = Note;
    type Promise = Promise;
    type Timer = Timer;
    type Request = Request;
    type Answer = Answer;

    fn step(&mut self, now: Time, input: Input<Site>, fx: &mut Effects<Site>) {
        self.shared.now = now;
        if let Input::Client { id, request: Request::Admin(Admin::Status) } = input {
            return fx.answer(id, Answer::Admin(self.status()));
        }
        let Site { shared, roles } = self;
        let cx = &mut Context { shared, fx };
        match input {
            Input::Start => roles.recover(None, cx),
            Input::Loaded { token, loaded } => roles.on_loaded(token, loaded, cx),
            Input::Persisted { token } => roles.on_persisted(token, cx),
            Input::Client { id, request } => roles.on_request(id, request, cx),
            Input::Message { .. } if !roles.is_serving() => {}
            Input::Message { from, body } => {
                cx.peers.heard(from, now);
                match body {
                    Body::Note(note) => roles.on_note(from, note, cx),
                    Body::Promise(promise) => roles.on_promise(from, promise, cx),
                }
            }
            Input::Timer(Timer::Tick) => roles.on_tick(cx),
            Input::Timer(Timer::RetryRead(retry)) => roles.gateway.on_retry_read(retry, cx),
        }
        loop {
            let me = cx.me;
            if let Some(local) = cx.next_local() {
                match local {
                    Local::Note(note) => roles.on_note(me, note, cx),
                    Local::BindGateway(attempt) => roles.gateway.bind(attempt),
                    Local::AwaitSettling(from, note) => roles.moving.wait_until_settled(from, note, cx),
                    Local::Hurry => roles.catch_up.hurry(),
                    Local::CohortDecides(meta, decision) => {
                        roles.coordinate(|coordinator, near| coordinator.on_decided_as_coordinator(near, me, &meta, decision, cx));
                    }
                    Local::CarriedHere(meta) => roles.coordinate(|coordinator, near| coordinator.lead_for_carrier(near, &meta, cx)),
                    Local::GatewayAborts(meta) => roles.coordinator.on_gateway_aborts(&meta, cx),
                }
            } else if let Some(job) = roles.cohort.ready.pop_front() {
                roles.serve_read(job, cx);
            } else if !roles.go_on_moving(cx) {
                break;
            }
        }
    }
}
