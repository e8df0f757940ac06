//! Doubts: attempts that may have committed and of which a region is not told, carried over into the next epoch.
//!
//! ```text
//!   new voter                     region in doubt about X           region that may know, when it is back
//!     │◀────────────────────────────┤ Stopped, in doubt about X       │
//!     │ X's locks, on disk                                            │
//!     │ AskVote X                   │                                 │
//!     ├────────────────────────────▶│────────────────────────────────▶│
//!     │◀────────────────────────────┤ firm yes    yes, no, Decided    │
//!     │◀──────────────────────────────────────────────────────────────┤
//!   the votes of X's electorate decide as ever; or its row comes with a log; or a region of it is declared lost: see `coordinator/resolving.rs`
//! ```
//!
//! A commit of an earlier epoch has the votes of a majority; one of those regions is among any majority that has stopped,
//! and either has applied it or is in doubt about it. If the others waited until nobody is in doubt, one region that is lost during an attempt could
//! stop them all, since its vote may be the one that decides. So a region that stops lists its attempts in doubt, and a region that settles carries
//! their locks: nobody reads or writes those rows before the outcome is known, and everything else goes on.
//!
//! A region that carries an attempt may find, from votes or from all regions that stopped, that none is prepared for it. Then the attempt has
//! aborted, unless it was taken over before it was carried; so the region looks for its rows first. If they are certainly not here, its coordinator
//! puts the abort on record, and the locks are released after that. If all of them are covered by later versions that are old enough, nobody here can
//! tell: the locks guard nothing any more and are released, and the region says nothing. Versions above the timestamp of what is carried are not
//! collected.
//!
//! Invariants: a carried attempt is on disk in the step in which its replica settles; it is let go of only once its outcome is known, its
//! transaction has another attempt, or nobody reads here what it wrote.

use super::{Carried, Cohort, Entry, Stage};
use crate::context::{Context, Local, Shared};
use crate::job::Job;
use crate::message::{Attempt, Meta, Note, Promise};
use crate::planted::Planted;
use crate::records::{self, CARRIED, PreparedRecord};
use crate::trace::Found;
use crate::views::{CohortView, NearCohort, Stop};
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::{Decision, Refusal, Vote};
use rhumb_core::actor::Token;
use rhumb_core::{Batch, Loaded, RegionId, record, work};
use std::collections::BTreeSet;
use std::ops::Bound;

impl Cohort {
    pub(super) fn doubts_after(&self, cx: &Shared, after: Option<Attempt>) -> impl Iterator<Item = &Entry> {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.entries.range((begin, Bound::Unbounded)).map(|(_, entry)| entry);
        entries.filter(|entry| entry.meta.epoch < cx.placement.epoch && entry.is_promised())
    }

    pub(crate) fn recover_carried(&mut self, cx: &Shared, PreparedRecord { meta, part }: PreparedRecord) {
        for (key, _) in &part.writes {
            self.locks.carry(key, meta.attempt.txn);
        }
        self.highest = meta.at.max(self.highest);
        let entry = Entry::new(meta, part, Stage::Carried(Carried::default()), cx.now);
        self.entries.insert(entry.meta.attempt, entry);
    }

    /// True if `attempt` is carried here.
    pub(crate) fn is_carried(&self, attempt: &Attempt) -> bool {
        self.entries.get(attempt).is_some_and(|entry| entry.as_carried().is_some())
    }
}

impl Cohort {
    /// No region is prepared for what is carried here, nor will its log bring it. So it has aborted, or else it was taken over before it
    /// was carried. True if its rows are not here; they are looked for if nobody has done so.
    pub(crate) fn are_rows_absent(&mut self, near: &NearCohort<'_>, attempt: Attempt, cx: &mut Context<'_>) -> bool {
        let dropped = self.dropped();
        let Some(Entry { meta, part, stage: Stage::Carried(carried), .. }) = self.entries.get_mut(&attempt) else { return false };
        if cx.has_copy() && !near.mover.has_rows() {
            return false; // they are being copied
        }
        carried.trace.look(meta, part, dropped, |load| cx.load(Job::RowsOfCarried(attempt), load));
        let found = carried.trace.found();
        if found == Some(Found::Committed) {
            self.send_committed(attempt, cx);
        }
        found == Some(Found::Absent) || (found.is_some() && cx.rules.breaks(Planted::CoveredIsAbsent))
    }
}

impl Cohort {
    /// Keeps the locks of what others are in doubt about, from now on and over restarts. Adds that to `batch`.
    pub(crate) fn carry(&mut self, doubts: impl Iterator<Item = PreparedRecord>, batch: &mut Batch, cx: &mut Context<'_>) {
        for doubt in doubts {
            let attempt = doubt.meta.attempt;
            let known = self.entries.get(&attempt).is_some_and(Entry::is_promised);
            // A later attempt is made only once the one before has certainly aborted.
            let superseded = self.entry_of(attempt.txn).is_some_and(|entry| entry.meta.attempt > attempt);
            if known || superseded || self.applied.contains(&attempt) {
                continue;
            }
            cx.fx.count("placement.doubt_carried");
            self.give_up_validation(&attempt, cx);
            if !cx.rules.breaks(Planted::DoubtsNotDurable) {
                batch.put_record(CARRIED, records::attempt_key(&attempt), record::encode(&doubt));
            }
            self.recover_carried(cx, doubt);
        }
    }

    /// An attempt that this region had only begun to look at: it votes in its epoch no more.
    fn give_up_validation(&mut self, attempt: &Attempt, cx: &mut Context<'_>) {
        if let Some(entry) = self.entries.remove(attempt) {
            self.release(attempt.txn);
            cx.refuse(&entry.meta, Refusal::StaleConfiguration);
        }
    }

    /// What a region that has stopped has not promised to commit still, it has in its log or will never vote for.
    pub(crate) fn hear_of_no_doubt(&mut self, near: &NearCohort<'_>, region: RegionId, stop: &Stop, cx: &mut Context<'_>) {
        let promised: BTreeSet<Attempt> =
            stop.doubts.iter().filter(|doubt| !doubt.carried).map(|doubt| doubt.record.meta.attempt).collect();
        work::add(stop.doubts.len() + self.entries.len());
        for (attempt, entry) in &mut self.entries {
            if let Stage::Carried(carried) = &mut entry.stage
                && entry.meta.electorate.contains(region)
                && stop.since <= entry.meta.epoch
                && !promised.contains(attempt)
            {
                carried.without.entry(region).or_insert(stop.log_end);
            }
        }
        self.count_carried(near, cx);
    }

    /// Regions whose logs may have what is carried here, and are not taken over that far.
    pub(crate) fn logs_of_carried(&self, near: &NearCohort<'_>) -> Regions {
        work::add(self.entries.len());
        let carried = self.entries.values().filter_map(Entry::as_carried);
        let without = carried.flat_map(|carried| &carried.without);
        without.filter(|(region, end)| near.catch_up.cursor(**region) < **end).map(|(region, _)| *region).collect()
    }

    /// Looks whether an outcome of what is carried is known by now.
    pub(crate) fn count_carried(&mut self, near: &NearCohort<'_>, cx: &mut Context<'_>) {
        work::add(self.entries.len());
        let carried: Vec<Attempt> =
            self.entries.iter().filter(|(_, entry)| entry.as_carried().is_some()).map(|(attempt, _)| *attempt).collect();
        for attempt in carried {
            self.count_as_cohort(near, attempt, cx);
        }
    }

    /// Applies an attempt, or lets go of it, if the votes that this cohort has heard decide it.
    pub(crate) fn count_as_cohort(&mut self, near: &NearCohort<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(entry) = self.entries.get(&attempt) else { return };
        let mut tally = entry.tally.clone();
        entry.meta.refuse_for_lost(&mut tally);
        for (region, end) in entry.as_carried().into_iter().flat_map(|carried| &carried.without) {
            if near.catch_up.cursor(*region) >= *end || *region == cx.me.region {
                tally.record_if_open(*region, Vote::No(Refusal::UnknownTransaction));
            }
        }
        let meta = entry.meta.clone();
        let by_votes = entry.tally.outcome(meta.electorate);
        let Some(decision) =
            tally.outcome(meta.electorate).and_then(|outcome| cx.decision(outcome, &tally, &meta, near.coordinator.lost_of(cx, &meta)))
        else {
            return;
        };
        if by_votes.is_none() && decision == Decision::Aborted && !self.are_rows_absent(near, attempt, cx) {
            return self.drop_covered(attempt, cx);
        }
        if meta.coordinator == cx.me.shard {
            cx.notify(Local::CohortDecides(meta, decision));
        } else {
            self.on_decided_as_cohort(&meta, decision, cx);
        }
    }

    /// The rows of what is carried were looked for.
    pub(crate) fn on_rows_of_carried(
        &mut self,
        near: &NearCohort<'_>,
        attempt: Attempt,
        token: Token,
        loaded: Loaded,
        cx: &mut Context<'_>,
    ) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        let dropped = self.dropped();
        let Some(Entry { meta, part, stage: Stage::Carried(carried), .. }) = self.entries.get_mut(&attempt) else { return };
        let coordinator = meta.coordinator_in(cx.me.region);
        match carried.trace.take(meta, part, dropped, token, &rows) {
            Some(Found::Committed) => {
                cx.fx.count("placement.carried_known");
                self.send_committed(attempt, cx);
            }
            Some(Found::Absent) if self.bound.contains_key(&attempt) => {
                // It may have been bound before it was carried.
                let votes = self.votes_heard(&attempt);
                cx.fx.persist(Batch::new()).send(coordinator, Promise::Bound { attempt, votes, lacks: true });
                self.count_as_cohort(near, attempt, cx);
            }
            _ => self.count_as_cohort(near, attempt, cx),
        }
    }

    /// True if `attempt` is carried, and its rows here do not tell how it ended.
    pub(crate) fn is_covered(&self, attempt: &Attempt) -> bool {
        let carried = self.entries.get(attempt).and_then(Entry::as_carried);
        carried.is_some_and(|carried| carried.trace.found() == Some(Found::Covered))
    }

    /// Drops `attempt` if its rows here do not tell how it ended: its locks guard nothing that anybody reads.
    pub(crate) fn drop_covered(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        if self.is_covered(&attempt) {
            self.on_covered(attempt, cx);
        }
    }

    /// The rows here of `attempt`, if it is carried, do not tell how it ended.
    pub(crate) fn on_covered(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        if self.is_carried(&attempt) {
            cx.fx.count("placement.carried_covered");
            self.unprepare(attempt, cx);
        }
    }

    /// Where this region holds no copy, nobody reads what the locks of what it carries guard: drops it once no region is left that has said nothing
    /// of it.
    fn drop_without_copy(&mut self, cx: &mut Context<'_>) {
        if cx.has_copy() {
            return;
        }
        work::add(self.entries.len());
        let is_over = |entry: &&Entry| {
            let Some(carried) = entry.as_carried() else { return false };
            let said: Regions = carried.without.keys().copied().chain(entry.tally.final_votes().map(|(region, _)| region)).collect();
            entry.meta.electorate.without(said.or(cx.declared_lost(&entry.meta))).is_empty()
        };
        let over: Vec<Attempt> = self.entries.values().filter(is_over).map(|entry| entry.meta.attempt).collect();
        for attempt in over {
            cx.fx.count("placement.carried_without_copy");
            self.unprepare(attempt, cx);
        }
    }

    /// The rows of what is carried show that it committed: tells its coordinator, which has it applied.
    fn send_committed(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(Entry { meta, .. }) = self.entries.get(&attempt) else { return };
        let decision = Decision::Committed { floor: self.highest_applied.max(meta.at) };
        cx.send(meta.coordinator_in(cx.me.region), Note::Decided { meta: meta.clone(), decision });
    }

    /// Asks all regions that can still say for the votes on what is carried.
    pub(crate) fn carried_tick(&mut self, near: &NearCohort<'_>, cx: &mut Context<'_>) {
        let carried = self.entries.values().filter(|entry| entry.as_carried().is_some());
        let metas: Vec<Meta> = carried.map(|entry| entry.meta.clone()).collect();
        for meta in &metas {
            cx.request_votes(meta);
            if meta.coordinator == cx.me.shard {
                cx.notify(Local::CarriedHere(meta.clone()));
            }
        }
        if !metas.is_empty() {
            self.count_carried(near, cx);
            self.drop_without_copy(cx);
        }
    }

    /// All rows were copied from a replica that is in doubt about `doubts` only: what else this one was prepared for, of epochs before `epoch`, has
    /// its outcome among them, whatever that is. Lets go of it by `batch`; returns the last epoch in which it was prepared for such a one.
    pub(crate) fn drop_doubts_but(
        &mut self,
        doubts: &BTreeSet<Attempt>,
        epoch: u64,
        batch: &mut Batch,
        cx: &mut Context<'_>,
    ) -> Option<u64> {
        let is_old = |entry: &&Entry| entry.is_promised() && entry.meta.epoch < epoch && !doubts.contains(&entry.meta.attempt);
        let gone: Vec<Attempt> = self.entries.values().filter(is_old).map(|entry| entry.meta.attempt).collect();
        let mut prepared_in = None;
        for attempt in gone {
            cx.fx.count("placement.doubt_copied");
            if let Some(entry) = self.remove_entry(&attempt, batch).filter(|entry| matches!(entry.stage, Stage::Prepared)) {
                prepared_in = prepared_in.max(Some(entry.meta.epoch));
            }
        }
        prepared_in
    }
}
