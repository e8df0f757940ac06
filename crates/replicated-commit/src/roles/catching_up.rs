//! Catching up: what a log brings concerns votes, rows and placements.

use super::Roles;
use crate::catch_up::{CatchUp, Found, Stopped as LookStopped};
use crate::config::FETCH_PAGE;
use crate::context::{Context, Shared};
use crate::job::Job;
use crate::message::{ATTEMPT, LogEntry, LogHead, LogPage, Note, Pulled};
use crate::planted::Planted;
use crate::views::{CohortView, CoordinatorView};
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::Decision;
use rhumb_core::{Batch, RegionId, SiteId, work};
use std::collections::BTreeSet;

impl Roles {
    pub(super) fn catch_up_tick(&mut self, cx: &mut Context<'_>) {
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
            let collect = self.cohort.collect(deletions, self.coordinator.lowest_in_doubt(), &mut batch, cx);
            let token = cx.jobs.begin(Job::Collect(collect));
            cx.fx.persist(batch).notify(token);
        }
    }

    /// The regions whose logs together hold every commit that may be missing here.
    pub(super) fn sources(&mut self, cx: &Shared) -> Regions {
        let all = if cx.has_copy() { cx.placement.voters.or(self.mover.regions_before(cx)) } else { Regions::NONE };
        let forgetting = self.coordinate(|coordinator, near| coordinator.forgetting(near));
        let carried = self.replicate(|cohort, near| cohort.logs_of_carried(near));
        all.or(forgetting).or(carried).without(cx.me.region.into())
    }

    /// A peer pulls.
    pub(super) fn on_pull(&mut self, from: SiteId, pulled: Pulled, cx: &mut Context<'_>) {
        cx.compare_epoch(from, pulled.epoch);
        if pulled.epoch <= cx.placement.epoch {
            let closed = self.own_closed(cx);
            self.follow(|catch_up, near| catch_up.on_pull(near, from, pulled, closed, cx));
        } // else what it wants kept may not be
    }

    /// A page of a peer's log.
    pub(super) fn on_log(&mut self, from: SiteId, page: LogPage, cx: &mut Context<'_>) {
        if !self.catch_up.expects(from, &page, cx) || !self.enters(from.region, &page, cx) {
            return;
        }
        work::add(page.heads.len());
        let (mut wanted, mut stopped) = (BTreeSet::new(), None);
        for head in &page.heads {
            let awaited = match self.look_at(Some(from.region), head, cx) {
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
    pub(super) fn enters(&mut self, region: RegionId, page: &LogPage, cx: &mut Context<'_>) -> bool {
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

    /// An attempt that committed by the log of a region, or by what its gateway says: applied here now if it is prepared and this site its coordinator.
    ///
    /// If its abort is on record, a log of a lost region comes too late, and so does a gateway. But that a region which is not lost has it
    /// committed is certain: no agreement was made without that one.
    pub(super) fn look_at(&mut self, log_of: Option<RegionId>, head: &LogHead, cx: &mut Context<'_>) -> Found {
        if cx.rules.breaks(Planted::AppliedTwice) {
            return Found::Missing;
        }
        let attempt = head.attempt;
        if head.at <= self.cohort.collected() {
            return Found::Known;
        }
        if self.coordinator.has_aborted(&attempt) {
            let is_certain = log_of.is_some_and(|region| self.coordinator.counts_in(cx, &attempt, region));
            if !is_certain || self.cohort.has_applied(&attempt) {
                return Found::Known;
            }
            cx.fx.count("catch_up.abort_outranked");
            return Found::Missing;
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
    pub(super) fn on_entries(&mut self, from: SiteId, entries: Vec<LogEntry>, cx: &mut Context<'_>) {
        let (mut taken, mut awaited) = (BTreeSet::new(), None);
        let mut batch = Batch::new();
        for entry in self.catch_up.wanted(from.region, entries) {
            let seq = entry.seq;
            // Since its rows were asked for, this region may have prepared for it.
            let found = if CatchUp::is_part_of_lost(from, &entry, cx) {
                Found::Awaited
            } else {
                self.look_at(Some(from.region), &entry.head(), cx)
            };
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
    pub(super) fn on_copy(&mut self, entry: LogEntry, cx: &mut Context<'_>) {
        cx.clock.observe(entry.at);
        // An earlier incarnation may have been bound not to take it over.
        let is_of_before = entry.meta.is_some() && entry.attempt.made <= cx.incarnation;
        if is_of_before
            || !cx.placement.passives.contains(cx.me.region)
            || entry.attempt.made <= self.coordinator.forget_floor(cx)
            || !matches!(self.look_at(None, &entry.head(), cx), Found::Missing)
        {
            return cx.fx.count("catch_up.copy_ignored");
        }
        cx.fx.count("catch_up.copied");
        let mut batch = Batch::new();
        self.take_over_entry(entry, &mut batch, cx);
        cx.fx.persist(batch);
    }

    pub(super) fn take_over_entry(&mut self, entry: LogEntry, batch: &mut Batch, cx: &mut Context<'_>) {
        if entry.partial {
            self.cohort.has_hole(batch, cx);
        }
        let entry = match cx.rules.breaks(Planted::AppliedTwice) {
            true => LogEntry { at: cx.timestamp(), ..entry },
            false => entry,
        };
        cx.fx.agree(ATTEMPT, entry.attempt, &Some(entry.at));
        self.coordinator.overrule_abort(entry.attempt, entry.floor, batch);
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
