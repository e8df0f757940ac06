//! Commits, where several roles of a site act in one batch.

use super::Roles;
use crate::cohort::PreparedHere;
use crate::context::{Context, Shared};
use crate::message::{ABORTED, ATTEMPT, Attempt, Meta, Note, Part, Promise};
use crate::views::{CohortView, CoordinatorView, GatewayView};
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::votes::Decision;
use rhumb_core::{Batch, Key, SiteId, Timestamp, Value};

impl Roles {
    /// The coordinator of the region asks the cohort to prepare.
    pub(super) fn on_prepare(&mut self, meta: Meta, part: Part, cx: &mut Context<'_>) {
        let prepared = self.replicate(|cohort, near| cohort.on_prepare(near, meta, part, cx));
        self.on_prepared_here(prepared, cx);
    }

    /// The only cohort of an attempt is prepared, whose coordinator is at this site as well.
    pub(super) fn on_prepared_here(&mut self, prepared: Option<PreparedHere>, cx: &mut Context<'_>) {
        let Some(PreparedHere { attempt, mut batch, in_one_phase }) = prepared else { return };
        if in_one_phase && self.coordinator.awaits_vote(&attempt) {
            cx.fx.count("commit.in_one_phase");
            let floor = self.cohort.commit_in_one_phase(attempt, &mut batch);
            self.coordinate(|coordinator, near| coordinator.on_committing(near, attempt, floor, batch, cx));
        } else {
            self.coordinate(|coordinator, near| coordinator.on_prepared_here(near, attempt, batch, cx));
        }
    }

    /// The attempt has committed: the cohort applies it, and what the other roles of this site make of that goes to disk with it.
    pub(super) fn on_apply(&mut self, meta: &Meta, part: Option<Part>, floor: Timestamp, cx: &mut Context<'_>) {
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
    pub(super) fn see_rows(&mut self, at: Timestamp, rows: &[(Key, Option<Value>)], batch: &mut Batch, cx: &mut Context<'_>) {
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
    pub(super) fn on_aborted_as_cohort(&mut self, from: SiteId, meta: &Meta, without: Regions, cx: &mut Context<'_>) {
        if from == meta.coordinator_in(cx.me.region) {
            cx.fx.agree(ATTEMPT, meta.attempt, &ABORTED);
            let was_bound = self.cohort.unbind(&meta.attempt);
            let is_part = from != cx.me && meta.participants.contains(&cx.me.shard);
            if is_part && (was_bound || !self.coordinator.lost_of(cx, meta).is_empty()) {
                self.coordinator.keep_abort(meta, without, cx);
            }
            self.cohort.unprepare(meta.attempt, cx);
        }
    }

    /// A site says how high it has prepared.
    pub(super) fn on_high(&mut self, from: SiteId, attempt: Attempt, high: Timestamp, cx: &mut Context<'_>) {
        self.gateway.on_high(from, attempt, high, cx);
        self.coordinate(|coordinator, near| coordinator.on_high_as_coordinator(near, from, attempt, high, cx));
        self.replicate(|cohort, near| cohort.on_high(near, from, attempt, high, cx));
    }

    /// Somebody who decides an attempt of `epoch` asks how high this site has prepared. Answered once all commits of the epochs
    /// before were known here.
    pub(super) fn on_ask_high(&mut self, from: SiteId, attempt: Attempt, epoch: u64, cx: &mut Context<'_>) {
        if !self.mover.has_settled_in(epoch) {
            return self.mover.wait_until_settled(from, Note::AskHigh { attempt, epoch }, cx);
        }
        cx.send(from, Note::High { attempt, high: self.cohort.highest() });
    }

    /// The coordinator, another site of this region, is about to take part in a resolution. From now on this site, as gateway or cohort of the
    /// attempt, acts only on the coordinator's decision. If it has already taken the attempt's rows over from a log, it says so. Being bound need not
    /// survive a crash: a later incarnation takes nothing over from the log of a lost region, and accepts no copy that was sent before it began.
    pub(super) fn on_bind(&mut self, from: SiteId, meta: Meta, cx: &mut Context<'_>) {
        let attempt = meta.attempt;
        cx.clock.observe(meta.at);
        self.gateway.bind(attempt);
        let taken_over = self.cohort.has_applied(&attempt) || self.coordinator.has_committed(&attempt);
        let committed = Decision::Committed { floor: self.cohort.highest_applied().max(meta.at) };
        if let Some(decision) = self.gateway.decided(&attempt).or(taken_over.then_some(committed)) {
            return cx.send(from, Note::Decided { meta, decision });
        }
        let is_absent = self.replicate(|cohort, near| cohort.are_rows_absent(near, attempt, cx));
        if self.cohort.is_carried(&attempt) && !is_absent && !self.cohort.is_covered(&attempt) {
            return; // they are being looked for, and the coordinator asks again
        }
        let votes = self.coordinate(|_, near| near.votes_heard(&attempt)).into_iter().collect();
        let mut batch = Batch::new();
        cx.cover(&mut batch, meta.at);
        if meta.participants.contains(&cx.me.shard) {
            self.cohort.bind(meta);
        }
        let lacks = self.cohort.lacks(&attempt);
        cx.fx.persist(batch).send(from, Promise::Bound { attempt, votes, lacks });
    }

    /// The timestamp up to which this replica can promise to commit nothing more.
    pub(super) fn own_closed(&mut self, cx: &Shared) -> Timestamp {
        let lagging = self.catch_up.lagging_clock(cx);
        self.replicate(|cohort, near| cohort.close(near, lagging, cx))
    }

    /// The timestamp up to which nothing is in doubt at this site, nor carried, nor will be in this epoch.
    pub(super) fn close(&mut self, cx: &Shared) -> Timestamp {
        let own_closed = self.own_closed(cx);
        self.coordinate(|coordinator, near| coordinator.close(near, own_closed, cx))
    }
}
