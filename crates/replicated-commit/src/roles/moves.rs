//! Moves: who settles takes on what others are in doubt about.

use super::Roles;
use crate::context::Context;
use crate::message::{Attempt, CopyPage, Stopped};
use crate::mover::Step;
use crate::views::{CatchUpView, MoverView};
use rhumb_commit::placement::Placement;
use rhumb_core::{Batch, Loaded, SiteId};

impl Roles {
    /// Enters the epoch of `placement`, if it is a later one. Adds that to `batch`.
    pub(super) fn adopt(&mut self, placement: Placement, batch: &mut Batch, cx: &mut Context<'_>) {
        if placement.epoch > cx.placement.epoch {
            self.catch_up.begin_epoch(self.catch_up.safe(&self.cohort, &self.mover, cx));
            self.mover.adopt(placement, batch, cx);
        }
    }

    /// A site says which placement it has adopted.
    pub(super) fn on_placed(&mut self, placement: Placement, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        self.adopt(placement, &mut batch, cx);
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
    }

    /// A replica of the new placement asks whether this one has stopped.
    pub(super) fn on_ask_stopped(&mut self, from: SiteId, placement: Placement, after: Option<Attempt>, cx: &mut Context<'_>) {
        if placement.epoch < cx.placement.epoch {
            return cx.send_placement(from);
        }
        self.on_placed(placement, cx);
        self.mover.on_asked(from, after);
    }

    /// At the end of every step: goes on with a move as far as it can. False if there is nothing to do.
    pub(super) fn go_on_moving(&mut self, cx: &mut Context<'_>) -> bool {
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
    pub(super) fn settle(&mut self, cx: &mut Context<'_>) {
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
    pub(super) fn on_stopped(&mut self, from: SiteId, stopped: Stopped, cx: &mut Context<'_>) {
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
    pub(super) fn begin_to_join(&mut self, cx: &mut Context<'_>) {
        if let Some(regions) = self.move_on(|mover, near| mover.begin_to_join(near, cx)) {
            self.catch_up.begin_anew(regions);
        }
    }

    /// This replica misses commits that no log holds any more.
    pub(super) fn copy_anew(&mut self, cx: &mut Context<'_>) {
        if let Some(regions) = self.move_on(|mover, near| mover.copy_anew(near, cx)) {
            self.catch_up.begin_anew(regions);
        }
    }

    /// What is here already in the range of a page of copied rows.
    pub(super) fn on_own_rows_loaded(&mut self, page: CopyPage, loaded: Loaded, cx: &mut Context<'_>) {
        let Some(batch) = self.mover.on_own_rows_loaded(page, loaded, cx) else { return };
        self.coordinator.see_batch(&batch);
        cx.fx.persist(batch);
        self.mover.copy_from_nearest(cx);
    }

    /// A replica has listed its attempts in doubt. If it is the source of the copy, this replica is as far as it was.
    pub(super) fn end_join(&mut self, source: SiteId, cx: &mut Context<'_>) {
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

    pub(super) fn serve_waiting(&mut self, cx: &mut Context<'_>) {
        for (from, note) in self.mover.take_waiting() {
            self.on_note(from, note, cx);
        }
        self.replicate(|cohort, near| cohort.serve_stale_reads(near, cx));
    }
}
