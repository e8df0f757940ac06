//! Joining: a region that is to hold a copy gets one.
//!
//! ```text
//!   replica without rows                  active replicas
//!     │ Pull                                │
//!     ├────────────────────────────────────▶│ (all) Log: begins at 41, deletions gone up to c
//!     │ CopyRows from a                     │
//!     ├────────────────────────────────────▶│ (the nearest that is settled)
//!     │◀────────────────────────────────────┤ CopiedRows a..k
//!     │ CopyRows from k …                   │
//!     │
//!   all copied:
//!     │ AskStopped                          │
//!     ├────────────────────────────────────▶│ (the last that it copied from)
//!     │◀────────────────────────────────────┤ Stopped: in doubt about X
//!   settled like the replica it copied from, in doubt about the same; the logs bring what came meanwhile
//! ```
//!
//! First the logs, then the rows: an entry that has gone from a log was taken over by every replica that held a copy then, so
//! what is copied later contains it. Once a majority has answered, none of them drops anything more that this region lacks, and
//! every commit has the vote of one of them: this region counts as having answered, if it is active, for it votes on nothing
//! before it is settled.
//!
//! Rows that the region has from earlier days, and that the other replica does not have, were deleted, and the deletion is
//! gone there; here it is put anew, at the timestamp up to which they are.
//!
//! Invariants: nothing is served from a copy that is not whole; a copy cut short by a crash begins anew; a page counts for the copy that asked for
//! it and for no other, as what has gone from the logs since may be missing from it.

use super::Mover;
use crate::config::{COPY_PAGE, PAGE_BYTES_MAX};
use crate::context::{Context, Shared};
use crate::job::Job;
use crate::message::{CopyId, CopyPage, Note, Promise, cut_to_size};
use crate::planted::Planted;
use crate::views::{Copied, MoverView, NearMover};
use rhumb_commit::placement::Regions;
use rhumb_core::{Batch, Key, KeyRange, Load, Loaded, RegionId, Row, SiteId, Span, Time, Timestamp, work};

/// Rows that are here already and are compared with those of one page, at the most.
const OWN_PAGE: usize = 2 * COPY_PAGE;

/// A copy on its way here.
#[derive(Clone, Debug)]
pub(super) struct Join {
    /// Its name: an earlier copy may have asked for the same rows.
    id: CopyId,
    /// The regions that have said where their logs begin.
    heard: Regions,
    /// Deletions up to here may be gone somewhere.
    collected: Timestamp,
    /// Whom the rows come from.
    source: Option<SiteId>,
    /// The rows from this key on are missing.
    from: Key,
    /// The epoch in which the source was settled when the first rows were copied.
    epoch: u64,
    /// The newest version copied.
    newest: Timestamp,
    /// No row copied has a floor above it.
    highest: Timestamp,
    /// When rows were asked for last.
    asked: Time,
    /// All rows are here; only what the source is in doubt about is missing.
    whole: bool,
}

/// Rows that a peer copies, and what held here when they began to be read. A page counts for no more: what settled or went while they were
/// read, they may lack.
#[derive(Debug)]
pub(crate) struct CopyRequest {
    pub(crate) copy: CopyId,
    pub(crate) from: Key,
    pub(crate) epoch: u64,
    pub(crate) collected: Timestamp,
}

fn all_from(from: Key) -> KeyRange {
    KeyRange { start: from, ..KeyRange::prefix(&[]) }
}

impl Mover {
    /// Begins to copy, if this region is to hold a copy and does not: from now on the logs of the others are taken over from wherever they begin.
    /// Returns those regions.
    pub(crate) fn begin_to_join(&mut self, near: &NearMover<'_>, cx: &mut Context<'_>) -> Option<Regions> {
        if !cx.has_copy() || self.copied || self.join.is_some() {
            return None;
        }
        self.enter = Regions::first(cx.topology.region_count()).without(cx.me.region.into());
        self.join = Some(Join {
            id: CopyId { incarnation: cx.incarnation, began: cx.timestamp() },
            heard: Regions::NONE,
            collected: near.cohort.collected(),
            source: None,
            from: Key::new(Vec::new()),
            epoch: 0,
            newest: Timestamp::ZERO,
            highest: Timestamp::ZERO,
            asked: cx.now,
            whole: false,
        });
        self.persist(Batch::new(), cx);
        Some(self.enter)
    }

    /// Begins to copy all rows, because this replica misses commits that no log holds any more. That goes to disk before any cursor that skips them,
    /// so that the copy does not pass for complete after a crash.
    pub(crate) fn copy_anew(&mut self, near: &NearMover<'_>, cx: &mut Context<'_>) -> Option<Regions> {
        self.copied = false;
        self.join = None;
        self.begin_to_join(near, cx)
    }

    /// A peer that knows of this region's copy says where its log begins, and up to when it may have dropped deletions. Once enough have said so,
    /// rows are copied; returns up to when deletions may be gone then.
    pub(crate) fn hear_for_join(&mut self, region: RegionId, collected: Timestamp, cx: &mut Context<'_>) -> Option<Timestamp> {
        let voters = cx.placement.voters;
        let join = self.join.as_mut().filter(|join| join.source.is_none())?;
        join.heard = join.heard.or(region.into());
        join.collected = collected.max(join.collected);
        // This region has voted on nothing that it could have missed.
        let known = join.heard.or(cx.me.region.into());
        if known.and(voters).len() < voters.majority() {
            return None;
        }
        let collected = join.collected;
        self.copy_from_nearest(cx);
        Some(collected)
    }

    /// Asks the nearest voter for the rows that are missing, or, once all are here, what it is in doubt about.
    pub(crate) fn copy_from_nearest(&mut self, cx: &mut Context<'_>) {
        let site = |region: RegionId| SiteId { region, shard: cx.me.shard };
        let alive = |region: &RegionId| cx.peers.is_alive(site(*region), cx.now, cx.config.suspect_after);
        let distance = |region: &RegionId| cx.peers.rtt(site(*region)).unwrap_or(Span::from_secs(3_600));
        let others = cx.placement.voters.without(cx.me.region.into());
        let Some(source) = others.iter().filter(alive).min_by_key(distance).map(site) else { return };
        let now = cx.now;
        let Some(join) = &mut self.join else { return };
        // Another replica's rows in between are as good: each page is current when it is read.
        join.source = Some(source);
        join.asked = now;
        if join.whole {
            return cx.request_stop(source.region, None);
        }
        let note = Note::CopyRows { copy: join.id, from: join.from.clone(), epoch: cx.placement.epoch };
        cx.send(source, note);
    }

    /// A peer copies this replica's rows.
    pub(crate) fn on_copy_rows(&self, near: &NearMover<'_>, to: SiteId, copy: CopyId, from: Key, epoch: u64, cx: &mut Context<'_>) {
        cx.compare_epoch(to, epoch);
        if !self.is_settled(cx) || cx.placement.epoch < epoch || !cx.has_copy() {
            return; // it asks again, here or elsewhere
        }
        let (epoch, collected) = (cx.placement.epoch, near.cohort.collected());
        let job = Job::CopyRows { to, copy, from: from.clone(), epoch, collected };
        cx.load(job, Load::Scan { range: all_from(from), at: Timestamp::MAX, limit: COPY_PAGE, bytes: PAGE_BYTES_MAX, reverse: false });
    }

    pub(crate) fn on_copy_loaded(&self, near: &NearMover<'_>, to: SiteId, asked: CopyRequest, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { mut rows, mut more } = loaded else { unreachable!("rows were asked for") };
        let CopyRequest { copy, from, epoch, collected } = asked;
        if !self.is_settled(cx) {
            return; // in a new epoch meanwhile
        }
        more |= cut_to_size(&mut rows);
        let next = rows.last().filter(|_| more).map(|row| row.key.successor());
        // Rows that were put while these were read may be among them.
        let highest = near.cohort.highest_applied();
        let page = Promise::CopiedRows(CopyPage { copy, from, rows, next, collected, highest, epoch });
        cx.fx.persist(Batch::new()).send(to, page);
    }

    /// The copy that waits for this page: not one that has it already, nor one that began after another had asked for it.
    fn join_of(&mut self, page: &CopyPage, cx: &Shared) -> Option<&mut Join> {
        let is_of = |join: &&mut Join| join.id == page.copy || cx.rules.breaks(Planted::EarlierCopyTaken);
        self.join.as_mut().filter(is_of).filter(|join| join.from == page.from)
    }

    /// Takes a page of rows: loads the rows that are already here in its range first.
    pub(crate) fn on_copied_rows(&mut self, source: SiteId, page: CopyPage, cx: &mut Context<'_>) {
        let Some(join) = self.join_of(&page, cx).filter(|join| join.source == Some(source)) else { return };
        if join.epoch == 0 || page.epoch < join.epoch {
            join.epoch = page.epoch;
        }
        join.asked = cx.now;
        let end = page.next.clone().unwrap_or_else(|| all_from(Key::new(Vec::new())).end);
        let range = KeyRange::new(page.from.clone(), end);
        cx.load(Job::CopiedRows(page), Load::Scan { range, at: Timestamp::MAX, limit: OWN_PAGE, bytes: PAGE_BYTES_MAX, reverse: false });
    }

    /// The rows that were already here in the range of a page: returns the rows to write, and requests the next page.
    pub(crate) fn on_own_rows_loaded(&mut self, mut page: CopyPage, loaded: Loaded, cx: &mut Context<'_>) -> Option<Batch> {
        let Loaded::Rows { rows: own, more } = loaded else { unreachable!("rows were asked for") };
        if let Some(last) = own.last().filter(|_| more) {
            // More is here in its range than is looked at in one step: the page ends where that ended.
            page.rows.retain(|row| row.key <= last.key);
            page.next = Some(last.key.successor());
        }
        let join = self.join_of(&page, cx)?;
        let collected = page.collected.max(join.collected);
        join.collected = collected;
        join.highest = page.highest.max(join.highest);
        work::add(own.len() + page.rows.len());
        let mut batch = Batch::new();
        let gone = |row: &Row| row.value.is_some() && page.rows.binary_search_by(|copied| copied.key.cmp(&row.key)).is_err();
        for row in own.into_iter().filter(|row| row.version < collected && gone(row)) {
            batch.put_version(row.key, collected, None);
        }
        for row in page.rows {
            join.newest = row.version.max(join.newest);
            batch.put_version(row.key, row.version, row.value);
        }
        cx.fx.count("placement.page_copied");
        match page.next {
            Some(next) => join.from = next,
            None => join.whole = true,
        }
        Some(batch)
    }

    /// A replica has listed its attempts in doubt. If it is the source of the copy, the copy is complete.
    pub(crate) fn end_join(&mut self, source: SiteId, cx: &mut Context<'_>) -> Option<Copied> {
        let stop = self.stopped.get(&source.region).filter(|stop| stop.whole && stop.settled > 0)?;
        let Join { epoch, newest, highest, collected, .. } = self.join.take_if(|join| join.whole && join.source == Some(source))?;
        cx.fx.count("placement.joined");
        let doubts = stop.doubts.iter().map(|doubt| doubt.record.clone()).collect();
        Some(Copied { epoch: epoch.min(stop.settled), newest, highest, collected, doubts })
    }

    /// Settled without asking anybody, once `batch` is on disk: the rows were copied from a replica that is settled in `epoch`. The log does not
    /// speak for the epoch of an attempt that this site was prepared for and dropped without its outcome, nor for those before: the last of
    /// them is `dropped_in`.
    pub(crate) fn settle_by_copy(&mut self, epoch: u64, dropped_in: Option<u64>, batch: Batch, cx: &mut Context<'_>) {
        self.since = self.since.max(dropped_in.map_or(0, |epoch| epoch + 1));
        self.settled = epoch.min(cx.placement.epoch);
        self.copied = true;
        self.adopted = true; // on to the epochs since then
        self.persist(batch, cx);
    }

    /// Asks again for rows that are overdue.
    pub(crate) fn join_tick(&mut self, cx: &mut Context<'_>) {
        let overdue = |join: &Join| join.source.is_some() && cx.now.since(join.asked) >= cx.config.resend_after;
        if self.join.as_ref().is_some_and(overdue) {
            self.copy_from_nearest(cx);
        }
    }
}
