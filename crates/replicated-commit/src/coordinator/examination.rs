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
//! Invariant: what is put here while rows are being looked up is seen, too.

use super::Coordinator;
use crate::cohort::check_range;
use crate::context::{Context, Shared};
use crate::job::Job;
use crate::message::{Attempt, Meta, Note, Part, Promise, RangeCheck};
use crate::planted::Planted;
use crate::resolution::Round;
use crate::views::NearCoordinator;
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::Decision;
use rhumb_core::actor::Token;
use rhumb_core::{Batch, Key, Load, Loaded, SiteId, Table, Timestamp, work};
use std::collections::{BTreeMap, VecDeque};

/// What is missing proves nothing to who looks long after the votes: it may have been deleted, and that collected, after the attempt committed.
const NONE_COLLECTED: Timestamp = Timestamp::ZERO;

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
    /// The ranges, as indices into the contents, that are still to be read, in order, and the one whose rows are awaited.
    ranges: VecDeque<usize>,
    current: Option<usize>,
    /// The load whose rows are awaited. Those of an examination in an earlier round may still come.
    awaited: Option<Token>,
    keys_are_known: bool,
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
        let ranges = (0..contents.ranges.len()).collect();
        let (current, awaited) = (None, None);
        let examination = Examination { from, proposal, contents, ranges, current, awaited, keys_are_known: false, is_stale: false };
        self.examinations.0.insert(attempt, examination);
        self.examine(near, attempt, cx);
    }

    /// Checks that an attempt which is to be committed by assumption had read the newest versions below its timestamp. If it had not, a region that
    /// refused it, even a lost one, was right.
    fn examine(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(examination) = self.examinations.0.get_mut(&attempt) else { return };
        let at = examination.proposal.meta.at.previous();
        let contents = &examination.contents;
        let load = if !examination.keys_are_known && !contents.reads.is_empty() {
            Load::Get { keys: contents.reads.iter().map(|read| read.key.clone()).collect(), at, bytes: usize::MAX }
        } else if let Some(index) = examination.ranges.pop_front() {
            examination.current = Some(index);
            let check = &contents.ranges[index];
            Load::Scan { range: check.range.clone(), at, limit: check.rows.len() + 1, bytes: usize::MAX, reverse: false }
        } else {
            return self.end_examination(near, attempt, cx);
        };
        examination.awaited = Some(cx.load(Job::Examine(attempt), load));
    }

    /// The rows that the attempt had read are loaded.
    pub(crate) fn on_examined(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        work::add(rows.len());
        let examination = self.examinations.0.get_mut(&attempt).filter(|examination| examination.awaited == Some(token));
        let Some(examination) = examination else { return };
        let contents = &examination.contents;
        examination.is_stale |= match examination.current {
            Some(index) => check_range(&contents.ranges[index].rows, &rows, NONE_COLLECTED).is_err(),
            None => contents.reads.iter().zip(&rows).any(|(read, row)| read.seen.is_stale(row.version, NONE_COLLECTED)),
        };
        examination.keys_are_known = true;
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
    /// this region is prepared for an earlier conflicting attempt that may commit in the same way. Adds to `batch` that later conflicting ones are
    /// contested from now on. The leader asks again until all of them have ended.
    fn make_way(&mut self, near: &NearCoordinator<'_>, cx: &Shared, attempt: Attempt, contents: &Part, batch: &mut Batch) -> Way {
        if cx.rules.breaks(Planted::RivalsBothCommit) {
            return Way::Free;
        }
        let rivals = near.cohort.promised().filter(|entry| entry.meta.coordinator == cx.me.shard);
        let rivals = rivals.filter(|entry| entry.meta.attempt != attempt && entry.part.conflicts(contents));
        let rivals: Vec<Attempt> = rivals.map(|entry| entry.meta.attempt).collect();
        let attempts = &mut self.attempts;
        let has_priority = |rival: &Attempt| {
            let state = attempts.get(rival);
            let accepted = state.and_then(|state| state.decision().or(state.acceptor.accepted().map(|(_, decision)| decision)));
            accepted.map_or(*rival < attempt, Decision::is_commit)
        };
        let is_open = |rival: &Attempt| attempts.get(rival).is_some_and(|state| state.is_in_doubt() && !state.acceptor.is_bound());
        if attempts[&attempt].acceptor.is_contested() {
            return Way::Barred;
        }
        if rivals.iter().any(is_open) {
            return Way::Open;
        }
        // A carried attempt has no state that could be marked as contested, and a placement in force has committed.
        let is_foreign = |rival: &Attempt| !attempts.contains_key(rival);
        let in_force = contents.placement().is_some_and(|next| next.epoch <= cx.placement.epoch && next != cx.placement);
        if in_force || rivals.iter().any(|rival| is_foreign(rival) || has_priority(rival)) {
            return Way::Barred;
        }
        let mut way = Way::Free;
        for rival in rivals {
            if let Some(state) = attempts.get_mut(&rival).filter(|state| state.decision().is_none()) {
                way = Way::Open;
                if !state.acceptor.is_contested() {
                    state.contest(batch);
                }
            }
        }
        way
    }
}
