//! Examining: what a survivor looks at before it accepts that an attempt is to be committed by assumption.
//!
//! ```text
//!   leader                               survivor
//!     ├── Propose (commit, contents) ──────▶│ has the attempt read the newest versions below its timestamp?
//!     │                                     │ is another attempt in its way?
//!     │◀──────────── Accepted, or Contested ┤ nothing, while one in its way is not over: the leader asks again
//! ```
//!
//! A region that is lost may have refused the attempt, for a reason that the survivors can see as well: it had read what was overwritten, or
//! another attempt had its locks.
//!
//! What it had read is compared with the versions below its timestamp. They are kept from when this region first hears that somebody is in doubt about
//! it. If that is longer after the votes than versions are kept, some are missing, and the region bars it only for what it finds.
//!
//! Invariant: what is put here while rows are being looked up is seen, too.

use super::Coordinator;
use crate::config::PAGE_BYTES_MAX;
use crate::context::{Context, Shared};
use crate::job::Job;
use crate::lookup::{Page, RangeLookup};
use crate::message::{Attempt, Collected, Meta, Note, Part, Promise, RangeCheck};
use crate::planted::Planted;
use crate::resolution::Round;
use crate::views::NearCoordinator;
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::Decision;
use rhumb_core::actor::Token;
use rhumb_core::{Batch, Key, Load, Loaded, SiteId, Table, Timestamp, work};
use std::collections::BTreeMap;

/// What the leader of a round proposes.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub(crate) meta: Meta,
    pub(crate) round: Round,
    pub(crate) decision: Decision,
}

/// A proposal whose reads are being looked up, at a survivor.
#[derive(Clone, Debug)]
pub(crate) struct Examination {
    from: SiteId,
    proposal: Proposal,
    contents: Part,
    /// How many of the rows that it had read have been looked up.
    keys: usize,
    /// The ranges that are still to be read, after these.
    ranges: RangeLookup,
    /// The load whose rows are awaited. Those of an examination in an earlier round may still come.
    awaited: Option<Token>,
    /// A version was put meanwhile that the loads may have missed.
    is_stale: bool,
}

impl Examination {
    /// A version of `key` is put at `at`.
    fn see(&mut self, key: &Key, at: Timestamp) {
        let is_newer = |version: Timestamp| version < at && at < self.proposal.meta.at;
        let in_range = |check: &RangeCheck| {
            let read =
                check.rows.binary_search_by(|known| known.key.cmp(key)).map_or(Timestamp::ZERO, |index| check.rows[index].seen.version);
            check.range.contains(key) && is_newer(read)
        };
        self.is_stale |= self.contents.reads.iter().any(|read| read.key == *key && is_newer(read.seen.version));
        self.is_stale |= self.contents.ranges.iter().any(in_range);
    }
}

/// The examinations under way at a survivor, one of an attempt at the most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Examinations(BTreeMap<Attempt, Examination>);

impl Examinations {
    /// A version of `key` is put at `at`.
    pub(crate) fn see(&mut self, key: &Key, at: Timestamp) {
        self.0.values_mut().for_each(|examination| examination.see(key, at));
    }

    /// Lists its tables.
    pub(crate) fn tables(&self, attempts: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("examinations", self.0.len(), attempts));
    }
}

/// What another attempt in its way is to one that is to be committed by assumption.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stance {
    /// It has aborted.
    Gone,
    /// It comes first, or its outcome is known here, or will be by votes: it is waited for.
    Ending,
    /// It counts as committed, or may.
    Bars,
    /// It comes later, and must not be committed by assumption any more.
    Yields,
}

/// What other attempts leave to one that is to be committed by assumption.
enum Way {
    /// None is in its way that may commit.
    Free,
    /// One may.
    Barred,
    /// One is not over yet.
    Open,
}

impl Coordinator {
    /// A leader proposes; where that is a commit by assumption, with what the attempt reads and writes in the coordinators' shard.
    pub(crate) fn on_propose(
        &mut self,
        near: &NearCoordinator<'_>,
        from: SiteId,
        proposal: Proposal,
        contents: Option<Part>,
        cx: &mut Context<'_>,
    ) {
        let Proposal { meta, round, decision } = proposal;
        let (attempt, region) = (meta.attempt, cx.me.region);
        if meta.coordinator != cx.me.shard {
            return;
        }
        self.look_up(near, &meta, cx);
        let state = self.attempts.get_mut(&attempt).expect("just looked up");
        if state.decision().is_some_and(|known| known.outcome() != decision.outcome()) {
            cx.fx.persist(Batch::new()).send(from, Promise::Contested { attempt, region, round });
            return;
        }
        if let Err(promised) = state.acceptor.promise(round, Regions::NONE) {
            return cx.send(from, Note::Outranked { attempt, promised });
        }
        let proposal = Proposal { meta, round, decision };
        // No need to look if the commit is known.
        let Some(contents) = contents.filter(|_| state.decision().is_none()) else {
            return self.accept_proposal(from, &proposal, cx);
        };
        state.contents = Some(contents.clone());
        self.assumed.insert(attempt);
        if self.examinations.0.get(&attempt).is_some_and(|known| known.proposal.round == round) {
            return;
        }
        let (ranges, awaited) = (RangeLookup::default(), None);
        let examination = Examination { from, proposal, contents, keys: 0, ranges, awaited, is_stale: false };
        self.examinations.0.insert(attempt, examination);
        self.examine(near, attempt, cx);
    }

    /// Checks that an attempt which is to be committed by assumption had read the newest versions below its timestamp. If it had not, a region that
    /// refused it, even a lost one, was right.
    fn examine(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(examination) = self.examinations.0.get_mut(&attempt) else { return };
        let at = examination.proposal.meta.at.previous();
        let contents = &examination.contents;
        let keys = &contents.reads[examination.keys..];
        let load = if !keys.is_empty() {
            Load::Get { keys: keys.iter().map(|read| read.key.clone()).collect(), at, bytes: PAGE_BYTES_MAX }
        } else if let Some(Page { range, limit }) = examination.ranges.page(contents) {
            Load::Scan { range, at, limit, bytes: PAGE_BYTES_MAX, reverse: false }
        } else {
            return self.end_examination(near, attempt, cx);
        };
        examination.awaited = Some(cx.load(Job::Examine(attempt), load));
    }

    /// The rows that the attempt had read are loaded.
    pub(crate) fn on_examined(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        work::add(rows.len());
        let examination = self.examinations.0.get_mut(&attempt).filter(|examination| examination.awaited == Some(token));
        let Some(examination) = examination else { return };
        let contents = &examination.contents;
        let dropped = near.cohort.dropped();
        // What is missing proves nothing to who begins to look long after the votes: it may have been superseded or deleted, and that collected, after
        // the attempt committed.
        let is_late = examination.proposal.meta.at <= dropped.versions;
        if is_late {
            cx.fx.count("commit.resolution_late");
        }
        let here = if is_late { Timestamp::ZERO } else { dropped.deletions };
        let keys = &contents.reads[examination.keys..];
        if keys.is_empty() {
            examination.is_stale |= examination.ranges.take(contents, &rows, more, here).is_err();
        } else {
            let collected = Collected { where_read: contents.collected, here };
            examination.is_stale |= keys.iter().zip(&rows).any(|(read, row)| read.seen.is_stale(row.version, collected));
            examination.keys += rows.len();
        }
        if examination.is_stale {
            return self.end_examination(near, attempt, cx);
        }
        self.examine(near, attempt, cx);
    }

    fn end_examination(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(Examination { from, proposal, contents, is_stale, .. }) = self.examinations.0.remove(&attempt) else { return };
        if self.attempts.get(&attempt).is_none_or(|state| state.decision().is_some()) {
            return; // heard meanwhile: the leader asks again, and is told
        }
        let is_stale = is_stale && !cx.rules.breaks(Planted::StaleUnseen);
        if is_stale {
            cx.fx.count("commit.resolution_stale");
            return self.contest(from, &proposal, cx);
        }
        let mut batch = Batch::new();
        match self.make_way(near, cx, attempt, &contents, &mut batch) {
            Way::Free => self.accept_proposal(from, &proposal, cx),
            Way::Barred => self.contest(from, &proposal, cx),
            Way::Open => {
                cx.fx.count("commit.resolution_waits");
                if !batch.ops.is_empty() {
                    cx.fx.persist(batch);
                }
            }
        }
    }

    fn accept_proposal(&mut self, from: SiteId, proposal: &Proposal, cx: &mut Context<'_>) {
        let (attempt, region, round) = (proposal.meta.attempt, cx.me.region, proposal.round);
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        if state.decision().is_some_and(|known| known.outcome() != proposal.decision.outcome()) {
            return; // heard meanwhile: the leader asks again, and is told
        }
        if state.acceptor.accept(round, proposal.decision).is_ok() {
            let mut batch = Batch::new();
            state.put_record(&mut batch);
            cx.fx.persist(batch).send(from, Promise::Accepted { attempt, region, round });
        }
    }

    /// Reports that the attempt must never be committed by assumption.
    fn contest(&mut self, from: SiteId, proposal: &Proposal, cx: &mut Context<'_>) {
        let (attempt, region, round) = (proposal.meta.attempt, cx.me.region, proposal.round);
        let Some(state) = self.attempts.get_mut(&attempt).filter(|state| state.decision().is_none()) else { return };
        cx.fx.count("commit.resolution_contested");
        let mut batch = Batch::new();
        state.contest(&mut batch);
        cx.fx.persist(batch).send(from, Promise::Contested { attempt, region, round });
    }

    /// Whether the attempt, which reads and writes `contents` in this shard, may be committed by assumption. It may not if it is contested, or if
    /// this region is prepared for a conflicting attempt that may have been committed in the same way. It waits for earlier ones, which may abort,
    /// and for those whose outcome is known: once they have ended, versions tell. Adds to `batch` that later ones are contested from now on.
    ///
    /// The earlier one never waits for the later one without contesting it, so no two wait for each other. The leader asks again until all of them
    /// have ended.
    fn make_way(&mut self, near: &NearCoordinator<'_>, cx: &Shared, attempt: Attempt, contents: &Part, batch: &mut Batch) -> Way {
        if cx.rules.breaks(Planted::RivalsBothCommit) {
            return Way::Free;
        }
        let state = &self.attempts[&attempt];
        // A placement in force has committed.
        let in_force = contents.placement().is_some_and(|next| next.epoch <= cx.placement.epoch && next != cx.placement);
        if state.acceptor.is_contested() || in_force {
            return Way::Barred;
        }
        let at = state.meta.at;
        let rivals = near.cohort.promised().filter(|entry| entry.meta.coordinator == cx.me.shard);
        let rivals = rivals.filter(|entry| entry.meta.attempt != attempt && entry.part.conflicts(contents));
        let stances: Vec<(Attempt, Stance)> = rivals
            .map(|entry| {
                // That it had not seen what this one writes is known only as long as it is prepared.
                let is_unread = at < entry.meta.at && entry.part.has_read_from(contents);
                (entry.meta.attempt, self.stance(attempt, entry.meta.attempt, is_unread))
            })
            .collect();
        let takes = |stance| stances.iter().any(|(_, taken)| *taken == stance);
        if takes(Stance::Ending) {
            return Way::Open;
        }
        if takes(Stance::Bars) {
            return Way::Barred;
        }
        if !takes(Stance::Yields) {
            return Way::Free;
        }
        for (rival, _) in stances.iter().filter(|(_, stance)| *stance == Stance::Yields) {
            let state = self.attempts.get_mut(rival).expect("it is under resolution");
            if !state.acceptor.is_contested() {
                state.contest(batch);
            }
        }
        Way::Open
    }

    /// What `rival` is to `attempt`, which is to be committed by assumption. The rival may have read, at a higher timestamp, what that writes, if it
    /// `is_unread`.
    fn stance(&self, attempt: Attempt, rival: Attempt, is_unread: bool) -> Stance {
        let is_earlier = rival < attempt;
        // A carried attempt has no state as long as nobody resolves it.
        let Some(state) = self.attempts.get(&rival) else { return Stance::Ending };
        let accepted = state.acceptor.accepted().map(|(_, decision)| decision.is_commit());
        match (state.decision(), accepted) {
            (Some(Decision::Aborted), _) => Stance::Gone,
            (Some(Decision::Committed { .. }), _) if is_unread => Stance::Bars,
            (Some(Decision::Committed { .. }), _) => Stance::Ending,
            (None, _) if state.is_in_doubt() && !state.acceptor.is_bound() => Stance::Ending,
            (None, _) if is_earlier && is_unread => Stance::Bars,
            (None, _) if is_earlier => Stance::Ending,
            (None, Some(true)) => Stance::Bars,
            (None, _) => Stance::Yields,
        }
    }
}
