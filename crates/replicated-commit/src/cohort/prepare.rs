//! Prepares attempts: checks what they have read, promises, and applies what has committed.
//!
//! Source: section 3.2.2, Algorithm 1, line 5, conditions (2) and (3), and lines 9 to 12.

use super::entry::{Entry, Stage, Validation};
use super::{Applied, Cohort, PreparedHere};
use crate::config::PAGE_BYTES_MAX;
use crate::context::{Context, Shared};
use crate::job::Job;
use crate::lookup::{Page, RangeLookup};
use crate::message::{ATTEMPT, Attempt, Collected, Meta, Note, Part, Promise, Voted};
use crate::planted::Planted;
use crate::records::{self, LOG, LogRecord, Number, PREPARED, PreparedRecord};
use crate::views::NearCohort;
use rhumb_commit::votes::{Decision, Refusal};
use rhumb_core::actor::Token;
use rhumb_core::{Batch, Load, Loaded, Row, SiteId, Span, Timestamp, record, work};

impl Cohort {
    /// Releases, after recovery, attempts for which this site is prepared as cohort but on which, as coordinator, it did not vote, voted no, or knows
    /// an abort: the site crashed between two writes, and no message about them will come.
    pub(crate) fn drop_orphans(&mut self, near: &NearCohort<'_>, cx: &mut Context<'_>) {
        let orphaned = |entry: &Entry| {
            let own = matches!(entry.stage, Stage::Prepared) && entry.meta.coordinator == cx.me.shard;
            own && !near.coordinator.may_commit(&entry.meta.attempt)
        };
        let orphans: Vec<Attempt> = self.entries.values().filter(|entry| orphaned(entry)).map(|entry| entry.meta.attempt).collect();
        for attempt in orphans {
            cx.fx.count("commit.recovered_orphan");
            self.unprepare(attempt, cx);
        }
    }

    /// The coordinator of this region asks to prepare.
    pub(crate) fn on_prepare(&mut self, near: &NearCohort<'_>, meta: Meta, part: Part, cx: &mut Context<'_>) -> Option<PreparedHere> {
        cx.clock.observe(meta.at);
        let attempt = meta.attempt;
        if let Some(entry) = self.entries.get(&attempt) {
            return matches!(entry.stage, Stage::Prepared).then(|| self.send_prepared(&meta, &entry.part, Batch::new(), cx)).flatten();
        }
        if self.applied.contains(&attempt) || attempt.made <= near.coordinator.forget_floor(cx) {
            return None; // a Prepare that was long under way; whoever still waits for an answer votes no in time
        }
        if let Some(other) = self.entry_of(attempt.txn).map(|entry| entry.meta.attempt) {
            if other > attempt {
                cx.refuse(&meta, Refusal::Superseded);
                return None;
            }
            self.unprepare(other, cx); // certainly aborted, or there would be no later attempt
        }
        if meta.epoch != cx.placement.epoch || !near.mover.is_settled(cx) {
            cx.refuse(&meta, Refusal::StaleConfiguration);
            return None;
        }
        if let Err(refusal) = near.catch_up.check_placement(cx, &part).and_then(|()| self.check_locks(cx, &meta, &part)) {
            cx.refuse(&meta, refusal);
            return None;
        }
        let validation = self.plan_validation(cx, &part);
        self.take_locks(cx, &meta, &part);
        self.entries.insert(attempt, Entry::new(meta, part, Stage::Validating(validation), cx.now));
        self.validate_next(attempt, cx)
    }

    /// What must be looked up: the newest versions of all that is written and of all that was read. That a lock taken at
    /// the read is still held proves nothing: it may have been lost, in a restart say, and granted again to a message
    /// that the network held back.
    pub(super) fn plan_validation(&self, cx: &Shared, part: &Part) -> Validation {
        let written = part.writes.iter().map(|(key, _)| key.clone());
        let read = part.reads.iter().map(|read| read.key.clone());
        let keys = if cx.rules.breaks(Planted::SharedLockSkipped) { written.collect() } else { written.chain(read).collect() };
        Validation { keys, ranges: RangeLookup::default(), awaited: None }
    }

    /// Asks for the next rows that must be looked up, or is done.
    pub(super) fn validate_next(&mut self, attempt: Attempt, cx: &mut Context<'_>) -> Option<PreparedHere> {
        let entry = self.entries.get_mut(&attempt).expect("the entry is being validated");
        let Stage::Validating(validation) = &mut entry.stage else { unreachable!("validated once") };
        let page = validation.ranges.page(&entry.part).filter(|_| !cx.rules.breaks(Planted::RangeLockSkipped));
        let load = if !validation.keys.is_empty() {
            Load::Stamps { keys: validation.keys.clone() }
        } else if let Some(Page { range, limit }) = page {
            Load::ScanStamps { range, limit, bytes: PAGE_BYTES_MAX }
        } else {
            return self.promise(attempt, cx);
        };
        validation.awaited = Some(cx.load(Job::Validate(attempt), load));
        None
    }

    pub(crate) fn on_validation(&mut self, attempt: Attempt, token: Token, loaded: Loaded, cx: &mut Context<'_>) -> Option<PreparedHere> {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        work::add(rows.len());
        let timestamps_checked = !cx.rules.breaks(Planted::TimestampTooLowSkipped);
        let entry = self.entries.get_mut(&attempt)?; // else it was given up meanwhile
        let Stage::Validating(validation) = &mut entry.stage else { return None };
        if validation.awaited != Some(token) {
            return None;
        }
        let collected = if cx.rules.breaks(Planted::DeletionsForgotten) { Timestamp::ZERO } else { self.collected };
        let verdict = if validation.keys.is_empty() {
            validation.ranges.take(&entry.part, &rows, more, collected)
        } else {
            validation.keys.clear();
            check_rows(&entry.meta, &entry.part, &rows, Checks { collected, timestamps: timestamps_checked })
        };
        let meta = entry.meta.clone();
        // This region may have stopped meanwhile.
        let verdict = if meta.epoch < cx.placement.epoch { Err(Refusal::StaleConfiguration) } else { verdict };
        match verdict {
            Ok(()) => self.validate_next(attempt, cx),
            Err(refusal) => {
                self.entries.remove(&attempt);
                self.release(attempt.txn);
                cx.refuse(&meta, refusal);
                None
            }
        }
    }

    /// The number of attempts prepared here, or carried.
    pub(crate) fn prepared(&self) -> usize {
        self.entries.values().filter(|entry| entry.is_promised()).count()
    }

    /// All locks are held and all that was read is current: the promise goes to disk.
    pub(super) fn promise(&mut self, attempt: Attempt, cx: &mut Context<'_>) -> Option<PreparedHere> {
        let entry = self.entries.get_mut(&attempt).expect("the entry was just validated");
        entry.stage = Stage::Prepared;
        let meta = entry.meta.clone();
        for read in &entry.part.reads {
            self.timestamp_cache.raise(&read.key, meta.at);
        }
        for range in &entry.part.ranges {
            self.timestamp_cache.raise_range(&range.range, meta.at);
        }
        self.highest = meta.at.max(self.highest);
        let mut batch = Batch::new();
        if !in_one_phase(cx, &entry.part) {
            let record = PreparedRecord { meta: meta.clone(), part: entry.part.clone() };
            batch.put_record(PREPARED, records::attempt_key(&attempt), record::encode(&record));
        }
        cx.cover(&mut batch, meta.at);
        let entry = &self.entries[&attempt];
        self.send_prepared(&meta, &entry.part, batch, cx)
    }

    /// Tells the coordinator, once `batch` is on disk; or returns that for the coordinator of this very site, which has nobody else to ask.
    pub(super) fn send_prepared(&self, meta: &Meta, part: &Part, batch: Batch, cx: &mut Context<'_>) -> Option<PreparedHere> {
        if meta.participants == [cx.me.shard] {
            return Some(PreparedHere { attempt: meta.attempt, batch, in_one_phase: in_one_phase(cx, part) });
        }
        let SiteId { region, shard } = cx.me;
        cx.fx.persist(batch).send(meta.coordinator_in(region), Promise::Prepared { attempt: meta.attempt, shard });
        None
    }

    /// A cohort whose coordinator is another site, or of another region, may work the outcome out by itself.
    pub(crate) fn on_vote_as_cohort(&mut self, near: &NearCohort<'_>, voted: &Voted, cx: &mut Context<'_>) {
        let Voted { meta, region, vote, high } = voted;
        let region = *region;
        let carried = self.is_carried(&meta.attempt);
        if meta.coordinator == cx.me.shard && !carried {
            return; // the coordinator of this very site sees to it
        }
        if region == cx.me.region && !vote.is_yes() && !carried {
            return self.unprepare(meta.attempt, cx);
        }
        let Some(entry) = self.entries.get_mut(&meta.attempt) else { return };
        entry.tally.record(region, vote.clone(), cx.rules);
        entry.tally.hear_high(voted.coordinator(), *high);
        self.count_as_cohort(near, meta.attempt, cx);
    }

    /// The outcome, which this cohort has concluded from votes, or received because it asked while its coordinator was silent. It leaves the outcome
    /// to the coordinator, which may be bound to another one: if each acted alone, half a transaction could commit.
    pub(crate) fn on_decided_as_cohort(&mut self, meta: &Meta, decision: Decision, cx: &mut Context<'_>) {
        let coordinator = meta.coordinator_in(cx.me.region);
        let waits = self.entries.contains_key(&meta.attempt) || self.bound.contains_key(&meta.attempt);
        if waits && coordinator != cx.me {
            cx.fx.send(coordinator, Note::Decided { meta: meta.clone(), decision });
        }
    }

    /// The gateway decides no more: ask the regions from now on.
    pub(crate) fn on_over_as_cohort(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        if let Some(entry) = self.entries.get_mut(&attempt)
            && !entry.over
            && matches!(entry.stage, Stage::Prepared)
            && entry.meta.coordinator != cx.me.shard
        {
            entry.over = true;
            let meta = entry.meta.clone();
            cx.request_votes(&meta);
        }
    }

    pub(crate) fn cohort_tick(&mut self, near: &NearCohort<'_>, cx: &mut Context<'_>) {
        work::add(self.entries.len());
        let resting = self.resting(near, cx);
        let overdue = |entry: &Entry| {
            let remote = entry.meta.coordinator != cx.me.shard && entry.as_carried().is_none();
            let age = cx.now.since(entry.since);
            let asks = remote && entry.meta.attempt.made > resting && age >= cx.config.ask_after;
            asks.then(|| (entry.meta.clone(), entry.over, age))
        };
        let asks: Vec<(Meta, bool, Span)> = self.entries.values().filter_map(overdue).collect();
        for (meta, over, age) in asks {
            let gateway = meta.attempt.txn.gateway;
            if cx.is_past_asking(gateway, over, age) {
                cx.request_votes(&meta);
            } else {
                cx.send(gateway, Note::AskGateway { meta });
            }
        }
        work::add(self.bound.len());
        for meta in self.bound.values() {
            cx.fx.send(meta.coordinator_in(cx.me.region), Note::AskVote { meta: meta.clone() });
        }
        self.carried_tick(near, cx);
        let floor = near.coordinator.forget_floor(cx);
        let begun_by_then = self.applied.range(..=Attempt::last_begun(floor));
        let old: Vec<Attempt> = begun_by_then.filter(|attempt| attempt.made <= floor).copied().collect();
        work::add(old.len());
        for attempt in old {
            self.applied.remove(&attempt);
        }
        self.drop_old_reads(cx.now.minus(cx.config.read_timeout));
        if cx.rules.breaks(Planted::DeadLocksKept) {
            return;
        }
        self.drop_dead_locks(cx);
    }

    /// Nobody here waits for the outcomes of attempts made at or below it: where there is no copy, a copy brings what the others have forgotten.
    pub(crate) fn resting(&self, near: &NearCohort<'_>, cx: &Shared) -> Timestamp {
        if cx.has_copy() { Timestamp::ZERO } else { near.coordinator.forget_floor(cx) }
    }
}

impl Cohort {
    /// The attempt, just prepared, commits once `batch` is on disk: adds its rows to that. Its locks are kept until then. Returns its floor.
    pub(crate) fn commit_in_one_phase(&mut self, attempt: Attempt, batch: &mut Batch) -> Timestamp {
        let mut entry = self.entries.remove(&attempt).expect("it was just prepared");
        entry.stage = Stage::Committing;
        self.committing += 1;
        let floor = self.highest;
        self.put_commit(&entry.meta, &entry.part, floor, batch);
        self.keep_floor(entry.meta.at, floor, batch);
        self.entries.insert(attempt, entry);
        floor
    }

    /// Adds the rows of a commit to `batch`, and its place in the log.
    fn put_commit(&mut self, meta: &Meta, part: &Part, floor: Timestamp, batch: &mut Batch) {
        for (key, value) in part.writes.iter().filter(|_| meta.at > self.collected) {
            batch.put_version(key.clone(), meta.at, value.clone());
        }
        self.log_end += 1;
        let keys = part.writes.iter().map(|(key, _)| key.clone()).collect();
        let record = LogRecord { attempt: meta.attempt, at: meta.at, floor, keys, meta: meta.of_several_shards() };
        batch.put_record(LOG, self.log_end.to_be_bytes().to_vec(), record::encode(&record));
        Number::LogEnd.put(batch, self.log_end);
    }

    /// The attempt has committed: applies it, from what was prepared or from `part`; versions of which deletions are collected are not put any more.
    /// None if it was applied before, in this incarnation or in an earlier one whose record is gone with it.
    pub(crate) fn apply(&mut self, meta: &Meta, part: Option<Part>, floor: Timestamp, cx: &mut Context<'_>) -> Option<Applied> {
        let attempt = meta.attempt;
        self.bound.remove(&attempt);
        let mut resolved = Batch::new();
        let known = self.applied.contains(&attempt);
        let entry = self.remove_entry(&attempt, &mut resolved);
        let is_put = entry.as_ref().is_some_and(|entry| matches!(entry.stage, Stage::Committing));
        let Some(part) = entry.map(|entry| entry.part).or(part.filter(|_| !known)) else {
            cx.fx.count(if known { "commit.applied_again" } else { "commit.applied_earlier" });
            return None;
        };
        cx.fx.agree(ATTEMPT, attempt, &Some(meta.at));
        let mut batch = Batch::new();
        for (key, _) in part.writes.iter().filter(|_| meta.at > self.collected) {
            self.locks.take_over(key, Some(attempt.txn));
        }
        if !is_put {
            self.put_commit(meta, &part, floor, &mut batch);
        }
        batch.ops.append(&mut resolved.ops);
        self.applied.insert(attempt);
        self.keep_floor(meta.at, floor, &mut batch);
        Some(Applied { part, batch })
    }
}

/// True if an attempt commits by the vote of this site alone. One that says which placement comes next is applied in a step of its own, in which
/// that is adopted.
fn in_one_phase(cx: &Shared, part: &Part) -> bool {
    cx.is_alone() && part.placement().is_none()
}

/// What rows are held against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checks {
    /// Deletions up to here may be gone.
    pub(super) collected: Timestamp,
    /// Whether the commit timestamp is compared.
    pub(super) timestamps: bool,
}

/// Are the rows written below the timestamp proposed, and the rows read not above the versions read?
pub(super) fn check_rows(meta: &Meta, part: &Part, newest: &[Row], checks: Checks) -> Result<(), Refusal> {
    let (written, read) = newest.split_at(part.writes.len());
    let mut reads = part.reads.iter();
    let collected = Collected { where_read: part.collected, here: checks.collected };
    for row in read {
        let check = reads.find(|check| check.key == row.key).expect("rows come back in the order asked");
        if check.seen.is_stale(row.version, collected) {
            return Err(Refusal::Stale);
        }
    }
    match written.iter().map(|row| row.version).max() {
        Some(version) if version >= meta.at && checks.timestamps => Err(Refusal::TimestampTooLow(version)),
        _ => Ok(()),
    }
}
