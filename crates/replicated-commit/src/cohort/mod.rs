//! The cohort: one shard replica preparing and applying attempts.
//!
//! ```text
//!   Prepare ─▶ locks taken, newest versions asked for ─▶ Validating ─▶ all current ─▶ Prepared on disk
//!                 └─▶ a lock denied ─▶ CannotPrepare        └─▶ stale, too low ─▶ CannotPrepare
//!   Apply ─▶ locks released ─▶ versions and log on disk ─▶ Applied
//!
//!   at a site alone: all current ─▶ Committing: versions and log on their way to disk ─▶ Apply: locks released
//! ```
//!
//! Locks need not wait for the disk: the outcome rests on durable votes, and a later load sees the versions that were queued before it.
//!
//! Where the cohort is the attempt's only one in the region, it is the coordinator too, and its prepare and the
//! region's vote go to disk as one.
//!
//! Invariants: an entry holds its exclusive locks and firm shared locks from its first check until it is removed; an
//! entry found prepared on disk is locked before anybody is heard; versions are put at the commit timestamp only, so
//! that applying twice changes nothing.
//!
//! Source: section 3.2.2, Algorithm 1, lines 5 and 11. `check_locks` and `take_locks` keep the first of its three conditions, `check_rows`
//! and `promise` in `prepare.rs` the others; `apply` there is its commit phase, in which `remove_entry` releases the locks.

mod doubts;
mod entry;
mod floors;
mod prepare;
mod reads;
mod view;

use crate::config::{TXN_ROWS_MAX, WAITING_READS_MAX};
use crate::context::{Context, Shared};
use crate::job::ReadJob;
use crate::message::{Attempt, LogEntry, Meta, Part};
use crate::planted::{Planted, walk_locks};
use crate::records::{self, CARRIED, Number, PREPARED, PreparedRecord};
use crate::views::{CohortView, Copied, NearCohort};
use entry::{Carried, Entry, Stage};
use floors::Floors;
use rhumb_commit::locks::{Locks, Strength};
use rhumb_commit::timestamp_cache::TimestampCache;
use rhumb_commit::votes::Refusal;
use rhumb_core::actor::Collect;
use rhumb_core::{Batch, RegionId, SiteId, Table, Time, Timestamp, TxnId, work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The only cohort of an attempt is prepared, once `batch` is on disk. Its coordinator, at the same site, adds its vote to that: both go to disk as
/// one.
pub(crate) struct PreparedHere {
    pub(crate) attempt: Attempt,
    pub(crate) batch: Batch,
    /// The vote will be the outcome: the rows go along with it.
    pub(crate) in_one_phase: bool,
}

/// A commit is applied, once `batch` is on disk.
pub(crate) struct Applied {
    pub(crate) part: Part,
    pub(crate) batch: Batch,
}

/// One shard replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cohort {
    locks: Locks,
    timestamp_cache: TimestampCache,
    entries: BTreeMap<Attempt, Entry>,
    /// How many of these are [committing](Stage::Committing).
    committing: usize,
    /// Attempts applied here and not yet forgotten.
    applied: BTreeSet<Attempt>,
    /// Attempts that this region takes part in the resolution of, as their coordinator, another site, has said: nothing of them is taken over
    /// from a log until that one knows the outcome.
    bound: BTreeMap<Attempt, Meta>,
    /// The highest commit timestamp prepared or applied here.
    highest: Timestamp,
    /// The highest commit timestamp, or floor, applied here.
    highest_applied: Timestamp,
    floors: Floors,
    log_end: u64,
    /// Below it the history of rows may have holes.
    history_floor: Timestamp,
    /// At or below it are all commits that were taken over without rows which had been collected elsewhere.
    holes_upto: Timestamp,
    /// Deletions up to here may be gone.
    collected: Timestamp,
    /// Reads that wait for a prepared transaction.
    blocked: BTreeMap<TxnId, Vec<ReadJob>>,
    /// Reads that wait for the clock bound on disk, or for a timestamp to be closed.
    awaiting_clock_bound: Vec<ReadJob>,
    awaiting_safe: Vec<ReadJob>,
    /// Reads that wait no longer.
    ready: VecDeque<ReadJob>,
}

impl Cohort {
    /// Nothing below it can be read any more.
    pub(crate) fn horizon(&self, cx: &Shared) -> Timestamp {
        Timestamp::from_time(cx.now.minus(cx.config.keep_versions)).max(self.collected)
    }

    /// Nothing that commits at or below `at` is prepared here any more.
    pub(crate) fn refuse_below(&mut self, at: Timestamp) {
        self.timestamp_cache.raise_low_water(at);
    }

    /// The timestamp up to which this replica can promise to commit nothing more: up to `lagging`, and below all that is prepared.
    pub(crate) fn close(&mut self, near: &NearCohort<'_>, lagging: Timestamp, cx: &Shared) -> Timestamp {
        let lowest = self.lowest_unresolved(self.resting(near, cx));
        let closed = lowest.map_or(lagging, |lowest| lagging.min(lowest.previous()));
        self.refuse_below(closed);
        closed
    }

    /// What an earlier incarnation has left.
    pub(crate) fn recover_number(&mut self, number: Number, value: u64) {
        match number {
            Number::LogEnd => self.log_end = value,
            // What an earlier incarnation has raised it for is not known.
            Number::HistoryFloor => (self.history_floor, self.holes_upto) = (Timestamp::from_bits(value), Timestamp::from_bits(value)),
            Number::Collected => self.collected = Timestamp::from_bits(value),
            Number::Highest => self.recover_highest(Timestamp::from_bits(value)),
            other => unreachable!("{other:?} is another role's"),
        }
    }

    /// Old versions, and deletions up to `deletions`, are about to be dropped, none that were current when the attempt at `in_doubt` would have
    /// committed, or one that is prepared or carried here. Adds that to `batch`; returns up to where versions are.
    pub(crate) fn collect(&mut self, deletions: Timestamp, in_doubt: Option<Timestamp>, batch: &mut Batch, cx: &Shared) -> Collect {
        let needed = in_doubt.into_iter().chain(self.lowest_unresolved(Timestamp::ZERO)).min();
        let needed = needed.filter(|_| !cx.rules.breaks(Planted::DoubtsCollected));
        let horizon = needed.map_or(self.horizon(cx), |at| self.horizon(cx).min(at.previous())).max(self.collected);
        let deletions = deletions.min(horizon).max(self.collected);
        self.collected = deletions;
        self.refuse_below(deletions);
        // The clock of a later incarnation may be behind this one's: what is collected now must not be read then.
        self.history_floor = horizon.max(self.history_floor);
        Number::Collected.put(batch, deletions.bits());
        Number::HistoryFloor.put(batch, self.history_floor.bits());
        Collect { horizon, deletions }
    }

    /// What logs bring at or below `collected` is among the rows that are copied from now on, or deleted.
    pub(crate) fn begin_copy(&mut self, collected: Timestamp) {
        self.collected = collected;
    }

    /// All rows are copied: of each the newest version only. Adds that to `batch`.
    pub(crate) fn end_copy(&mut self, copied: &Copied, batch: &mut Batch, cx: &mut Context<'_>) {
        let floor = cx.timestamp().max(copied.newest);
        self.history_floor = floor.max(self.history_floor);
        self.keep_floor(copied.newest, copied.newest, batch);
        self.copy_floors(copied.highest, batch);
        Number::HistoryFloor.put(batch, self.history_floor.bits());
        self.collected = copied.collected.max(self.collected);
        self.refuse_below(self.collected);
        Number::Collected.put(batch, self.collected.bits());
    }

    /// An entry of a peer's log is taken over. Adds it to `batch`.
    pub(crate) fn take_over(&mut self, entry: &LogEntry, batch: &mut Batch) {
        work::add(1 + entry.writes.len());
        for (key, value) in entry.writes.iter().filter(|_| entry.at > self.collected) {
            self.locks.take_over(key, None);
            batch.put_version(key.clone(), entry.at, value.clone());
        }
        self.applied.insert(entry.attempt);
        self.keep_floor(entry.at, entry.floor, batch);
    }

    /// The log being taken over no longer holds some versions: records in `batch` that history is incomplete below the present.
    pub(crate) fn has_hole(&mut self, batch: &mut Batch, cx: &mut Context<'_>) {
        // A copy may have brought rows above this clock.
        self.history_floor = cx.timestamp().max(self.history_floor);
        self.holes_upto = self.history_floor;
        Number::HistoryFloor.put(batch, self.history_floor.bits());
    }

    /// A site says how high it has prepared.
    pub(crate) fn on_high(&mut self, near: &NearCohort<'_>, from: SiteId, attempt: Attempt, high: Timestamp, cx: &mut Context<'_>) {
        if let Some(entry) = self.entries.get_mut(&attempt) {
            entry.tally.hear_high(from, high);
            self.count_as_cohort(near, attempt, cx);
        }
    }

    /// The coordinator, another site, takes part in the resolution of the attempt: this cohort acts only on its decision.
    pub(crate) fn bind(&mut self, meta: Meta) {
        self.bound.insert(meta.attempt, meta);
    }

    /// The coordinator has it on record how `attempt` ended. True if it was left to it.
    pub(crate) fn unbind(&mut self, attempt: &Attempt) -> bool {
        self.bound.remove(attempt).is_some()
    }

    /// What `attempt` is, if this replica waits for its outcome: prepared, carried or bound.
    pub(crate) fn awaited_meta(&self, attempt: &Attempt) -> Option<&Meta> {
        self.promised_entry(attempt).map(|entry| entry.meta).or(self.bound.get(attempt))
    }
}

impl Cohort {
    /// Lists its tables; `transactions_max` at the most are open anywhere. Where there is no copy any more, what it was prepared for before may stay.
    pub(crate) fn tables(&self, transactions_max: usize, cx: &Shared, visit: &mut dyn FnMut(Table)) {
        let (locked, holders) = self.locks.sizes();
        let rests = |entry: &&Entry| !cx.has_copy() && entry.meta.epoch < cx.placement.epoch && matches!(entry.stage, Stage::Prepared);
        let rested: Vec<&Part> = self.entries.values().filter(rests).map(|entry| &entry.part).collect();
        let locked_at_rest = rested.iter().map(|part| part.reads.len() + part.ranges.len() + part.writes.len()).sum();
        visit(Table::new("cohort.locked", locked, 2 * transactions_max * TXN_ROWS_MAX).resting_at(locked_at_rest));
        visit(Table::new("cohort.holders", holders, 2 * transactions_max).resting_at(rested.len()));
        visit(Table::new("cohort.entries", self.entries.len(), transactions_max).resting_at(rested.len()));
        visit(Table::new("cohort.bound", self.bound.len(), transactions_max));
        visit(Table::new("cohort.applied", self.applied.len(), cx.config.attempts_kept()).stays());
        visit(Table::new("cohort.waiting", self.waiting(), WAITING_READS_MAX));
        visit(Table::new("cohort.ready", self.ready.len(), 0));
        self.floors.tables(visit);
        self.timestamp_cache.tables(visit);
    }

    /// The attempt of `txn` that holds locks here.
    pub(crate) fn entry_of(&self, txn: TxnId) -> Option<&Entry> {
        let of_txn = |made| Attempt { txn, made };
        self.entries.range(of_txn(Timestamp::ZERO)..=of_txn(Timestamp::MAX)).next_back().map(|(_, entry)| entry)
    }

    /// The lowest commit timestamp that is prepared, or about to be, by an attempt made above `resting`.
    pub(crate) fn lowest_unresolved(&self, resting: Timestamp) -> Option<Timestamp> {
        work::add(self.entries.len());
        self.entries.values().filter(|entry| entry.meta.attempt.made > resting).map(|entry| entry.meta.at).min()
    }

    /// Has `job` wait for `txn`.
    pub(crate) fn block(&mut self, txn: TxnId, job: ReadJob) {
        self.blocked.entry(txn).or_default().push(job);
    }

    /// How many reads wait.
    pub(crate) fn waiting(&self) -> usize {
        work::add(self.blocked.len());
        self.blocked.values().map(Vec::len).sum::<usize>() + self.awaiting_clock_bound.len() + self.awaiting_safe.len()
    }

    /// True if one more read may wait.
    pub(crate) fn may_wait(&self) -> bool {
        self.waiting() < WAITING_READS_MAX
    }

    /// Forgets an entry, in memory and, by `batch`, on disk.
    pub(crate) fn remove_entry(&mut self, attempt: &Attempt, batch: &mut Batch) -> Option<Entry> {
        let entry = self.entries.remove(attempt)?;
        match entry.stage {
            Stage::Validating(_) => {}
            Stage::Committing => self.committing -= 1,
            Stage::Prepared => batch.delete_record(PREPARED, records::attempt_key(attempt)),
            Stage::Carried(_) => batch.delete_record(CARRIED, records::attempt_key(attempt)),
        }
        self.release(attempt.txn);
        Some(entry)
    }

    /// Gives its locks back, and lets reads go on that waited for them.
    pub(crate) fn release(&mut self, txn: TxnId) {
        self.locks.release(txn);
        self.ready.extend(self.blocked.remove(&txn).unwrap_or_default());
    }

    /// Drops waiting reads that began before `limit`: whoever asked has given them up.
    fn drop_old_reads(&mut self, limit: Time) {
        work::add(self.waiting());
        for jobs in self.blocked.values_mut() {
            jobs.retain(|job| job.since >= limit);
        }
        self.blocked.retain(|_, jobs| !jobs.is_empty());
        self.awaiting_clock_bound.retain(|job| job.since >= limit);
        self.awaiting_safe.retain(|job| job.since >= limit);
    }
}

impl Cohort {
    /// May the attempt take all its locks, and is its timestamp above all reads of what it writes?
    fn check_locks(&self, cx: &Shared, meta: &Meta, part: &Part) -> Result<(), Refusal> {
        let txn = meta.attempt.txn;
        let locks = &self.locks;
        work::add(part.reads.len() + part.ranges.len() + part.writes.len());
        if part.writes.iter().any(|(key, _)| locks.denies_exclusive(key, txn).is_some()) {
            return Err(Refusal::Locked);
        }
        let read_at = part.writes.iter().map(|(key, _)| self.timestamp_cache.of(key)).max().unwrap_or(Timestamp::ZERO);
        if read_at >= meta.at && !cx.rules.breaks(Planted::TimestampTooLowSkipped) && !part.writes.is_empty() {
            return Err(Refusal::TimestampTooLow(read_at));
        }
        if locks.has_lost(txn) && !cx.rules.breaks(Planted::SharedLockSkipped) {
            return Err(Refusal::LockLost);
        }
        let locked = |read: &crate::message::ReadCheck| locks.exclusive_holder(&read.key, Some(txn)).is_some();
        if !cx.rules.breaks(Planted::SharedLockSkipped) && part.reads.iter().any(locked) {
            return Err(Refusal::Locked);
        }
        let locked = |range: &crate::message::RangeCheck| locks.exclusive_holder_within(&range.range, Some(txn)).is_some();
        if !cx.rules.breaks(Planted::RangeLockSkipped) && part.ranges.iter().any(locked) {
            return Err(Refusal::Locked);
        }
        Ok(())
    }

    /// Drops the read locks of gateways that are gone, and of transactions that are over.
    fn drop_dead_locks(&mut self, cx: &Shared) {
        let dead = |txn: &TxnId| {
            let gateway: SiteId = txn.gateway;
            let over = txn.began < cx.peers.oldest(gateway);
            let gone = gateway != cx.me && !cx.peers.is_alive(gateway, cx.now, cx.config.locks_expire_after);
            (over || gone) && self.entry_of(*txn).is_none()
        };
        let dead: BTreeSet<TxnId> = self.locks.holders().inspect(|_| work::add(1)).filter(dead).collect();
        for txn in dead {
            self.release(txn);
        }
    }

    pub(crate) fn on_release(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        if self.entry_of(txn).is_none() {
            self.release(txn);
        } else {
            cx.fx.count("read.release_of_prepared");
        }
    }
}

impl Cohort {
    /// The attempt has aborted, or the region has voted no: lets go of its locks.
    pub(crate) fn unprepare(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        self.remove_entry(&attempt, &mut batch);
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
    }

    /// This region's coordinator will not commit the attempt by its own vote. A carried attempt keeps its locks.
    pub(crate) fn on_unprepare(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        if !self.is_carried(&attempt) {
            self.unprepare(attempt, cx);
        }
    }
}

impl Cohort {
    /// The coordinator of `region` has forgotten `attempt`: if that committed there, its log has it.
    pub(crate) fn on_forgotten(&mut self, attempt: Attempt, region: RegionId, cx: &mut Context<'_>) {
        if region == cx.me.region {
            self.bound.remove(&attempt);
        }
        if let Some(entry) = self.entries.get_mut(&attempt).filter(|entry| entry.as_carried().is_some()) {
            if region != cx.me.region {
                cx.request_stop(region, None);
            } else if let Stage::Carried(carried) = &mut entry.stage {
                carried.without.entry(region).or_default();
                self.drop_covered(attempt, cx);
            }
        } else if region == cx.me.region {
            // Its own coordinator would remember a commit until this cohort had applied it.
            self.unprepare(attempt, cx);
        }
    }
}

impl Cohort {
    pub(crate) fn recover_prepared(&mut self, cx: &Shared, record: PreparedRecord) {
        self.take_locks(cx, &record.meta, &record.part);
        self.highest = record.meta.at.max(self.highest);
        let attempt = record.meta.attempt;
        self.entries.insert(attempt, Entry::new(record.meta, record.part, Stage::Prepared, cx.now));
    }

    /// Takes the locks that [`check_locks`](Self::check_locks) found free: condition (1) of section 3.2.2.
    fn take_locks(&mut self, cx: &Shared, meta: &Meta, part: &Part) {
        let txn = meta.attempt.txn;
        if cx.rules.breaks(Planted::LocksWalked) {
            walk_locks(part);
        }
        if !cx.rules.breaks(Planted::SharedLockSkipped) {
            let strength = if cx.rules.breaks(Planted::PreparedTakenOver) { Strength::Reading } else { Strength::Prepared };
            for read in &part.reads {
                self.locks.share(&read.key, txn, strength);
            }
        }
        if !cx.rules.breaks(Planted::RangeLockSkipped) {
            for range in &part.ranges {
                self.locks.share_range(&range.range, txn, Strength::Prepared);
            }
        }
        for (key, _) in &part.writes {
            self.locks.exclude(key, txn);
        }
    }
}

#[cfg(test)]
mod tests;
