//! The four kinds of read, as one shard replica serves them.
//!
//! | kind | waits for | promises | shows |
//! |---|---|---|---|
//! | lock | nothing: denied if a row is held exclusively; rows found that are on their way to disk | a lock, until a writer takes it over | the newest version |
//! | newest | prepared writes of the rows, and such rows | nothing: the votes validate it | the newest version |
//! | at *t* | prepared writes at or below *t*; the clock bound on disk | no write at or below *t* will be prepared here | the version at *t*, what lies above, and floors above |
//! | stale *t* | *t* being closed here | nothing needed | the version at *t* |
//!
//! A read that waits is served again from the start once what it waits for has ended. Readers wait for prepared
//! transactions only, and those wait for nothing but votes and the disk: no cycle can form.
//!
//! Invariant: before an answer at *t* leaves, the timestamp cache has its rows at *t* at least, and so is the clock bound on disk.
//!
//! Source: section 3.2.1 for reads that lock; the other kinds are ours.

use super::Cohort;
use super::entry::Stage;
use crate::config::PAGE_BYTES_MAX;
use crate::context::{Context, Local};
use crate::job::{Job, ReadJob};
use crate::message::{Denial, How, Note, Query, Read, Rows, cut_to_size};
use crate::planted::Planted;
use crate::views::NearCohort;
use rhumb_commit::locks::Strength;
use rhumb_core::{Key, KeyRange, Load, Loaded, Row, SiteId, Timestamp, TxnId, work};
use std::collections::BTreeMap;

impl Cohort {
    /// The transactions that hold a row of the query exclusively.
    fn exclusive_holders(&self, query: &Query) -> Vec<TxnId> {
        match query {
            Query::Keys(keys) => keys.iter().flat_map(|key| self.locks.exclusive_holders(key)).collect(),
            Query::Range { range, .. } => self.locks.exclusive_holders_within(range).into_iter().collect(),
        }
    }

    /// A transaction that has put one of `rows`, and is not known to be on disk: it may have begun to commit while the rows were loaded. Below the
    /// timestamp of a read at one, nothing commits any more.
    fn committing_holder(&self, job: &ReadJob, rows: &[Row]) -> Option<TxnId> {
        if self.committing == 0 || !matches!(job.how, How::Lock | How::Newest) {
            return None;
        }
        let holders = self.exclusive_holders(&job.query);
        work::add(holders.len() + rows.len());
        let entries = holders.into_iter().filter_map(|holder| self.entry_of(holder));
        let committing = entries.filter(|entry| matches!(entry.stage, Stage::Committing));
        let by_timestamp: BTreeMap<Timestamp, TxnId> = committing.map(|entry| (entry.meta.at, entry.meta.attempt.txn)).collect();
        rows.iter().find_map(|row| by_timestamp.get(&row.version).copied())
    }

    fn have_wait(&mut self, holder: TxnId, job: ReadJob, cx: &mut Context<'_>) {
        if !self.may_wait() {
            cx.fx.count("read.denied_busy");
            return cx.send(job.from, Note::Denied { read: job.read, denial: Denial::Busy });
        }
        cx.fx.count("read.waits_for_prepared");
        self.block(holder, job);
    }

    /// The highest floor of the versions that a snapshot at `at` has found; zero if none lies above it.
    fn floor_of(&self, rows: &[Row], at: Timestamp) -> Timestamp {
        let versions = rows.iter().map(|row| row.version).filter(|version| *version > Timestamp::ZERO);
        versions.map(|version| self.floors.of(version)).filter(|floor| *floor > at).max().unwrap_or(Timestamp::ZERO)
    }
}

impl Cohort {
    /// A gateway reads.
    pub(crate) fn on_read(&mut self, near: &NearCohort<'_>, from: SiteId, asked: Read, cx: &mut Context<'_>) {
        let Read { read, epoch, txn, ref query, how } = asked;
        let of_majority = matches!(how, How::Lock | How::At(_));
        if of_majority && epoch < cx.placement.epoch {
            return cx.send_placement(from); // its gateway asks again, in this epoch
        }
        if of_majority && (epoch > cx.placement.epoch || !near.mover.is_settled(cx)) {
            cx.compare_epoch(from, epoch);
            return cx.notify(Local::AwaitSettling(from, Note::Read(asked)));
        }
        if !cx.has_copy() || !near.mover.has_rows() {
            cx.fx.count("read.denied_no_copy");
            return cx.send(from, Note::Denied { read, denial: Denial::NoCopy });
        }
        let query = query.clone();
        let (since, above, collected) = (cx.now, Timestamp::ZERO, self.collected);
        let job = ReadJob { from, read, epoch, txn, query, how, since, above, at_timestamp: false, upto: None, looked_at: None, collected };
        self.serve_read(near, job, cx);
    }

    /// Serves a read from its start.
    pub(crate) fn serve_read(&mut self, near: &NearCohort<'_>, mut job: ReadJob, cx: &mut Context<'_>) {
        if matches!(job.how, How::Lock | How::At(_)) && (job.epoch != cx.placement.epoch || !near.mover.is_settled(cx)) {
            // It waited while this region stopped: answered now, it would be read above what the region said was read here.
            return cx.fx.count("read.dropped_stale_configuration");
        }
        job.above = Timestamp::ZERO;
        job.at_timestamp = false;
        job.looked_at = None;
        job.upto = None;
        match job.how {
            How::Lock => self.read_locked(job, cx),
            How::Newest => match self.exclusive_holders(&job.query).into_iter().next() {
                Some(holder) => self.have_wait(holder, job, cx),
                None => self.load_rows(job, Timestamp::MAX, cx),
            },
            How::At(at) => self.read_at(job, at, cx),
            How::Stale(at) => self.read_stale(near, job, at, cx),
        }
    }

    fn read_locked(&mut self, job: ReadJob, cx: &mut Context<'_>) {
        let locks = &mut self.locks;
        let holder = match &job.query {
            Query::Keys(keys) => keys.iter().find_map(|key| locks.exclusive_holder(key, Some(job.txn))),
            Query::Range { range, .. } => locks.exclusive_holder_within(range, Some(job.txn)),
        };
        if holder.is_some() {
            cx.fx.count("read.denied_locked");
            return cx.send(job.from, Note::Denied { read: job.read, denial: Denial::Locked });
        }
        match &job.query {
            Query::Keys(keys) => keys.iter().for_each(|key| locks.share(key, job.txn, Strength::Reading)),
            Query::Range { range, .. } => locks.share_range(range, job.txn, Strength::Reading),
        }
        self.load_rows(job, Timestamp::MAX, cx);
    }

    fn read_at(&mut self, mut job: ReadJob, at: Timestamp, cx: &mut Context<'_>) {
        if at < self.history_floor || at < self.horizon(cx) {
            return self.deny_collected(&job, cx);
        }
        if at > cx.clock.bound() {
            let now = cx.now;
            let bound = cx.clock.raise(at, now);
            cx.write_bound(bound);
            if !self.may_wait() {
                return cx.send(job.from, Note::Denied { read: job.read, denial: Denial::Busy });
            }
            cx.fx.count("read.waits_for_clock_bound");
            self.awaiting_clock_bound.push(job);
            return;
        }
        match &job.query {
            Query::Keys(keys) => keys.iter().for_each(|key| self.timestamp_cache.raise(key, at)),
            Query::Range { range, .. } => self.timestamp_cache.raise_range(range, at),
        }
        for holder in self.exclusive_holders(&job.query) {
            let Some(prepared_at) = self.entry_of(holder).map(|entry| entry.meta.at) else { continue };
            if prepared_at > at {
                job.above = prepared_at.max(job.above);
            } else if !cx.rules.breaks(Planted::SnapshotDoesNotWait) {
                return self.have_wait(holder, job, cx);
            }
        }
        self.load_rows(job, Timestamp::MAX, cx);
    }

    fn read_stale(&mut self, near: &NearCohort<'_>, job: ReadJob, at: Timestamp, cx: &mut Context<'_>) {
        if at < self.history_floor || at < self.horizon(cx) {
            return self.deny_collected(&job, cx);
        }
        if at <= near.catch_up.safe(self, near.mover, cx) {
            return self.load_rows(job, at, cx);
        }
        if !self.may_wait() {
            return cx.send(job.from, Note::Denied { read: job.read, denial: Denial::Busy });
        }
        cx.fx.count("read.waits_for_closed");
        self.awaiting_safe.push(job);
    }

    fn deny_collected(&mut self, job: &ReadJob, cx: &mut Context<'_>) {
        let oldest = self.history_floor.max(self.horizon(cx));
        cx.send(job.from, Note::Denied { read: job.read, denial: Denial::Collected(oldest) });
    }

    fn load_rows(&mut self, mut job: ReadJob, at: Timestamp, cx: &mut Context<'_>) {
        job.collected = self.collected;
        let load = match &job.query {
            // At the timestamp, of those only whose newest versions were looked at.
            Query::Keys(keys) => Load::Get { keys: keys[..job.looked_at.unwrap_or(keys.len())].to_vec(), at, bytes: PAGE_BYTES_MAX },
            Query::Range { range, limit, reverse } => {
                Load::Scan { range: range.clone(), at, limit: *limit as usize, bytes: PAGE_BYTES_MAX, reverse: *reverse }
            }
        };
        cx.load(Job::Read(job), load);
    }

    pub(crate) fn on_read_loaded(&mut self, mut job: ReadJob, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { mut rows, mut more } = loaded else { unreachable!("rows were asked for") };
        if let Some(holder) = self.committing_holder(&job, &rows).filter(|_| !cx.rules.breaks(Planted::CommittingShown)) {
            cx.fx.count("read.overtaken_by_commit");
            return self.have_wait(holder, job, cx);
        }
        if let Query::Range { reverse, .. } = &job.query {
            more |= cut_to_size(&mut rows);
            let reached = if more { rows.last().map(|row| row.key.clone()) } else { None };
            // Rows at the timestamp beyond the newest ones looked at may have newer versions that nobody looked at.
            job.upto = if *reverse { job.upto.max(reached) } else { nearer(job.upto, reached) };
            if let Some(upto) = &job.upto {
                rows.retain(|row| if *reverse { row.key >= *upto } else { row.key <= *upto });
            }
        }
        if let (How::At(at), false) = (job.how, job.at_timestamp) {
            let above = rows.iter().map(|row: &Row| row.version).filter(|version| *version > at).max();
            if let Some(above) = above {
                // The newest versions lie above the timestamp asked for: tell so, and load those at it.
                job.above = above.max(job.above);
                job.at_timestamp = true;
                job.looked_at = Some(rows.len());
                return self.load_rows(job, at, cx);
            }
        }
        if let (How::Lock, Query::Range { range, reverse, .. }, Some(upto)) = (job.how, &job.query, &job.upto) {
            let read = match reverse {
                true => KeyRange::new(upto.clone(), range.end.clone()),
                false => KeyRange::new(range.start.clone(), upto.successor()),
            };
            self.locks.shrink_range(range, &read, job.txn);
        }
        if let How::At(at) | How::Stale(at) = job.how
            && at < self.history_floor
            && !cx.rules.breaks(Planted::CollectedUnseen)
        {
            // Meanwhile versions were collected that it was to find.
            return self.deny_collected(&job, cx);
        }
        let (high, floor) = match job.how {
            How::At(at) => (self.highest.max(job.above), self.floor_of(&rows, at)),
            How::Lock | How::Newest | How::Stale(_) => (Timestamp::ZERO, Timestamp::ZERO),
        };
        cx.send(
            job.from,
            Note::Rows(Rows { read: job.read, rows, upto: job.upto, above: job.above, high, floor, collected: job.collected }),
        );
    }

    /// Serves a read that waits no longer. False if there is none.
    pub(crate) fn serve_ready(&mut self, near: &NearCohort<'_>, cx: &mut Context<'_>) -> bool {
        let job = self.ready.pop_front();
        let is_one = job.is_some();
        if let Some(job) = job {
            self.serve_read(near, job, cx);
        }
        is_one
    }

    /// The clock bound on disk has risen.
    pub(crate) fn serve_reads_below_bound(&mut self, near: &NearCohort<'_>, cx: &mut Context<'_>) {
        let bound = cx.clock.bound();
        let (ready, wait): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.awaiting_clock_bound).into_iter().partition(|job| matches!(job.how, How::At(at) if at <= bound));
        self.awaiting_clock_bound = wait;
        for job in ready {
            self.serve_read(near, job, cx);
        }
    }

    /// The closed timestamp has risen.
    pub(crate) fn serve_stale_reads(&mut self, near: &NearCohort<'_>, cx: &mut Context<'_>) {
        let safe = near.catch_up.safe(self, near.mover, cx);
        let (ready, wait): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.awaiting_safe).into_iter().partition(|job| matches!(job.how, How::Stale(at) if at <= safe));
        self.awaiting_safe = wait;
        for job in ready {
            self.serve_read(near, job, cx);
        }
    }
}

/// The smaller of two ends, where there are any.
fn nearer(a: Option<Key>, b: Option<Key>) -> Option<Key> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
