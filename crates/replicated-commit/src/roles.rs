//! The roles of a site, and which of them handles what arrives.
//!
//! Most of what arrives concerns one role. What concerns several, as they share a disk, is here: a commit that is applied, or taken over from a log,
//! changes rows, votes and perhaps the placement in one batch; who settles in a placement takes on what others are in doubt about.
//!
//! Invariant: a role changes its own state only.

use super::catch_up::{CatchUp, Found, Stopped as LookStopped};
use super::cohort::{Cohort, PreparedHere};
use super::config::FETCH_PAGE;
use super::context::{Context, Local, Shared};
use super::coordinator::{Coordinator, Proposal};
use super::gateway::{Gateway, Reader, ScanRequest};
use super::measure::Measures;
use super::message::{
    ABORTED, ATTEMPT, Admin, Answer, Attempt, CopyPage, Inquiry, LogEntry, LogHead, LogPage, Meta, Note, Part, Ping, Promise, Pulled,
    Request, Status, Stopped,
};
use super::mover::{CopyRequest, Mover, Step};
use super::peers::Closed;
use super::planted::Planted;
use super::records::{CARRIED, NUMBERS, Number, PLACEMENT, VOTES};
use super::recovery::Recovery;
use crate::job::{Job, ReadRetry, Timer};
use crate::views::{CatchUpView, CohortView, CoordinatorView, GatewayView, MoverView, NearCatchUp, NearCohort, NearCoordinator, NearMover};
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::transaction::TxnError;
use rhumb_commit::votes::Decision;
use rhumb_core::actor::{RequestId, Space, Token};
use rhumb_core::{Batch, Key, Loaded, RegionId, SiteId, Table, Timestamp, Value, record, work};
use std::collections::BTreeSet;

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
        self.cohort.tables(everywhere, &shared.config, visit);
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
            Job::RowsOfCarried(attempt) => self.replicate(|cohort, near| cohort.on_rows_of_carried(near, attempt, loaded, cx)),
            Job::RowsOfForgotten(attempt) => {
                self.coordinate(|coordinator, near| coordinator.on_rows_of_forgotten(near, attempt, loaded, cx))
            }
            Job::Examine(attempt) => self.coordinate(|coordinator, near| coordinator.on_examined(near, attempt, token, loaded, cx)),
            Job::Read(job) => self.cohort.on_read_loaded(job, loaded, cx),
            Job::Log(pulled) => self.follow(|catch_up, near| catch_up.on_log_loaded(near, pulled, loaded, cx)),
            Job::FetchRecords { to, seqs } => self.catch_up.on_fetch_records(to, &seqs, loaded, cx),
            Job::FetchRows { to, records } => self.catch_up.on_fetch_rows(to, records, loaded, cx),
            Job::CopyRows { to, from, epoch, collected } => {
                self.move_on(|mover, near| mover.on_copy_loaded(near, to, CopyRequest { from, epoch, collected }, loaded, cx))
            }
            Job::CopiedRows(page) => self.on_own_rows_loaded(page, loaded, cx),
            Job::ClockBound(_) | Job::Collect(_) => unreachable!("these are written, not loaded"),
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
            Note::Outranked { attempt, promised } => self.coordinator.on_outranked(attempt, promised, cx),
            Note::Fetch { seqs } => self.catch_up.on_fetch(from, seqs, cx),
            Note::Handoff(handoff) => self.gateway.on_handoff(from, handoff, cx),
            Note::HandedBack { id, result } => self.gateway.on_handed_back(id, result, cx),
            Note::Settle { lost } => self.coordinate(|coordinator, near| coordinator.settle_placements(near, lost, cx)),
            Note::Measured(measured) => self.measures.on_measured(from, measured),
            Note::AskPlacement => cx.send_placement(from),
            Note::AskStopped { placement, after } => self.on_ask_stopped(from, placement, after, cx),
            Note::CopyRows { from: first, epoch } => self.move_on(|mover, near| mover.on_copy_rows(near, from, first, epoch, cx)),
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
        let (ping, epoch, closed) = (cx.peers.ticks(), cx.placement.epoch, self.close(cx));
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
            Local::GatewayAborts(meta) => self.coordinator.on_gateway_aborts(&meta, cx),
        }
    }
}

/// Commits, where several roles act in one batch.
impl Roles {
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

    /// The attempt has committed: the cohort applies it, and what the other roles of this site make of that goes to disk with it.
    fn on_apply(&mut self, meta: &Meta, part: Option<Part>, floor: Timestamp, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        if let Some(applied) = self.cohort.apply(meta, part, floor, cx) {
            batch = applied.batch;
            self.coordinate(|coordinator, near| coordinator.supersede_earlier(near, meta.attempt, &mut batch, cx));
            self.coordinator.contest_unread(meta, &applied.part, &mut batch);
            if meta.at > self.cohort.collected() {
                self.see_rows(meta.at, &applied.part.writes, &mut batch, cx);
            }
        }
        if meta.participants == [cx.me.shard] {
            self.coordinator.on_all_applied(meta, batch, cx);
        } else {
            let SiteId { region, shard } = cx.me;
            cx.fx.persist(batch).send(meta.coordinator_in(region), Promise::Applied { attempt: meta.attempt, shard });
        }
    }

    /// Rows are being put at `at`: one may say which placement comes next, and an attempt that is being examined may have missed one.
    fn see_rows(&mut self, at: Timestamp, rows: &[(Key, Option<Value>)], batch: &mut Batch, cx: &mut Context<'_>) {
        for (key, value) in rows {
            if Placement::is_key(key)
                && let Some(placement) = value.as_ref().and_then(Placement::decode)
            {
                self.adopt(placement, batch, cx);
            }
            self.coordinator.see_row(key, at);
        }
    }

    /// The coordinator of a region has it on record that the attempt aborted.
    fn on_aborted_as_cohort(&mut self, from: SiteId, meta: &Meta, cx: &mut Context<'_>) {
        if from == meta.coordinator_in(cx.me.region) {
            cx.fx.agree(ATTEMPT, meta.attempt, &ABORTED);
            let was_bound = self.cohort.unbind(&meta.attempt);
            let is_part = from != cx.me && meta.participants.contains(&cx.me.shard);
            if is_part && (was_bound || !self.coordinator.lost_of(cx, meta).is_empty()) {
                self.coordinator.keep_abort(meta, cx);
            }
            self.cohort.unprepare(meta.attempt, cx);
        }
    }

    /// A site says how high it has prepared.
    fn on_high(&mut self, from: SiteId, attempt: Attempt, high: Timestamp, cx: &mut Context<'_>) {
        self.gateway.on_high(from, attempt, high, cx);
        self.coordinate(|coordinator, near| coordinator.on_high_as_coordinator(near, from, attempt, high, cx));
        self.replicate(|cohort, near| cohort.on_high(near, from, attempt, high, cx));
    }

    /// Somebody who decides an attempt of `epoch` asks how high this site has prepared. Answered once all commits of the epochs
    /// before were known here.
    fn on_ask_high(&mut self, from: SiteId, attempt: Attempt, epoch: u64, cx: &mut Context<'_>) {
        if !self.mover.has_settled_in(epoch) {
            return self.mover.wait_until_settled(from, Note::AskHigh { attempt, epoch }, cx);
        }
        cx.send(from, Note::High { attempt, high: self.cohort.highest() });
    }

    /// The coordinator, another site of this region, is about to take part in a resolution. From now on this site, as gateway or cohort of the
    /// attempt, acts only on the coordinator's decision. If it has already taken the attempt's rows over from a log, it says so. Being bound need not
    /// survive a crash: a later incarnation takes nothing over from the log of a lost region, and accepts no copy that was sent before it began.
    fn on_bind(&mut self, from: SiteId, meta: Meta, cx: &mut Context<'_>) {
        let attempt = meta.attempt;
        cx.clock.observe(meta.at);
        self.gateway.bind(attempt);
        let taken_over = self.cohort.has_applied(&attempt) || self.coordinator.has_committed(&attempt);
        let committed = Decision::Committed { floor: self.cohort.highest_applied().max(meta.at) };
        if let Some(decision) = self.gateway.decided(&attempt).or(taken_over.then_some(committed)) {
            return cx.send(from, Note::Decided { meta, decision });
        }
        if self.cohort.is_carried(&attempt) && !self.cohort.are_rows_absent(attempt, cx) {
            return; // they are being looked for, and the coordinator asks again
        }
        let votes = self.coordinate(|_, near| near.votes_heard(&attempt)).into_iter().collect();
        let mut batch = Batch::new();
        cx.cover(&mut batch, meta.at);
        if meta.participants.contains(&cx.me.shard) {
            self.cohort.bind(meta);
        }
        cx.fx.persist(batch).send(from, Promise::Bound { attempt, votes });
    }

    /// The timestamp up to which this replica can promise to commit nothing more.
    fn own_closed(&mut self, cx: &Shared) -> Timestamp {
        let lagging = self.catch_up.lagging_clock(cx);
        self.replicate(|cohort, near| cohort.close(near, lagging, cx))
    }

    /// The timestamp up to which nothing is in doubt at this site, nor carried, nor will be in this epoch.
    fn close(&mut self, cx: &Shared) -> Timestamp {
        let own_closed = self.own_closed(cx);
        self.coordinate(|coordinator, near| coordinator.close(near, own_closed, cx))
    }
}

/// Catching up: what a log brings concerns votes, rows and placements.
impl Roles {
    fn catch_up_tick(&mut self, cx: &mut Context<'_>) {
        self.catch_up.tick(cx);
        let closed = self.own_closed(cx);
        self.follow(|catch_up, near| catch_up.close_own(near, closed, cx));
        if self.catch_up.pulls_now() {
            let sources = self.sources(cx);
            self.follow(|catch_up, near| catch_up.pull_all(near, sources, cx));
        }
        self.replicate(|cohort, near| cohort.serve_stale_reads(near, cx));
        self.follow(|catch_up, near| catch_up.truncate_log(near, cx));
        if let Some(deletions) = self.follow(|catch_up, near| catch_up.collects(near, cx)) {
            let mut batch = Batch::new();
            let collect = self.cohort.collect(deletions, &mut batch, cx);
            let token = cx.jobs.begin(Job::Collect(collect));
            cx.fx.persist(batch).notify(token);
        }
    }

    /// The regions whose logs together hold every commit that may be missing here.
    fn sources(&mut self, cx: &Shared) -> Regions {
        let all = if cx.has_copy() { cx.placement.voters.or(self.mover.regions_before(cx)) } else { Regions::NONE };
        let forgetting = self.coordinate(|coordinator, near| coordinator.forgetting(near));
        let carried = self.replicate(|cohort, near| cohort.logs_of_carried(near));
        all.or(forgetting).or(carried).without(cx.me.region.into())
    }

    /// A peer pulls.
    fn on_pull(&mut self, from: SiteId, pulled: Pulled, cx: &mut Context<'_>) {
        cx.compare_epoch(from, pulled.epoch);
        if pulled.epoch <= cx.placement.epoch {
            let closed = self.own_closed(cx);
            self.follow(|catch_up, near| catch_up.on_pull(near, from, pulled, closed, cx));
        } // else what it wants kept may not be
    }

    /// A page of a peer's log.
    fn on_log(&mut self, from: SiteId, page: LogPage, cx: &mut Context<'_>) {
        if !self.catch_up.expects(from, &page, cx) || !self.enters(from.region, &page, cx) {
            return;
        }
        work::add(page.heads.len());
        let (mut wanted, mut stopped) = (BTreeSet::new(), None);
        for head in &page.heads {
            let awaited = match self.look_at(head, cx) {
                Found::Known => continue,
                Found::Missing if wanted.len() < FETCH_PAGE => {
                    wanted.insert(head.seq);
                    continue;
                }
                Found::Missing => false,
                Found::Awaited => true,
            };
            stopped = Some(LookStopped { before: head.seq, awaited });
            break;
        }
        self.catch_up.open(from, &page, wanted, stopped, cx);
        self.follow(|catch_up, near| catch_up.turn_page(near, from.region, cx));
    }

    /// True if the page goes on where this replica left off. A log may have lost its beginning: then it goes on from there, if
    /// what was lost has been copied or is going to be.
    fn enters(&mut self, region: RegionId, page: &LogPage, cx: &mut Context<'_>) -> bool {
        let behind = page.begins > page.after;
        if !self.mover.may_enter(region) {
            if behind && cx.has_copy() {
                cx.fx.count("placement.fell_behind");
                self.copy_anew(cx);
            }
            return !behind;
        }
        if page.epoch < cx.placement.epoch {
            return false; // it may lose more of its log, as it does not know who wants it
        }
        self.mover.has_entered(region);
        self.catch_up.enter(region, page.begins.max(page.after));
        if let Some(collected) = self.mover.hear_for_join(region, page.collected, cx) {
            self.cohort.begin_copy(collected);
        }
        if behind {
            self.follow(|catch_up, near| catch_up.pull(near, region, cx));
        }
        !behind
    }

    /// A committed attempt: applied here now if it is prepared and this site its coordinator.
    fn look_at(&mut self, head: &LogHead, cx: &mut Context<'_>) -> Found {
        if cx.rules.breaks(Planted::AppliedTwice) {
            return Found::Missing;
        }
        let attempt = head.attempt;
        if head.at <= self.cohort.collected() || self.coordinator.has_aborted(&attempt) {
            return Found::Known;
        }
        self.coordinate(|coordinator, near| coordinator.learn_committed(near, attempt, head.floor, cx));
        if self.cohort.has_applied(&attempt) {
            return Found::Known;
        }
        if let Some(meta) = self.cohort.awaited_meta(&attempt) {
            let (decision, coordinator) = (Decision::Committed { floor: head.floor }, meta.coordinator_in(cx.me.region));
            if coordinator != cx.me {
                // Half a transaction would remain if that one has agreed otherwise: it says so once it knows.
                cx.fx.send(coordinator, Note::Decided { meta: meta.clone(), decision });
                cx.fx.count("catch_up.awaits_coordinator");
                return Found::Awaited;
            }
        }
        if self.coordinate(|coordinator, near| coordinator.is_withheld(near, &attempt)) {
            return Found::Awaited;
        }
        let Some(meta) = self.cohort.promised_entry(&attempt).map(|entry| entry.meta.clone()) else { return Found::Missing };
        self.on_apply(&meta, None, head.floor, cx);
        Found::Known
    }

    /// Rows of a peer's log.
    fn on_entries(&mut self, from: SiteId, entries: Vec<LogEntry>, cx: &mut Context<'_>) {
        let (mut taken, mut awaited) = (BTreeSet::new(), None);
        let mut batch = Batch::new();
        for entry in self.catch_up.wanted(from.region, entries) {
            let seq = entry.seq;
            // Since its rows were asked for, this region may have prepared for it.
            let found = if CatchUp::is_part_of_lost(from, &entry, cx) { Found::Awaited } else { self.look_at(&entry.head(), cx) };
            match found {
                Found::Known => {}
                Found::Missing => {
                    cx.fx.count("catch_up.applied");
                    self.take_over_entry(entry, &mut batch, cx);
                }
                Found::Awaited => {
                    awaited = Some(seq);
                    break;
                }
            }
            taken.insert(seq);
        }
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
        self.catch_up.take(from.region, &taken, awaited);
        self.follow(|catch_up, near| catch_up.turn_page(near, from.region, cx));
    }

    /// A gateway sends what was committed.
    fn on_copy(&mut self, entry: LogEntry, cx: &mut Context<'_>) {
        cx.clock.observe(entry.at);
        // An earlier incarnation may have been bound not to take it over.
        let is_of_before = entry.meta.is_some() && entry.attempt.made <= cx.incarnation;
        if is_of_before
            || !cx.placement.passives.contains(cx.me.region)
            || entry.attempt.made <= self.coordinator.forget_floor(cx)
            || !matches!(self.look_at(&entry.head(), cx), Found::Missing)
        {
            return cx.fx.count("catch_up.copy_ignored");
        }
        cx.fx.count("catch_up.copied");
        let mut batch = Batch::new();
        self.take_over_entry(entry, &mut batch, cx);
        cx.fx.persist(batch);
    }

    fn take_over_entry(&mut self, entry: LogEntry, batch: &mut Batch, cx: &mut Context<'_>) {
        if entry.partial {
            self.cohort.has_hole(batch, cx);
        }
        let entry = match cx.rules.breaks(Planted::AppliedTwice) {
            true => LogEntry { at: cx.timestamp(), ..entry },
            false => entry,
        };
        cx.fx.agree(ATTEMPT, entry.attempt, &Some(entry.at));
        self.coordinate(|coordinator, near| coordinator.supersede_earlier(near, entry.attempt, batch, cx));
        self.cohort.take_over(&entry, batch);
        if entry.at > self.cohort.collected() {
            self.see_rows(entry.at, &entry.writes, batch, cx);
        }
        if let Some(meta) = &entry.meta {
            self.coordinate(|coordinator, near| coordinator.keep_commit(near, meta, entry.floor, batch, cx));
        }
    }
}

/// Moves: who settles takes on what others are in doubt about.
impl Roles {
    /// Enters the epoch of `placement`, if it is a later one. Adds that to `batch`.
    fn adopt(&mut self, placement: Placement, batch: &mut Batch, cx: &mut Context<'_>) {
        if placement.epoch > cx.placement.epoch {
            self.catch_up.begin_epoch(self.catch_up.safe(&self.cohort, &self.mover, cx));
            self.mover.adopt(placement, batch, cx);
        }
    }

    /// A site says which placement it has adopted.
    fn on_placed(&mut self, placement: Placement, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        self.adopt(placement, &mut batch, cx);
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
    }

    /// A replica of the new placement asks whether this one has stopped.
    fn on_ask_stopped(&mut self, from: SiteId, placement: Placement, after: Option<Attempt>, cx: &mut Context<'_>) {
        if placement.epoch < cx.placement.epoch {
            return cx.send_placement(from);
        }
        self.on_placed(placement, cx);
        self.mover.on_asked(from, after);
    }

    /// At the end of every step: goes on with a move as far as it can. False if there is nothing to do.
    fn go_on_moving(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.is_serving() {
            return false;
        }
        match self.move_on(|mover, near| mover.next(near, cx)) {
            Step::Adopted => {
                self.gateway.resend_in_new_epoch(cx);
                self.begin_to_join(cx);
                if !self.mover.request_stops(cx) {
                    self.copy_anew(cx);
                }
            }
            Step::SendStopped => self.move_on(|mover, near| mover.send_stopped(near, cx)),
            Step::Settle => self.settle(cx),
            Step::CopyAnew => self.copy_anew(cx),
            Step::Wait => return false,
        }
        true
    }

    /// Settles in the present epoch.
    fn settle(&mut self, cx: &mut Context<'_>) {
        let read_upto = self.mover.read_upto();
        let mut batch = Batch::new();
        cx.cover(&mut batch, read_upto);
        self.cohort.refuse_below(read_upto);
        for (_, stop) in self.mover.stops() {
            self.cohort.carry(stop.doubts.iter().map(|doubt| doubt.record.clone()), &mut batch, cx);
        }
        self.mover.settle(batch, cx);
        self.replicate(|cohort, near| near.mover.stops().for_each(|(region, stop)| cohort.hear_of_no_doubt(near, region, stop, cx)));
        self.mover.drop_doubts();
        self.serve_waiting(cx);
    }

    /// A former active region has stopped.
    fn on_stopped(&mut self, from: SiteId, stopped: Stopped, cx: &mut Context<'_>) {
        if !self.mover.on_stopped(from, stopped, cx) {
            return;
        }
        self.replicate(|cohort, near| {
            if let Some(stop) = near.mover.stop_of(from.region) {
                cohort.hear_of_no_doubt(near, from.region, stop, cx);
            }
        });
        if self.catch_up.lags_behind_stop(&self.mover, from.region, cx) {
            self.follow(|catch_up, near| catch_up.pull(near, from.region, cx));
        }
        self.end_join(from, cx);
    }

    /// Begins to copy, if this region is to hold a copy and does not.
    fn begin_to_join(&mut self, cx: &mut Context<'_>) {
        if let Some(regions) = self.move_on(|mover, near| mover.begin_to_join(near, cx)) {
            self.catch_up.begin_anew(regions);
        }
    }

    /// This replica misses commits that no log holds any more.
    fn copy_anew(&mut self, cx: &mut Context<'_>) {
        if let Some(regions) = self.move_on(|mover, near| mover.copy_anew(near, cx)) {
            self.catch_up.begin_anew(regions);
        }
    }

    /// What is here already in the range of a page of copied rows.
    fn on_own_rows_loaded(&mut self, page: CopyPage, loaded: Loaded, cx: &mut Context<'_>) {
        let Some(batch) = self.mover.on_own_rows_loaded(page, loaded, cx) else { return };
        self.coordinator.see_batch(&batch);
        cx.fx.persist(batch);
        self.mover.copy_from_nearest(cx);
    }

    /// A replica has listed its attempts in doubt. If it is the source of the copy, this replica is as far as it was.
    fn end_join(&mut self, source: SiteId, cx: &mut Context<'_>) {
        let Some(copied) = self.mover.end_join(source, cx) else { return };
        let mut batch = Batch::new();
        self.cohort.end_copy(&copied, &mut batch, cx);
        let dropped_in = self.cohort.drop_doubts_but(&copied.attempts(), copied.epoch, &mut batch, cx);
        self.coordinate(|coordinator, near| coordinator.settle_copied(near, copied.epoch));
        self.cohort.carry(copied.doubts.into_iter(), &mut batch, cx);
        self.mover.settle_by_copy(copied.epoch, dropped_in, batch, cx);
        if self.mover.is_settled(cx) {
            self.serve_waiting(cx);
        }
    }

    fn serve_waiting(&mut self, cx: &mut Context<'_>) {
        for (from, note) in self.mover.take_waiting() {
            self.on_note(from, note, cx);
        }
        self.replicate(|cohort, near| cohort.serve_stale_reads(near, cx));
    }
}

/// From disk to serving.
impl Roles {
    /// Asks for what earlier incarnations have left, page by page; once all is read, serves.
    pub(super) fn recover(&mut self, cx: &mut Context<'_>) {
        let Some(recovery) = &mut self.recovery else { unreachable!("an incarnation recovers once") };
        match recovery.pages.next_load() {
            Some(load) => {
                cx.load(Job::Recover, load);
            }
            None => {
                let placement = recovery.placement.take();
                self.mover.recover(placement, cx);
                cx.fx.trace(|| format!("recovered {} prepared attempts", self.cohort.prepared()));
                self.serve(cx);
            }
        }
    }

    /// A page of that.
    fn on_recovered(&mut self, loaded: Loaded, cx: &mut Context<'_>) {
        let Some(recovery) = &mut self.recovery else { unreachable!("nothing else is read before") };
        let (space, records) = recovery.pages.take(loaded);
        for (key, bytes) in &records {
            self.recover_record(space, key, bytes, cx);
        }
        self.recover(cx);
    }

    fn recover_record(&mut self, space: Space, key: &[u8], bytes: &[u8], cx: &mut Context<'_>) {
        let damaged = "the store verifies checksums, and records are written by this format version only";
        match space {
            NUMBERS => match Number::decode(key, bytes).expect(damaged) {
                (Number::ClockBound, value) => cx.clock = cx.clock.recovered(Timestamp::from_bits(value)),
                (Number::Forgotten, value) => self.coordinator.recover_forgotten(Timestamp::from_bits(value)),
                (Number::Truncated, value) => self.catch_up.recover_truncated(value),
                (Number::Cursor(region), value) => self.catch_up.set_cursor(region, value),
                (number, value) => self.cohort.recover_number(number, value),
            },
            PLACEMENT => {
                if let Some(recovery) = &mut self.recovery {
                    recovery.placement = Some(record::decode(bytes).expect(damaged));
                }
            }
            VOTES => self.coordinator.recover_vote(record::decode(bytes).expect(damaged), cx),
            CARRIED => self.cohort.recover_carried(cx, record::decode(bytes).expect(damaged)),
            _ => self.cohort.recover_prepared(cx, record::decode(bytes).expect(damaged)),
        }
    }

    /// Begins to serve, once recovered.
    fn serve(&mut self, cx: &mut Context<'_>) {
        self.recovery = None;
        let bound = cx.clock.bound();
        // An incarnation that begins anything puts a higher bound on disk first, so the next incarnation has another name.
        cx.incarnation = bound;
        self.cohort.refuse_below(bound.max(self.cohort.collected()));
        self.coordinator.begin_above(bound);
        cx.fx.trace(|| format!("serves above {bound}"));
        self.replicate(|cohort, near| cohort.drop_orphans(near, cx));
        self.coordinate(|coordinator, near| coordinator.settle_copied(near, near.mover.since()));
        self.on_tick(cx);
    }
}

#[cfg(test)]
mod tests;
