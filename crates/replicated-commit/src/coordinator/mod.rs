//! The coordinator: one region's vote on an attempt, and the two-phase commit inside the region.
//!
//! ```text
//!   Accept ─▶ Preparing ─▶ all cohorts prepared ─▶ Yes on disk ─▶ told to the gateway
//!                      └─▶ one cannot, or time is up, or asked first ─▶ No on disk ─▶ told likewise
//!   Decided: committed ─▶ on disk, where cohorts are at other sites ─▶ Apply to the cohorts ─▶ all applied ─▶ resolved ─▶ forgotten
//!            aborted ─▶ on disk ─▶ Aborted to the cohorts, and to a gateway of this region: its client may be told
//!
//!   no Decided for long ─▶ AskGateway ─▶ no answer: it is deciding still
//!                               └─▶ Over, or the gateway is dead ─▶ AskVote to all regions ─▶ Firm, or No, on disk there
//!                                                                   ─▶ enough final votes: Decided to all
//!                                                                   ─▶ regions are lost: a resolution, see `resolving.rs`
//! ```
//!
//! A coordinator that is asked for its vote also asks the others until it knows the outcome, so that a single cut link does not keep a site in doubt.
//!
//! Invariants: a region has one vote on an attempt, that of the site of the shard which the attempt names; it goes to disk in the step in which
//! it is cast or becomes final; it is tallied, here as elsewhere, only when it comes back from disk; an attempt with a yes-vote is kept until
//! it is resolved. In each region this site alone concludes that an attempt aborted, and nobody acts on that before it is on disk; it concludes
//! nothing by votes once it has promised a round of a resolution.
//!
//! Source: section 3.2.2, Algorithm 1, lines 3 to 10. There coordinators tell each other (line 8), here the gateway alone: decision 0001.

mod attempt;
mod doubts;
mod examination;
mod memory;
mod outcomes;
mod resolving;
mod voting;

pub(crate) use examination::Proposal;

use attempt::AttemptState;
use examination::Examinations;

use crate::config::Config;
use crate::context::{Context, Shared};
use crate::message::{ATTEMPT, Attempt, Meta, Part};
use crate::planted::Planted;
use crate::records::VoteRecord;
use crate::resolution::{Acceptor, Leader};
use crate::views::{CoordinatorView, NearCoordinator};
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::{Decision, Refusal, Vote};
use rhumb_core::actor::Op;
use rhumb_core::{Batch, Key, RegionId, SiteId, Table, Time, Timestamp, work};
use std::collections::{BTreeMap, BTreeSet};

/// What an attempt finds of the earlier ones of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supersedes {
    /// There are none.
    First,
    /// They have aborted.
    Aborted,
    /// One has committed, or others are agreeing on its outcome: there is no room for another.
    Nothing,
}

/// The attempts that one coordinator knows of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coordinator {
    /// Apart from the map, whose nodes would be large, and be moved about: most are kept and never looked at again.
    attempts: BTreeMap<Attempt, Box<AttemptState>>,
    /// Those not resolved: few beside the many that are kept until they are old.
    unresolved: BTreeSet<Attempt>,
    /// Those that an earlier incarnation has refused, and whose outcome is not known.
    refused: BTreeSet<Attempt>,
    /// Those that somebody has proposed to commit by assumption, and whose outcome is open.
    assumed: BTreeSet<Attempt>,
    /// How many of them have this region's vote.
    voted: usize,
    /// No attempt to commit at or below it gets a yes any more: others have been told so, or may have been by an earlier incarnation.
    closed: Timestamp,
    /// Closed up to there on disk as well.
    closed_on_disk: Timestamp,
    /// The last attempt that was looked at in the present walk through those that may be forgotten; none before the first.
    walked: Option<Attempt>,
    /// How many refusals this walk has kept for others.
    kept: usize,
    /// Attempts made at or below it, and not on record, are forgotten.
    forgotten: Timestamp,
    /// What was taken over of attempts made above it is remembered: not what an earlier incarnation had, nor what rows were copied of.
    remembers_from: Timestamp,
    /// What is looked at before it is accepted that an attempt commits by assumption.
    examinations: Examinations,
}

impl Coordinator {
    /// Lists its tables at `now`.
    pub(crate) fn tables(&self, now: Time, config: &Config, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("coordinator.attempts", self.attempts.len(), config.attempts_kept()).stays());
        visit(Table::new("coordinator.unresolved", self.unresolved.len(), self.attempts.len()).stays());
        let overdue = self.forgettable(None, now.minus(config.forget_after), config.forget_after * 2, now).count();
        visit(Table::new("coordinator.refused", self.refused.len(), self.attempts.len()).stays());
        visit(Table::new("coordinator.assumed", self.assumed.len(), self.attempts.len()).stays());
        visit(Table::new("coordinator.overdue", overdue, config.attempts_kept()));
        self.examinations.tables(self.attempts.len(), visit);
    }

    /// Somebody looks after `attempt` until its outcome is known.
    fn keep_open(&mut self, attempt: Attempt) {
        if self.attempts.get(&attempt).is_some_and(|state| state.decision().is_none()) {
            self.unresolved.insert(attempt);
        }
    }

    /// What is known of `meta`'s attempt, which is a new one if need be.
    fn state_of(&mut self, meta: &Meta, now: Time) -> &mut AttemptState {
        self.attempts.entry(meta.attempt).or_insert_with(|| {
            self.unresolved.insert(meta.attempt);
            Box::new(AttemptState::new(meta.clone(), now))
        })
    }

    /// The same. A new one is [watched](AttemptState::watched) from now on, if this site would remember that it has taken the attempt over.
    fn watched_state_of(&mut self, near: &NearCoordinator<'_>, meta: &Meta, cx: &Shared) -> &mut AttemptState {
        self.remembers_from = self.remembers_from.max(self.forget_floor(cx));
        let is_new = !self.attempts.contains_key(&meta.attempt);
        let is_watched = is_new && meta.attempt.made > self.remembers_from && !near.cohort.has_applied(&meta.attempt);
        let state = self.state_of(meta, cx.now);
        state.watched |= is_watched;
        state
    }

    /// The round of `attempt` that this region leads, if its outcome is still open.
    pub(crate) fn leader(&mut self, attempt: &Attempt) -> Option<&mut Leader> {
        self.attempts.get_mut(attempt)?.leader.as_mut()
    }

    /// `from`, the gateway of `attempt` or a cohort, leaves its outcome to this site, and has seen these votes. As a cohort it may say that it lacks
    /// the attempt.
    pub(crate) fn on_bound(&mut self, attempt: &Attempt, from: SiteId, votes: Vec<(RegionId, Vote)>, lacks: bool) {
        if let Some(state) = self.attempts.get_mut(attempt) {
            state.bound.insert(from);
            state.lacking.extend(lacks.then_some(from));
            votes.into_iter().for_each(|(region, vote)| state.tally.record_if_open(region, vote));
        }
    }

    /// A region that is prepared for `attempt` says what that reads and writes in this shard.
    fn hear_contents(&mut self, attempt: &Attempt, contents: Option<Part>) {
        if let Some(state) = self.attempts.get_mut(attempt).filter(|state| state.leader.is_some()) {
            state.contents = contents.or(state.contents.take());
        }
    }

    /// An operator says that regions are `lost`. True if the outcome of `attempt` is open, and waits for one of them.
    fn presume_lost(&mut self, attempt: Attempt, lost: Regions) -> bool {
        let Some(state) = self.attempts.get_mut(&attempt).filter(|state| state.decision().is_none()) else { return false };
        state.presumed_lost = state.presumed_lost.or(lost);
        !state.meta.electorate.without(state.meta.declares_lost).and(lost).is_empty()
    }

    /// The lowest timestamp of an attempt that somebody is in doubt about, as far as this site knows.
    pub(crate) fn lowest_in_doubt(&self) -> Option<Timestamp> {
        work::add(self.unresolved.len() + self.refused.len());
        let attempts = self.unresolved.iter().chain(&self.refused);
        let open = attempts.filter_map(|attempt| self.attempts.get(attempt)).filter(|state| state.decision().is_none());
        open.filter(|state| state.vote.is_some() || state.asked || state.acceptor.is_bound()).map(|state| state.meta.at).min()
    }

    /// A version of `key` is put at `at`.
    pub(crate) fn see_row(&mut self, key: &Key, at: Timestamp) {
        self.examinations.see(key, at);
    }

    /// The versions of `batch` are put.
    pub(crate) fn see_batch(&mut self, batch: &Batch) {
        for op in &batch.ops {
            if let Op::PutVersion { key, at, .. } = op {
                self.see_row(key, *at);
            }
        }
    }

    pub(crate) fn recover_vote(&mut self, record: VoteRecord, cx: &mut Context<'_>) {
        let attempt = record.meta.attempt;
        if let Some(decision) = record.decision {
            cx.fx.agree(ATTEMPT, attempt, &decision.is_commit().then_some(record.meta.at));
        }
        let is_only_cohort = record.meta.participants == [cx.me.shard];
        let forgets = cx.rules.breaks(Planted::PromiseNotDurable);
        let record = if forgets { VoteRecord { acceptor: Acceptor::default(), ..record } } else { record };
        let state = AttemptState::recovered(record, cx.me.region, is_only_cohort, cx.now);
        self.voted += usize::from(state.vote.is_some());
        if !state.is_resolved() {
            self.unresolved.insert(attempt);
        } else if state.decision().is_none() {
            self.refused.insert(attempt);
        }
        self.attempts.insert(attempt, Box::new(state));
    }

    /// Regions that are lost, as an operator says who cannot declare them so before `attempt` is settled, or a round that is promised.
    fn presumed_lost(&self, attempt: &Attempt) -> Regions {
        self.attempts.get(attempt).map_or(Regions::NONE, |state| state.presumed_lost.or(state.acceptor.without()))
    }

    pub(crate) fn coordinator_tick(&mut self, near: &NearCoordinator<'_>, cx: &mut Context<'_>) {
        let now = cx.now;
        let attempts: Vec<Attempt> = self.unresolved.iter().copied().collect();
        work::add(attempts.len());
        for attempt in attempts {
            let concerns = |state: &&mut Box<AttemptState>| !state.is_resolved() || state.asked || state.is_resolving();
            let Some(state) = self.attempts.get_mut(&attempt).filter(concerns) else { continue };
            let age = now.since(state.since);
            if state.vote.is_some() && !state.has_yes() && age >= cx.config.outcome_deadline {
                // Its client has been told. What it writes comes by the log, should it have committed.
                state.parts.clear();
            }
            let is_wanted = state.asked || (state.acceptor.is_bound() && age >= cx.config.ask_after);
            if is_wanted && state.decision().is_none() && (state.vote.is_some() || state.acceptor.is_bound()) {
                self.request_votes(near, attempt, cx);
            } else if state.is_in_doubt() && age >= cx.config.ask_after {
                self.ask(near, attempt, cx);
            } else if state.vote.is_none() && state.decision().is_none() && !state.parts.is_empty() && age >= cx.config.prepare_timeout {
                self.vote(near, attempt, Vote::No(Refusal::TimedOut), Batch::new(), cx);
            } else if state.decision().is_some_and(Decision::is_commit) && age >= cx.config.resend_after {
                self.have_applied(near, attempt, cx);
            }
        }
        self.forget(near, cx);
    }
}

impl CoordinatorView for Coordinator {
    fn forget_floor(&self, cx: &Shared) -> Timestamp {
        Timestamp::from_time(cx.now.minus(cx.config.forget_after)).max(self.forgotten)
    }

    fn may_commit(&self, attempt: &Attempt) -> bool {
        self.attempts.get(attempt).is_some_and(|state| state.has_yes() && state.decision() != Some(Decision::Aborted))
    }

    fn lost_of(&self, cx: &Shared, meta: &Meta) -> Regions {
        cx.declared_lost(meta).or(self.presumed_lost(&meta.attempt).and(meta.electorate).without(meta.declares_lost))
    }
}

#[cfg(test)]
mod tests;
