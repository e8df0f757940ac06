//! The roles of a site, and which of them handles what arrives.
//!
//! Most of what arrives concerns one role. What concerns several, as they share a disk, is here: a commit that is applied, or taken over from a log,
//! changes rows, votes and perhaps the placement in one batch; who settles in a placement takes on what others are in doubt about.
//!
//! Invariant: a role changes its own state only.

mod catching_up;
mod commits;
mod moves;
mod recovery;

use crate::catch_up::CatchUp;
use crate::cohort::Cohort;
use crate::context::{Context, Local, Shared};
use crate::coordinator::{Coordinator, Proposal};
use crate::gateway::{Gateway, Reader, ScanRequest};
use crate::job::{Job, ReadRetry, Timer};
use crate::measure::Measures;
use crate::message::{Admin, Answer, Inquiry, LogEntry, Note, Ping, Promise, Request, Status};
use crate::mover::{CopyRequest, Mover};
use crate::peers::Closed;
use crate::recovery::Recovery;
use crate::views::{CatchUpView, CohortView, MoverView, NearCatchUp, NearCohort, NearCoordinator, NearMover};
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{RequestId, Token};
use rhumb_core::{Loaded, RegionId, SiteId, Table};

/// The roles of a site.
#[derive(Clone, Debug, Default)]
pub(super) struct Roles {
    pub(super) gateway: Gateway,
    pub(super) coordinator: Coordinator,
    pub(super) cohort: Cohort,
    pub(super) catch_up: CatchUp,
    pub(super) mover: Mover,
    measures: Measures,
    /// How far this incarnation has come in reading its disk; none once it serves.
    recovery: Option<Recovery>,
}

impl Roles {
    /// Those of a site that has not read its disk yet.
    pub(super) fn new() -> Roles {
        Roles { recovery: Some(Recovery::new()), ..Roles::default() }
    }

    pub(super) fn is_serving(&self) -> bool {
        self.recovery.is_none()
    }

    /// The state of the site, but for its tables.
    pub(super) fn status(&self, shared: &Shared) -> Status {
        let same_shard = |region: RegionId| SiteId { region, shard: shared.me.shard };
        Status {
            serving: self.is_serving(),
            measured: self.measures.all(self.gateway.workload(), shared),
            placement: shared.placement.clone(),
            settled: self.mover.is_settled(shared) || !shared.has_copy(),
            open_transactions: self.gateway.open(),
            prepared: self.cohort.prepared(),
            in_doubt: self.coordinator.in_doubt(shared),
            safe: self.catch_up.safe(&self.cohort, &self.mover, shared),
            reachable: shared.reachable(&shared.all_shards()),
            rtts: shared.topology.regions().filter_map(|region| Some((region, shared.peers.rtt(same_shard(region))?))).collect(),
            tables: Vec::new(),
        }
    }

    /// Lists their tables, where `everywhere` transactions may be open in the cluster.
    pub(super) fn tables(&self, everywhere: usize, shared: &Shared, visit: &mut dyn FnMut(Table)) {
        let (sites, regions) = (shared.topology.sites().count(), shared.topology.region_count());
        self.gateway.tables(sites, visit);
        self.coordinator.tables(shared.now, &shared.config, visit);
        self.cohort.tables(everywhere, shared, visit);
        self.mover.tables(sites, regions, visit);
        let log_end = shared.placement.voters.contains(shared.me.region).then_some(self.cohort.log_end());
        self.catch_up.tables(regions, log_end, &shared.config, visit);
        visit(Table::new("measures", self.measures.len(), sites).stays());
    }

    /// Has the coordinator act.
    pub(super) fn coordinate<T>(&mut self, act: impl FnOnce(&mut Coordinator, &NearCoordinator<'_>) -> T) -> T {
        let Roles { coordinator, gateway, cohort, catch_up, mover, .. } = self;
        act(coordinator, &NearCoordinator { gateway, cohort, catch_up, mover })
    }

    /// Has the cohort act.
    pub(super) fn replicate<T>(&mut self, act: impl FnOnce(&mut Cohort, &NearCohort<'_>) -> T) -> T {
        let Roles { coordinator, cohort, catch_up, mover, .. } = self;
        act(cohort, &NearCohort { coordinator, catch_up, mover })
    }

    /// Has catch-up act.
    pub(super) fn follow<T>(&mut self, act: impl FnOnce(&mut CatchUp, &NearCatchUp<'_>) -> T) -> T {
        let Roles { cohort, catch_up, mover, .. } = self;
        act(catch_up, &NearCatchUp { cohort, mover })
    }

    /// Has the mover act.
    pub(super) fn move_on<T>(&mut self, act: impl FnOnce(&mut Mover, &NearMover<'_>) -> T) -> T {
        let Roles { cohort, catch_up, mover, .. } = self;
        act(mover, &NearMover { cohort, catch_up })
    }
}

/// What arrives.
impl Roles {
    /// A write is durable.
    pub(super) fn on_persisted(&mut self, token: Token, cx: &mut Context<'_>) {
        match cx.jobs.end(token) {
            Job::ClockBound(bound) => {
                cx.clock.on_durable(bound);
                self.gateway.on_bound(cx);
                self.replicate(|cohort, near| cohort.serve_reads_below_bound(near, cx));
            }
            Job::Collect(collect) => cx.fx.collect(collect),
            Job::Closed(closed) => self.coordinator.on_closed(closed),
            other => unreachable!("nothing else asks to be told: {other:?}"),
        }
    }

    /// What was asked for is loaded.
    pub(super) fn on_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        match cx.jobs.end(token) {
            Job::Recover => self.on_recovered(loaded, cx),
            Job::Validate(attempt) => {
                let prepared = self.cohort.on_validation(attempt, token, loaded, cx);
                self.on_prepared_here(prepared, cx);
            }
            Job::RowsOfCarried(attempt) => self.replicate(|cohort, near| cohort.on_rows_of_carried(near, attempt, token, loaded, cx)),
            Job::RowsOfForgotten(attempt) => {
                self.coordinate(|coordinator, near| coordinator.on_rows_of_forgotten(near, attempt, token, loaded, cx))
            }
            Job::Examine(attempt) => self.coordinate(|coordinator, near| coordinator.on_examined(near, attempt, token, loaded, cx)),
            Job::Read(job) => self.cohort.on_read_loaded(job, loaded, cx),
            Job::Log(pulled) => self.follow(|catch_up, near| catch_up.on_log_loaded(near, pulled, loaded, cx)),
            Job::FetchRecords { to, seqs } => self.catch_up.on_fetch_records(to, &seqs, loaded, cx),
            Job::FetchRows { to, records } => self.catch_up.on_fetch_rows(to, records, loaded, cx),
            Job::CopyRows { to, copy, from, epoch, collected } => {
                self.move_on(|mover, near| mover.on_copy_loaded(near, to, CopyRequest { copy, from, epoch, collected }, loaded, cx))
            }
            Job::CopiedRows(page) => self.on_own_rows_loaded(page, loaded, cx),
            Job::ClockBound(_) | Job::Collect(_) | Job::Closed(_) => unreachable!("these are written, not loaded"),
        }
    }

    /// A site says something that promises nothing.
    pub(super) fn on_note(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        match note {
            Note::Read(read) => self.replicate(|cohort, near| cohort.on_read(near, from, read, cx)),
            Note::Rows(rows) => self.gateway.on_rows(from, rows, cx),
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
            Note::Decided { meta, .. }
            | Note::Inquire(Inquiry { meta, .. })
            | Note::Propose { meta, .. }
            | Note::Concluded { meta, .. }
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
            Note::Inquire(inquiry) => self.coordinate(|coordinator, near| coordinator.on_inquire(near, from, inquiry, cx)),
            Note::Concluded { meta, decision } => {
                self.coordinate(|coordinator, near| coordinator.on_concluded(near, &meta, decision, cx));
                self.gateway.on_decided(&meta, decision, cx);
            }
            Note::Propose { meta, round, decision, contents } => {
                let proposal = Proposal { meta, round, decision };
                self.coordinate(|coordinator, near| coordinator.on_propose(near, from, proposal, contents, cx))
            }
            Note::Untold { meta, round } => self.coordinate(|coordinator, near| coordinator.on_untold(near, &meta, round, cx)),
            Note::Outranked { attempt, promised } => self.coordinator.on_outranked(attempt, promised, cx),
            Note::Fetch { seqs } => self.catch_up.on_fetch(from, seqs, cx),
            Note::Handoff(handoff) => self.gateway.on_handoff(from, handoff, cx),
            Note::HandedBack { id, result } => self.gateway.on_handed_back(id, result, cx),
            Note::Settle { lost } => self.coordinate(|coordinator, near| coordinator.settle_placements(near, lost, cx)),
            Note::Measured(measured) => self.measures.on_measured(from, measured),
            Note::AskPlacement => cx.send_placement(from),
            Note::AskStopped { placement, after } => self.on_ask_stopped(from, placement, after, cx),
            Note::CopyRows { copy, from: first, epoch } => {
                self.move_on(|mover, near| mover.on_copy_rows(near, from, copy, first, epoch, cx))
            }
            Note::Ping(Ping { sent, oldest, handing, incarnation, ping, epoch, closed }) => {
                cx.compare_epoch(from, epoch);
                cx.peers.running_since(from, oldest, handing, incarnation);
                if epoch == cx.placement.epoch {
                    cx.peers.closes(from, Closed { incarnation, ping, upto: closed });
                }
                cx.send(from, Note::Pong { sent });
            }
            Note::Pong { sent } => {
                let now = cx.now;
                cx.peers.measured(from, sent, now);
            }
        }
    }

    /// A site says something that is durable there.
    pub(super) fn on_promise(&mut self, from: SiteId, promise: Promise, cx: &mut Context<'_>) {
        match promise {
            Promise::Apply { meta, part, floor } => self.on_apply(&meta, part, floor, cx),
            Promise::Bound { attempt, votes, lacks } => self.coordinator.on_bound(&attempt, from, votes, lacks),
            Promise::Prepared { attempt, shard } => self.coordinate(|coordinator, near| coordinator.on_prepared(near, attempt, shard, cx)),
            Promise::PrepareNext { meta, part } => self.on_prepare(meta, part, cx),
            Promise::Vote(voted) if cx.is_lost(voted.region, &voted.meta) => cx.fx.count("commit.vote_of_lost"),
            Promise::Vote(voted) => {
                // One message serves all roles that this site may have in the attempt.
                self.coordinate(|coordinator, near| coordinator.on_vote_as_coordinator(near, &voted, cx));
                self.replicate(|cohort, near| cohort.on_vote_as_cohort(near, &voted, cx));
                self.gateway.on_vote(&voted, cx);
            }
            Promise::Aborted { meta, without } => {
                self.on_aborted_as_cohort(from, &meta, without, cx);
                self.gateway.on_abort_on_record(from, &meta, cx);
            }
            Promise::Testified(testified) => self.coordinate(|coordinator, near| coordinator.on_testified(near, testified, cx)),
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
            Promise::Pull(pulled) => self.on_pull(from, pulled, cx),
            Promise::Log(page) => self.on_log(from, page, cx),
            Promise::Placed { placement } => self.on_placed(placement, cx),
            Promise::Stopped(stopped) => self.on_stopped(from, stopped, cx),
            Promise::CopiedRows(page) => self.mover.on_copied_rows(from, page, cx),
            Promise::Entries { entries } => self.on_entries(from, entries, cx),
        }
    }

    /// A client, or an operator, asks for something.
    pub(super) fn on_request(&mut self, id: RequestId, request: Request, cx: &mut Context<'_>) {
        if !self.is_serving() {
            let error = TxnError::Unavailable("this site is still recovering from its disk; try again shortly".into());
            return cx.fx.answer(id, Answer::Failed(error));
        }
        match request {
            Request::Begin { mode } => self.gateway.on_begin(id, mode, cx),
            Request::Get { txn, mode, keys, expect } => self.gateway.on_get(Reader { id, txn, mode }, keys, expect, cx),
            Request::Scan { txn, mode, range, limit, reverse, expect } => {
                self.gateway.on_scan(Reader { id, txn, mode }, ScanRequest { range, limit, reverse }, expect, cx);
            }
            Request::Commit { txn, writes, expect, options } => self.gateway.on_commit(id, txn, writes, expect, options, cx),
            Request::Rollback { txn } => self.gateway.on_rollback(id, txn, cx),
            Request::Admin(Admin::Settle { lost }) => self.coordinator.on_settle(id, lost, cx),
            Request::Admin(Admin::Status) => unreachable!("answered by the site"),
        }
    }

    /// Looks after what is overdue, and pings.
    pub(super) fn on_tick(&mut self, cx: &mut Context<'_>) {
        let Shared { me, now, incarnation, .. } = *cx.shared;
        cx.fx.set_timer(Timer::Tick, cx.shared.config.tick);
        cx.peers.tick();
        cx.peers.heard(me, now);
        let bound = cx.clock.renew_ahead(now);
        cx.write_bound(bound);
        let oldest = self.gateway.oldest().unwrap_or(cx.clock.last());
        let handing = self.gateway.handing().unwrap_or(cx.clock.last());
        // A read that waited here may have taken locks after its transaction was over.
        cx.peers.running_since(me, oldest, handing, incarnation);
        let closed = self.close(cx);
        let (ping, epoch, closed) = (cx.peers.ticks(), cx.placement.epoch, self.coordinator.durably_closed(closed, cx));
        cx.broadcast(&Note::Ping(Ping { sent: now, oldest, handing, incarnation, ping, epoch, closed }));
        self.gateway.tick(cx);
        self.coordinate(|coordinator, near| coordinator.coordinator_tick(near, cx));
        self.replicate(|cohort, near| cohort.cohort_tick(near, cx));
        self.measures.tick(self.gateway.workload(), cx);
        if !self.mover.tick(cx) {
            self.copy_anew(cx);
        }
        self.mover.join_tick(cx);
        self.catch_up_tick(cx);
    }

    /// The gateway asks again for locks that were denied.
    pub(super) fn on_retry_read(&mut self, retry: ReadRetry, cx: &mut Context<'_>) {
        self.gateway.on_retry_read(retry, cx);
    }

    /// Handles local events until none is left, then reads that need not wait any longer, and the next step of a move.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        loop {
            if let Some(local) = cx.next_local() {
                self.on_local(local, cx);
            } else if !self.replicate(|cohort, near| cohort.serve_ready(near, cx)) && !self.go_on_moving(cx) {
                return;
            }
        }
    }

    fn on_local(&mut self, local: Local, cx: &mut Context<'_>) {
        let me = cx.me;
        match local {
            Local::Note(note) => self.on_note(me, note, cx),
            Local::BindGateway(attempt) => self.gateway.bind(attempt),
            Local::AwaitSettling(from, note) => self.mover.wait_until_settled(from, note, cx),
            Local::Hurry => self.catch_up.hurry(),
            Local::SafeHasRisen => self.replicate(|cohort, near| cohort.serve_stale_reads(near, cx)),
            Local::CohortDecides(meta, decision) => {
                self.coordinate(|coordinator, near| coordinator.on_decided_as_coordinator(near, me, &meta, decision, cx));
            }
            Local::CarriedHere(meta) => self.coordinate(|coordinator, near| coordinator.lead_for_carrier(near, &meta, cx)),
            Local::CoveredHere(attempt) => self.cohort.on_covered(attempt, cx),
            Local::GatewayAborts(meta) => self.coordinator.on_gateway_aborts(&meta, cx),
        }
    }
}

#[cfg(test)]
mod tests;
