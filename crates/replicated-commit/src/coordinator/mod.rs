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
mod examination;
mod resolving;

pub(crate) use examination::Proposal;

use crate::views::{CoordinatorView, NearCoordinator};
use attempt::AttemptState;
use examination::Examinations;

use crate::config::{Config, FORGET_MAX, ORPHANS_MAX};
use crate::context::{Context, Local, Shared};
use crate::message::{ATTEMPT, Attempt, Meta, Note, Part, Promise, Voted};
use crate::planted::Planted;
use crate::records::{self, Number, VOTES, VoteRecord};
use crate::resolution::{Acceptor, Leader};
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::{Decision, Refusal, Tally, Vote};
use rhumb_core::actor::Op;
use rhumb_core::{Batch, Key, RegionId, SiteId, Span, Table, Time, Timestamp, work};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

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
    attempts: BTreeMap<Attempt, AttemptState>,
    /// Those not resolved: few beside the many that are kept until they are old.
    unresolved: BTreeSet<Attempt>,
    /// Those that somebody has proposed to commit by assumption, and whose outcome is open.
    assumed: BTreeSet<Attempt>,
    /// How many of them have this region's vote.
    voted: usize,
    /// No attempt to commit at or below it gets a yes any more: others have been told so, or may have been by an earlier incarnation.
    closed: Timestamp,
    /// The last attempt that was looked at in the present walk through those that may be forgotten; none before the first.
    walked: Option<Attempt>,
    /// How many refusals this walk has kept for others.
    kept: usize,
    /// Attempts made at or below it, and not on record, are forgotten.
    forgotten: Timestamp,
    /// What is looked at before it is accepted that an attempt commits by assumption.
    examinations: Examinations,
}

impl Coordinator {
    /// Lists its tables at `now`.
    pub(crate) fn tables(&self, now: Time, config: &Config, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("coordinator.attempts", self.attempts.len(), config.attempts_kept()).stays());
        visit(Table::new("coordinator.unresolved", self.unresolved.len(), self.attempts.len()).stays());
        let overdue = self.forgettable(None, now.minus(config.forget_after), config.forget_after * 2, now).count();
        visit(Table::new("coordinator.assumed", self.assumed.len(), self.unresolved.len()).stays());
        visit(Table::new("coordinator.overdue", overdue, config.attempts_kept()));
        self.examinations.tables(self.attempts.len(), visit);
    }

    /// The attempts after `after` made up to `floor` that are over for this region and were heard of first `age` ago or longer.
    fn forgettable(&self, after: Option<Attempt>, floor: Time, age: Span, now: Time) -> impl Iterator<Item = Attempt> {
        let floor = Timestamp::from_time(floor);
        // An attempt is made after its transaction began.
        let last = Attempt::last_begun(floor);
        let begin = after.filter(|after| *after < last).map_or(Bound::Unbounded, Bound::Excluded);
        let begun_by_then = self.attempts.range((begin, Bound::Included(last)));
        begun_by_then
            .filter(move |(attempt, state)| attempt.made <= floor && state.is_over() && now.since(state.since) >= age)
            .map(|(attempt, _)| *attempt)
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
            AttemptState::new(meta.clone(), now)
        })
    }

    /// The round of `attempt` that this region leads, if its outcome is still open.
    pub(crate) fn leader(&mut self, attempt: &Attempt) -> Option<&mut Leader> {
        self.attempts.get_mut(attempt)?.leader.as_mut()
    }

    /// `from`, the gateway of `attempt` or a cohort, leaves its outcome to this site, and has seen these votes.
    pub(crate) fn on_bound(&mut self, attempt: &Attempt, from: SiteId, votes: Vec<(RegionId, Vote)>) {
        if let Some(state) = self.attempts.get_mut(attempt) {
            state.bound.insert(from);
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

    /// An incarnation begins, whose clock and those of all incarnations before have stood at `bound` at the most.
    pub(crate) fn begin_above(&mut self, bound: Timestamp) {
        self.closed = bound;
    }

    /// An earlier incarnation has forgotten attempts made at or below `forgotten`.
    pub(crate) fn recover_forgotten(&mut self, forgotten: Timestamp) {
        self.forgotten = forgotten;
    }

    /// True if this region has neither voted on `attempt`, which it knows, nor heard how it ended.
    pub(crate) fn awaits_vote(&self, attempt: &Attempt) -> bool {
        self.attempts.get(attempt).is_some_and(|state| state.vote.is_none() && state.decision().is_none())
    }

    /// True if it is on record here that `attempt` committed.
    pub(crate) fn has_committed(&self, attempt: &Attempt) -> bool {
        self.attempts.get(attempt).is_some_and(|state| state.decision().is_some_and(Decision::is_commit))
    }

    /// True if this site has it on record that `attempt` aborted, or as coordinator will have.
    pub(crate) fn has_aborted(&self, attempt: &Attempt) -> bool {
        self.attempts.get(attempt).is_some_and(|state| state.decision() == Some(Decision::Aborted))
    }

    /// The attempts of the same transaction made before `attempt`, or after it.
    fn siblings(&self, attempt: Attempt) -> (Vec<Attempt>, Vec<Attempt>) {
        let of_txn = |made| Attempt { txn: attempt.txn, made };
        let known = self.attempts.range(of_txn(Timestamp::ZERO)..=of_txn(Timestamp::MAX)).map(|(known, _)| *known);
        known.filter(|known| *known != attempt).partition(|known| *known < attempt)
    }
}

impl Coordinator {
    pub(crate) fn recover_vote(&mut self, record: VoteRecord, cx: &mut Context<'_>) {
        let attempt = record.meta.attempt;
        if let Some(decision) = record.decision {
            cx.fx.agree(ATTEMPT, attempt, &decision.is_commit().then_some(record.meta.at));
        }
        let is_alone = record.meta.participants == [cx.me.shard];
        let forgets = cx.rules.breaks(Planted::PromiseNotDurable);
        let record = if forgets { VoteRecord { acceptor: Acceptor::default(), ..record } } else { record };
        let state = AttemptState::recovered(record, cx.me.region, is_alone, cx.now);
        self.voted += usize::from(state.vote.is_some());
        if !state.is_resolved() {
            self.unresolved.insert(attempt);
        }
        self.attempts.insert(attempt, state);
    }

    /// What is known of `meta`'s attempt, which is a new one if need be. If the attempt was forgotten here, it has no vote: it may have said yes
    /// once.
    fn state_of_forgotten(&mut self, cx: &Shared, meta: &Meta) {
        let (is_forgotten, now) = (self.is_forgotten(&meta.attempt), cx.now);
        self.state_of(meta, now).stands_in |= is_forgotten;
    }

    fn is_forgotten(&self, attempt: &Attempt) -> bool {
        attempt.made <= self.forgotten && self.attempts.get(attempt).is_none_or(|state| state.stands_in)
    }

    /// Regions that are lost, as an operator says who cannot declare them so before `attempt` is settled, or a round that is promised.
    fn presumed_lost(&self, attempt: &Attempt) -> Regions {
        self.attempts.get(attempt).map_or(Regions::NONE, |state| state.presumed_lost.or(state.acceptor.without()))
    }

    /// The gateway of this site concludes that an attempt aborted. If the coordinator has already concluded the same, it has notified the others
    /// itself.
    pub(crate) fn on_gateway_aborts(&mut self, meta: &Meta, cx: &mut Context<'_>) {
        let me = cx.me;
        if self.has_aborted(&meta.attempt) {
            return self.send_aborted(meta, [me], cx);
        }
        for region in meta.electorate.or(me.region.into()).iter() {
            cx.send(meta.coordinator_in(region), Note::Decided { meta: meta.clone(), decision: Decision::Aborted });
        }
    }

    /// Tells that the attempt aborted, once that is on record.
    fn send_aborted(&mut self, meta: &Meta, to: impl IntoIterator<Item = SiteId>, cx: &mut Context<'_>) {
        let state = self.attempts.get_mut(&meta.attempt).expect("it aborted here");
        let mut batch = Batch::new();
        if !std::mem::replace(&mut state.kept, true) {
            state.put_record(&mut batch);
        }
        let mut persist = cx.fx.persist(batch);
        for site in to {
            persist = persist.send(site, Promise::Aborted { meta: meta.clone() });
        }
    }

    /// The coordinator, another site of this region, has agreed that it aborted: no late log or copy of a lost region undoes that.
    pub(crate) fn keep_abort(&mut self, meta: &Meta, cx: &mut Context<'_>) {
        let now = cx.now;
        let state = self.state_of(meta, now);
        if state.decision().is_none() {
            state.decide(Decision::Aborted);
            state.kept = true;
            let mut batch = Batch::new();
            self.put_resolved(meta.attempt, &mut batch);
            cx.fx.persist(batch);
        }
    }

    /// Has cohorts of this region apply `attempt`, which committed. To one at another site this goes once the outcome is on record here: a later
    /// incarnation that knew nothing of it could agree that it aborted, and half a transaction would remain.
    fn send_apply(&mut self, attempt: Attempt, parts: Vec<(u16, Option<Part>)>, cx: &mut Context<'_>) {
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        let Some(Decision::Committed { floor }) = state.decision() else { return };
        let (meta, mut batch) = (state.meta.clone(), Batch::new());
        let (own, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(shard, _)| *shard == cx.me.shard);
        if !others.is_empty() && !std::mem::replace(&mut state.commit_on_record, true) {
            state.kept = true;
            state.put_record(&mut batch);
        }
        for (_, part) in own {
            cx.send(cx.me, Note::Apply { meta: meta.clone(), part, floor });
        }
        if others.is_empty() {
            return;
        }
        let me = cx.me;
        let mut persist = cx.fx.persist(batch);
        for (shard, part) in others {
            let cohort = SiteId { shard, ..me };
            persist = persist.send(cohort, Promise::Apply { meta: meta.clone(), part, floor });
        }
    }

    /// Marks the attempt resolved: nobody in this region waits for it any more. Adds that to `batch`.
    /// True if somebody waited.
    pub(crate) fn resolve(&mut self, attempt: Attempt, batch: &mut Batch) -> bool {
        let waited = self.attempts.get_mut(&attempt).is_some_and(AttemptState::resolve);
        if waited {
            self.put_resolved(attempt, batch);
        }
        waited
    }

    /// Nobody looks after an attempt any more that is resolved: its record says so.
    fn put_resolved(&mut self, attempt: Attempt, batch: &mut Batch) {
        let state = self.attempts.get_mut(&attempt).expect("it is resolved");
        state.parts.clear();
        state.put_record(batch);
        self.unresolved.remove(&attempt);
    }

    /// Attempts that have waited long for an outcome: their gateway is silent, and regions that could decide are out.
    pub(crate) fn in_doubt(&self, cx: &Shared) -> usize {
        let long = cx.config.ask_after * 2;
        let unresolved = self.unresolved.iter().map(|attempt| &self.attempts[attempt]);
        unresolved.filter(|state| state.is_in_doubt() && cx.now.since(state.since) > long).count()
    }
}

impl Coordinator {
    /// The gateway asks this region to vote.
    pub(crate) fn on_accept(&mut self, near: &NearCoordinator<'_>, meta: Meta, parts: Vec<(u16, Part)>, cx: &mut Context<'_>) {
        cx.clock.observe(meta.at);
        let attempt = meta.attempt;
        if self.is_forgotten(&attempt) {
            cx.fx.count("commit.accept_forgotten");
            return;
        }
        let known = self.attempts.contains_key(&attempt);
        cx.compare_epoch(attempt.txn.gateway, meta.epoch);
        if !known && (meta.epoch > cx.placement.epoch || (meta.epoch == cx.placement.epoch && !near.mover.is_settled(cx))) {
            return cx.notify(Local::AwaitSettling(attempt.txn.gateway, Note::Accept { meta, parts }));
        }
        let supersedes = self.abort_earlier(near, attempt, cx);
        let superseded = supersedes == Supersedes::Nothing || self.is_superseded(near, &attempt);
        let (now, closed) = (cx.now, self.closed);
        let state = self.state_of(&meta, now);
        if state.vote.is_some() {
            cx.fx.count("commit.accept_again");
            return self.send_vote(near, attempt, &[attempt.txn.gateway], Batch::new(), cx);
        }
        if !state.parts.is_empty() {
            return; // its cohorts are being asked already
        }
        state.parts = parts.into_iter().collect();
        match state.decision() {
            Some(decision) => self.distribute(near, attempt, decision, cx), // it overtook the Accept
            None if meta.epoch < cx.placement.epoch => self.vote(near, attempt, Vote::No(Refusal::StaleConfiguration), Batch::new(), cx),
            None if superseded => self.vote(near, attempt, Vote::No(Refusal::Superseded), Batch::new(), cx),
            None if meta.at <= closed => self.vote(near, attempt, Vote::No(Refusal::TimestampTooLow(closed)), Batch::new(), cx),
            None => {
                let prepares: Vec<_> = state.parts.iter().map(|(shard, part)| (*shard, part.clone())).collect();
                self.have_prepared(&meta, prepares, supersedes, cx);
            }
        }
    }

    /// Has the cohorts of this region prepare their parts. They let go of an earlier attempt for this one: not before it is on record
    /// that it aborted.
    fn have_prepared(&mut self, meta: &Meta, parts: Vec<(u16, Part)>, supersedes: Supersedes, cx: &mut Context<'_>) {
        for (shard, part) in parts {
            let (to, meta) = (SiteId { region: cx.me.region, shard }, meta.clone());
            if supersedes == Supersedes::Aborted && to != cx.me {
                cx.fx.persist(Batch::new()).send(to, Promise::PrepareNext { meta, part });
            } else {
                cx.send(to, Note::Prepare { meta, part });
            }
        }
    }

    /// Earlier attempts of a transaction of which there is a later one have aborted: its gateway would not have made that otherwise.
    fn abort_earlier(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) -> Supersedes {
        let mut supersedes = Supersedes::First;
        for earlier in self.siblings(attempt).0 {
            let state = &self.attempts[&earlier];
            match state.decision() {
                None if state.acceptor.is_bound() => return Supersedes::Nothing,
                Some(decision) if decision.is_commit() => return Supersedes::Nothing,
                None => self.distribute(near, earlier, Decision::Aborted, cx),
                Some(_) => {}
            }
            supersedes = Supersedes::Aborted;
        }
        supersedes
    }

    /// `attempt` has committed: the earlier ones of its transaction have not, and that stays known when it is forgotten.
    pub(crate) fn supersede_earlier(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, batch: &mut Batch, cx: &mut Context<'_>) {
        for earlier in self.siblings(attempt).0 {
            let state = self.attempts.get_mut(&earlier).expect("a sibling is a state");
            match state.decision() {
                Some(_) => {}
                None if state.acceptor.is_bound() => state.contest(batch),
                None => self.distribute(near, earlier, Decision::Aborted, cx),
            }
        }
    }

    /// True if a later attempt of the same transaction is known: `attempt` has aborted.
    pub(crate) fn is_superseded(&self, near: &NearCoordinator<'_>, attempt: &Attempt) -> bool {
        !self.siblings(*attempt).1.is_empty() || near.cohort.has_applied_later(attempt)
    }

    pub(crate) fn on_prepared(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, shard: u16, cx: &mut Context<'_>) {
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        state.prepared.insert(shard);
        if state.vote.is_none() && state.decision().is_none() && state.meta.participants.iter().all(|shard| state.prepared.contains(shard))
        {
            self.vote(near, attempt, Vote::Yes, Batch::new(), cx);
        }
    }

    pub(crate) fn on_cannot_prepare(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, refusal: Refusal, cx: &mut Context<'_>) {
        if self.awaits_vote(&attempt) {
            self.vote(near, attempt, Vote::No(refusal), Batch::new(), cx);
        }
    }

    /// The only cohort of `attempt`, at this site, is prepared once `batch` is on disk: this region's yes goes there along with it.
    pub(crate) fn on_prepared_here(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, batch: Batch, cx: &mut Context<'_>) {
        if self.awaits_vote(&attempt) {
            self.vote(near, attempt, Vote::Yes, batch, cx);
        } else {
            cx.fx.persist(batch);
        }
    }

    /// Casts this region's vote, or makes it final: to disk along with what is in `batch`, then to the gateway.
    pub(crate) fn vote(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, vote: Vote, mut batch: Batch, cx: &mut Context<'_>) {
        let state = self.attempts.get_mut(&attempt).expect("a vote is cast on a known state");
        assert_eq!(state.meta.coordinator, cx.me.shard, "a region votes once");
        assert!(!state.vote.as_ref().is_some_and(Vote::is_final), "a final vote never changes");
        cx.fx.count(match vote {
            Vote::Yes => "commit.vote_yes",
            Vote::Firm => "commit.vote_firm",
            Vote::No(Refusal::Locked) => "commit.vote_no_locked",
            Vote::No(Refusal::LockLost) => "commit.vote_no_lock_lost",
            Vote::No(Refusal::Stale) => "commit.vote_no_stale",
            Vote::No(Refusal::TimestampTooLow(_)) => "commit.vote_no_timestamp_too_low",
            Vote::No(Refusal::UnknownTransaction) => "commit.vote_no_unknown_transaction",
            Vote::No(Refusal::Superseded) => "commit.vote_no_superseded",
            Vote::No(Refusal::TimedOut) => "commit.vote_no_timed_out",
            Vote::No(Refusal::StaleConfiguration) => "commit.vote_no_stale_configuration",
            Vote::No(Refusal::CopyIncomplete(_)) => "commit.vote_no_copy_incomplete",
            Vote::No(Refusal::Withdrawn) => "commit.vote_no_withdrawn",
        });
        if state.vote.replace(vote.clone()).is_none() {
            self.voted += 1;
        }
        state.put_record(&mut batch);
        if cx.rules.breaks(Planted::RefusalNotDurable) && !vote.is_yes() {
            batch = Batch::new();
        }
        let gateway = attempt.txn.gateway;
        let to = [cx.me, gateway];
        self.send_vote(near, attempt, if gateway == cx.me { &to[..1] } else { &to }, batch, cx);
    }

    /// Has the cohorts of this region let go of an attempt that it will not commit by its own vote.
    fn have_unprepared(&mut self, meta: &Meta, cx: &mut Context<'_>) {
        for &shard in &meta.participants {
            let cohort = SiteId { region: cx.me.region, shard };
            cx.send(cohort, Note::Unprepare { attempt: meta.attempt });
        }
    }

    /// Tells this region's vote to `to`, after `batch` and all before it is on disk.
    fn send_vote(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, to: &[SiteId], batch: Batch, cx: &mut Context<'_>) {
        let state = &self.attempts[&attempt];
        let vote = state.vote.clone().expect("told once cast");
        let voted = Voted { meta: state.meta.clone(), region: cx.me.region, vote, high: near.cohort.highest() };
        let mut persist = cx.fx.persist(batch);
        for site in to {
            persist = persist.send(*site, Promise::Vote(voted.clone()));
        }
    }

    /// Sends a vote just cast to `from` as well, unless it gets it anyway.
    fn send_vote_besides(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, from: SiteId, cx: &mut Context<'_>) {
        if from != cx.me && from != attempt.txn.gateway {
            self.send_vote(near, attempt, &[from], Batch::new(), cx);
        }
    }

    /// Somebody in doubt asks for this region's vote: whatever it is becomes final.
    pub(crate) fn on_ask_vote(&mut self, near: &NearCoordinator<'_>, from: SiteId, meta: Meta, cx: &mut Context<'_>) {
        let attempt = meta.attempt;
        if self.is_forgotten(&attempt) {
            cx.fx.count("commit.asked_forgotten");
            let is_own = from.region == cx.me.region;
            let is_resolving = self.attempts.get(&attempt).is_some_and(AttemptState::is_resolving);
            if !(is_own && is_resolving) {
                let promise = Promise::Forgotten { attempt, region: cx.me.region, log_end: near.cohort.log_end() };
                cx.fx.persist(Batch::new()).send(from, promise);
            }
            if is_own {
                self.lead_for_carrier(near, &meta, cx);
            }
            return;
        }
        self.look_up(near, &meta, cx);
        let state = self.attempts.get_mut(&attempt).expect("just looked up");
        if state.decision().is_none() && !state.is_settled_by_copy() {
            state.asked = true;
            self.unresolved.insert(attempt);
        }
        let state = &self.attempts[&attempt];
        let provisional = state.vote == Some(Vote::Yes);
        let provisional = provisional && !cx.rules.breaks(Planted::ProvisionalCounts);
        match (state.decision(), &state.vote) {
            (Some(decision), _) => cx.send(from, Note::Decided { meta, decision }),
            (None, Some(_)) if cx.rules.breaks(Planted::NaiveBallotOne) => self.accept_at_ballot_one(near, meta, cx),
            (None, Some(_)) if provisional => {
                self.vote(near, attempt, Vote::Firm, Batch::new(), cx);
                self.send_vote_besides(near, attempt, from, cx);
            }
            (None, Some(_)) => self.send_vote(near, attempt, &[from], Batch::new(), cx),
            // It has no vote, but may be the only region that is left to lead.
            (None, None) if !meta.electorate.contains(cx.me.region) => self.lead_for_carrier(near, &meta, cx),
            (None, None) if state.parts.is_empty() => {
                self.vote(near, attempt, Vote::No(Refusal::UnknownTransaction), Batch::new(), cx);
                self.send_vote_besides(near, attempt, from, cx);
            }
            // Its cohorts are preparing; the vote is cast soon, and who is in doubt asks again.
            (None, None) => {}
        }
    }

    /// What is known of an attempt that somebody is in doubt about, with its outcome if anything in this site knows it.
    fn look_up(&mut self, near: &NearCoordinator<'_>, meta: &Meta, cx: &mut Context<'_>) {
        let (attempt, now) = (meta.attempt, cx.now);
        let state = self.state_of(meta, now);
        if state.decision().is_some() {
            return;
        }
        let is_bound = state.acceptor.is_bound();
        let concluded = near.gateway.decided(&attempt);
        if concluded.is_some_and(Decision::is_commit) {
            self.distribute(near, attempt, concluded.expect("just looked at"), cx);
        } else if near.cohort.has_applied(&attempt) {
            // Its rows came with a log.
            let floor = near.cohort.highest_applied().max(meta.at);
            self.distribute(near, attempt, Decision::Committed { floor }, cx);
        } else if !is_bound && (concluded.is_some() || self.is_superseded(near, &attempt)) {
            self.distribute(near, attempt, Decision::Aborted, cx);
        }
    }

    /// The gateway takes the attempt back, as far as that is still possible.
    pub(crate) fn on_withdraw(&mut self, near: &NearCoordinator<'_>, from: SiteId, meta: Meta, cx: &mut Context<'_>) {
        let attempt = meta.attempt;
        if self.is_forgotten(&attempt) {
            return cx.fx.count("commit.withdraw_forgotten");
        }
        let now = cx.now;
        let state = self.state_of(&meta, now);
        match (state.decision(), &state.vote) {
            (Some(decision), _) => cx.send(from, Note::Decided { meta, decision }),
            (None, None) if !meta.electorate.contains(cx.me.region) => {}
            (None, Some(Vote::Firm)) if cx.rules.breaks(Planted::FirmWithdrawn) => {
                self.vote_again(near, attempt, Vote::No(Refusal::Withdrawn), cx);
            }
            (None, Some(vote)) if vote.is_final() => self.send_vote(near, attempt, &[from], Batch::new(), cx),
            (None, _) => self.vote(near, attempt, Vote::No(Refusal::Withdrawn), Batch::new(), cx),
        }
    }

    /// The outcome, from the gateway or from whoever worked it out. What this region's own sites are to act on goes on record.
    pub(crate) fn on_decided_as_coordinator(
        &mut self,
        near: &NearCoordinator<'_>,
        from: SiteId,
        meta: &Meta,
        decision: Decision,
        cx: &mut Context<'_>,
    ) {
        let attempt = meta.attempt;
        if meta.coordinator != cx.me.shard {
            return;
        }
        let is_own = from.region == cx.me.region;
        let attempts = &self.attempts;
        let has_entry = near.cohort.has_entry(&attempt);
        let is_nothing_here = !attempts.contains_key(&attempt) && !is_own && !has_entry;
        if is_nothing_here && (self.is_forgotten(&attempt) || attempts.len() >= ORPHANS_MAX + self.voted) {
            return cx.fx.count("commit.orphan_dropped");
        }
        let now = cx.now;
        let state = self.state_of(meta, now);
        if is_own && state.acceptor.is_bound() {
            // It claims an outcome, and still leaves it to this site.
            state.bound.insert(from);
        }
        match (state.decision(), decision) {
            (None, Decision::Aborted) if state.acceptor.is_bound() && !cx.rules.breaks(Planted::BoundBelieves) => {
                cx.fx.count("commit.abort_claimed")
            }
            (None, Decision::Committed { .. }) if state.acceptor.has_accepted_abort() => cx.fx.count("commit.commit_claimed"),
            (None, _) => {
                state.kept |= is_own || has_entry;
                self.distribute(near, attempt, decision, cx);
            }
            (Some(Decision::Aborted), Decision::Aborted) => {
                // A cohort may have begun to carry the attempt's locks after this site learnt the outcome.
                let waits = [(is_own || from == attempt.txn.gateway, from), (has_entry, cx.me)];
                let told: BTreeSet<SiteId> = waits.into_iter().filter(|(waits, _)| *waits).map(|(_, site)| site).collect();
                if !told.is_empty() {
                    self.send_aborted(meta, told, cx);
                }
            }
            (Some(known), Decision::Aborted) => cx.send(from, Note::Decided { meta: meta.clone(), decision: known }),
            (Some(Decision::Committed { .. }), Decision::Committed { .. }) => {
                let confirms = state.is_resolved() && state.has_yes();
                let waits = [(is_own && from != cx.me && meta.participants.contains(&from.shard), from), (has_entry, cx.me)];
                let parts = waits.into_iter().filter(|(waits, _)| *waits).map(|(_, site)| (site.shard, None)).collect();
                self.send_apply(attempt, parts, cx);
                if confirms {
                    self.on_all_applied(meta, Batch::new(), cx); // the gateway did not hear so the first time
                }
            }
            (Some(Decision::Aborted), Decision::Committed { .. }) => {}
        }
    }

    /// True if what a log or a copy brings of the attempt has to wait: its coordinator, this site or another of its region, takes part in a
    /// resolution that may abort it.
    pub(crate) fn is_withheld(&self, near: &NearCoordinator<'_>, attempt: &Attempt) -> bool {
        let state = self.attempts.get(attempt);
        let may_abort = |state: &AttemptState| state.decision().is_none() && state.acceptor.has_accepted_abort();
        near.cohort.is_bound(attempt) || state.is_some_and(may_abort)
    }

    pub(crate) fn on_vote_as_coordinator(&mut self, near: &NearCoordinator<'_>, voted: &Voted, cx: &mut Context<'_>) {
        let Voted { meta, region, vote, high } = voted;
        let region = *region;
        let attempt = meta.attempt;
        if meta.coordinator != cx.me.shard {
            return;
        }
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        if cx.rules.are_broken() {
            state.tally.overwrite(region, vote.clone());
        } else {
            state.tally.record(region, vote.clone());
        }
        state.tally.hear_high(voted.coordinator(), *high);
        if region == cx.me.region && !vote.is_yes() {
            // Only now that the refusal is on disk: a new incarnation that had forgotten it could count a cohort as prepared
            // that has let go.
            self.have_unprepared(meta, cx);
        }
        self.count_votes(near, attempt, cx);
    }

    /// A site of another shard says how high it has prepared.
    pub(crate) fn on_high_as_coordinator(
        &mut self,
        near: &NearCoordinator<'_>,
        from: SiteId,
        attempt: Attempt,
        high: Timestamp,
        cx: &mut Context<'_>,
    ) {
        if let Some(state) = self.attempts.get_mut(&attempt) {
            state.tally.hear_high(from, high);
            self.count_votes(near, attempt, cx);
        }
    }

    /// A region has resolved the attempt and forgotten it.
    pub(crate) fn on_forgotten(
        &mut self,
        near: &NearCoordinator<'_>,
        attempt: Attempt,
        region: RegionId,
        log_end: u64,
        cx: &mut Context<'_>,
    ) {
        let is_lost = self.attempts.get(&attempt).is_some_and(|state| cx.is_lost(region, &state.meta));
        if let Some(state) = self.attempts.get_mut(&attempt).filter(|_| !is_lost) {
            // What it says first suffices: it had forgotten the attempt then.
            state.forgotten_by.entry(region).or_insert(log_end);
            self.count_votes(near, attempt, cx);
            self.rest_without_copy(attempt, cx);
        }
    }

    /// Where this region holds no copy any more and all others that voted have forgotten the attempt, it asks no more: nobody here waits for
    /// the outcome, and no log is read here that would tell it. It stays prepared. Regions that receive this region's `Stopped` learn of the doubt
    /// from that, and a copy brings the outcome.
    fn rest_without_copy(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        let has_copy = cx.has_copy();
        let Some(state) = self.attempts.get_mut(&attempt).filter(|state| state.is_in_doubt() && !has_copy) else { return };
        let forgotten: Regions = state.forgotten_by.keys().copied().collect();
        let others = state.meta.electorate.without(cx.me.region.into());
        if forgotten.and(others) != others {
            return;
        }
        cx.fx.count("commit.rests_without_copy");
        state.rest(true);
        self.unresolved.remove(&attempt);
    }

    /// The votes as far as they are known. A region that has forgotten the attempt, and whose log does not hold it, did not commit it and will never
    /// vote yes. That follows only if its log was read without a gap: not while rows are being copied, and not for attempts that were in doubt here
    /// before the copy. If an attempt is still prepared here, the source of the copy was in doubt about it, too: no log had dropped it by then, and
    /// each log has been read from its beginning since.
    fn tally(&self, near: &NearCoordinator<'_>, state: &AttemptState) -> Tally {
        let mut tally = state.tally.clone();
        state.meta.refuse_for_lost(&mut tally);
        let is_prepared = near.cohort.promised_entry(&state.meta.attempt).is_some();
        let is_named = is_prepared && state.meta.at > near.cohort.collected();
        let reads_logs = near.mover.has_rows() && (is_named || near.mover.since() <= state.meta.epoch);
        for (region, end) in state.forgotten_by.iter().filter(|_| reads_logs) {
            if near.catch_up.cursor(*region) >= *end {
                tally.record_if_open(*region, Vote::No(Refusal::UnknownTransaction));
            }
        }
        tally
    }

    /// The copied rows hold the outcome of every attempt of an epoch before `epoch` that is in doubt here, unless the attempt is still prepared: then
    /// the source of the copy is in doubt about it, too.
    pub(crate) fn settle_copied(&mut self, near: &NearCoordinator<'_>, epoch: u64) {
        work::add(self.attempts.len());
        let in_doubt = |state: &&mut AttemptState| state.is_in_doubt() && state.meta.epoch < epoch;
        for state in self.attempts.values_mut().filter(in_doubt) {
            let attempt = state.meta.attempt;
            let is_prepared = near.cohort.has_entry(&attempt);
            state.rest(!is_prepared);
            if is_prepared {
                self.unresolved.insert(attempt);
            } else {
                self.unresolved.remove(&attempt);
            }
        }
    }

    /// Regions that have forgotten attempts about which this site is in doubt, and whose logs it has not read that far.
    pub(crate) fn forgetting(&self, near: &NearCoordinator<'_>) -> Regions {
        work::add(self.unresolved.len());
        let attempts = self.unresolved.iter().map(|attempt| &self.attempts[attempt]);
        let attempts_led = attempts.clone().filter_map(|state| state.leader.as_ref());
        let open = attempts.filter(|state| state.is_in_doubt()).flat_map(|state| &state.forgotten_by);
        let led = attempts_led.flat_map(Leader::forgotten);
        let open = open.map(|(region, end)| (*region, *end)).chain(led);
        let open = open.filter(|(region, end)| near.catch_up.cursor(*region) < *end).map(|(region, _)| region);
        open.collect()
    }

    fn count_votes(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(state) = self.attempts.get(&attempt).filter(|state| state.decision().is_none()) else { return };
        let is_bound = state.acceptor.is_bound() && !cx.rules.breaks(Planted::LateWordCounts);
        if is_bound || cx.is_lost(cx.me.region, &state.meta) {
            return; // only a round decides it; or the others have done so without this region
        }
        let tally = self.tally(near, state);
        let electorate = state.meta.electorate;
        let outcome = tally.outcome(electorate);
        let outcome = if cx.rules.breaks(Planted::ProvisionalCounts) { tally.outcome_at_gateway(electorate) } else { outcome };
        let Some(outcome) = outcome else { return };
        let meta = state.meta.clone();
        let Some(decision) = cx.decision(outcome, &tally, &meta, self.lost_of(cx, &meta)) else { return };
        cx.fx.count("commit.worked_out");
        self.conclude_as_coordinator(near, &meta, decision, cx);
    }

    /// This site has found the outcome: tells all regions that vote.
    fn conclude_as_coordinator(&mut self, near: &NearCoordinator<'_>, meta: &Meta, decision: Decision, cx: &mut Context<'_>) {
        for region in meta.electorate.without(cx.me.region.into()).iter() {
            cx.fx.send(meta.coordinator_in(region), Note::Decided { meta: meta.clone(), decision });
        }
        self.distribute(near, meta.attempt, decision, cx);
    }

    /// A peer's log tells that the attempt committed.
    pub(crate) fn learn_committed(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, floor: Timestamp, cx: &mut Context<'_>) {
        if self.attempts.get(&attempt).is_some_and(|state| state.decision().is_none()) && !self.is_withheld(near, &attempt) {
            cx.fx.count("commit.learnt_from_log");
            self.distribute(near, attempt, Decision::Committed { floor }, cx);
        }
    }

    /// A commit with parts in several shards was taken over with a log, without a vote of this region. It stays on record as long as another
    /// site may carry it or be in doubt: nobody else here could tell that one what became of it, and its rows do not say so.
    pub(crate) fn keep_commit(
        &mut self,
        near: &NearCoordinator<'_>,
        meta: &Meta,
        floor: Timestamp,
        batch: &mut Batch,
        cx: &mut Context<'_>,
    ) {
        let now = cx.now;
        if self.state_of(meta, now).decision().is_none() {
            self.distribute(near, meta.attempt, Decision::Committed { floor }, cx);
        }
        let state = self.attempts.get_mut(&meta.attempt).expect("just looked up");
        if !state.has_yes() {
            state.kept = true;
            state.resolve();
            state.put_record(batch);
            self.unresolved.remove(&meta.attempt);
        }
    }

    /// The outcome is known: tell the cohorts of this region; of an abort only once that is on disk.
    fn distribute(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, decision: Decision, cx: &mut Context<'_>) {
        let state = self.attempts.get_mut(&attempt).expect("an outcome belongs to a state");
        state.decide(decision);
        // It is remembered from now on for as long as any other.
        state.since = cx.now;
        (state.leader, state.contents) = (None, None);
        self.assumed.remove(&attempt);
        match decision {
            Decision::Committed { .. } => {
                cx.fx.agree(ATTEMPT, attempt, &Some(state.meta.at));
                self.have_applied(near, attempt, cx);
            }
            Decision::Aborted => {
                let meta = state.meta.clone();
                // The gateway of this region tells its client, by what is on record here.
                state.kept |= attempt.txn.gateway.region == cx.me.region;
                let mut told: BTreeSet<SiteId> =
                    meta.participants.iter().map(|shard| SiteId { region: cx.me.region, shard: *shard }).collect();
                told.extend(Some(attempt.txn.gateway).filter(|gateway| gateway.region == cx.me.region));
                let mut batch = Batch::new();
                self.put_resolved(attempt, &mut batch);
                let mut persist = cx.fx.persist(batch);
                for site in told {
                    persist = persist.send(site, Promise::Aborted { meta: meta.clone() });
                }
            }
        }
    }

    /// Has the cohorts apply a committed attempt, those that have not yet.
    fn have_applied(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(state) = self.attempts.get(&attempt).filter(|state| state.decision().is_some_and(Decision::is_commit)) else {
            return;
        };
        if !state.has_yes() && state.parts.is_empty() {
            // Catch-up brings the rows, unless they are carried here.
            cx.fx.count("commit.outcome_without_rows");
            let carriers = if state.kept { state.meta.participants.clone() } else { Vec::new() };
            self.send_apply(attempt, carriers.into_iter().map(|shard| (shard, None)).collect(), cx);
            let mut batch = Batch::new();
            self.resolve(attempt, &mut batch);
            if !batch.ops.is_empty() {
                cx.fx.persist(batch);
            }
            if !near.cohort.has_applied(&attempt) {
                cx.notify(Local::Hurry);
            }
            return;
        }
        let open = state.meta.participants.iter().filter(|shard| !state.applied.contains(shard));
        // A cohort of a region that voted yes has its part on disk; another one gets it.
        let part = |shard: &u16| if state.has_yes() { None } else { state.parts.get(shard).cloned() };
        let parts = open.map(|shard| (*shard, part(shard))).collect();
        self.send_apply(attempt, parts, cx);
    }

    pub(crate) fn on_applied(&mut self, attempt: Attempt, shard: u16, cx: &mut Context<'_>) {
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        state.applied.insert(shard);
        if state.meta.participants.iter().all(|shard| state.applied.contains(shard)) {
            let meta = state.meta.clone();
            self.on_all_applied(&meta, Batch::new(), cx);
        }
    }

    /// All cohorts of this region say that they have applied a commit, the last of them by `batch`: the gateway may wait for that. Where nobody
    /// waited, as the rows come by the log, they had nothing to apply.
    pub(crate) fn on_all_applied(&mut self, meta: &Meta, mut batch: Batch, cx: &mut Context<'_>) {
        let has_yes = self.attempts.get(&meta.attempt).is_some_and(AttemptState::has_yes);
        let have_applied = self.resolve(meta.attempt, &mut batch) || has_yes;
        if meta.two_rounds && have_applied {
            let confirmed = Promise::Confirmed { attempt: meta.attempt, region: cx.me.region };
            cx.fx.persist(batch).send(meta.attempt.txn.gateway, confirmed);
        } else if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
    }

    pub(crate) fn coordinator_tick(&mut self, near: &NearCoordinator<'_>, cx: &mut Context<'_>) {
        let now = cx.now;
        let attempts: Vec<Attempt> = self.unresolved.iter().copied().collect();
        work::add(attempts.len());
        for attempt in attempts {
            let concerns = |state: &&AttemptState| !state.is_resolved() || state.asked || state.is_resolving();
            let Some(state) = self.attempts.get(&attempt).filter(concerns) else { continue };
            let age = now.since(state.since);
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

    /// In doubt: asks the gateway, and the regions once it is dead or decides no more. Asked too early, votes become final
    /// that the gateway could still have withdrawn.
    fn ask(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let state = &self.attempts[&attempt];
        let gateway = attempt.txn.gateway;
        if cx.is_past_asking(gateway, state.over, cx.now.since(state.since)) {
            return self.request_votes(near, attempt, cx);
        }
        cx.send(gateway, Note::AskGateway { meta: state.meta.clone() });
    }

    /// The gateway decides no more.
    pub(crate) fn on_over(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        if let Some(state) = self.attempts.get_mut(&attempt)
            && state.is_in_doubt()
            && !state.over
        {
            state.over = true;
            self.request_votes(near, attempt, cx);
        }
    }

    fn request_votes(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        self.count_votes(near, attempt, cx);
        let state = &self.attempts[&attempt];
        if state.decision().is_some() {
            return;
        }
        cx.fx.count("commit.in_doubt_asks");
        let meta = state.meta.clone();
        // Those whose votes are known as well: they may know the outcome by now. This region only as long as its vote may still change.
        let own = state.vote.as_ref().is_some_and(Vote::is_final);
        let settled = if own { cx.me.region.into() } else { Regions::NONE };
        for region in meta.electorate.without(settled).iter() {
            cx.send(meta.coordinator_in(region), Note::AskVote { meta: meta.clone() });
        }
        cx.request_highs(&meta);
        self.lead_resolution(near, attempt, cx);
    }

    /// Drops the attempts that are resolved, or that this region has no part in, once they are old. One that was refused stays, within bounds, as
    /// long as another region may be prepared for it: should that one be away now, it has to hear of the refusal.
    fn forget(&mut self, near: &NearCoordinator<'_>, cx: &mut Context<'_>) {
        let (age, refusals_kept) = (cx.config.forget_after, cx.config.refusals_kept);
        let (after, mut kept) = (self.walked, self.kept);
        let old: Vec<Attempt> = self.forgettable(after, cx.now.minus(age), age, cx.now).take(FORGET_MAX).collect();
        work::add(old.len());
        let is_done = |attempt: &Attempt| {
            let state = &self.attempts[attempt];
            let stays = kept < refusals_kept && state.is_wanted() && self.may_be_prepared_elsewhere(near, cx, &state.meta);
            kept += usize::from(stays);
            !stays
        };
        let gone: Vec<Attempt> = old.iter().copied().filter(is_done).collect();
        // The next walk begins anew once this one has come to the end.
        self.walked = old.last().copied().filter(|_| old.len() == FORGET_MAX);
        self.kept = if self.walked.is_some() { kept } else { 0 };
        if gone.is_empty() {
            return;
        }
        let mut batch = Batch::new();
        for attempt in &gone {
            let state = self.attempts.remove(attempt);
            self.voted -= usize::from(state.is_some_and(|state| state.vote.is_some()));
            self.unresolved.remove(attempt);
            self.assumed.remove(attempt);
            batch.delete_record(VOTES, records::attempt_key(attempt));
            self.forgotten = self.forgotten.max(attempt.made);
        }
        Number::Forgotten.put(&mut batch, self.forgotten.bits());
        cx.fx.persist(batch);
    }

    /// True unless every other site that the attempt concerns has closed its timestamp: in any region, for those without a vote may carry it.
    fn may_be_prepared_elsewhere(&self, near: &NearCoordinator<'_>, cx: &Shared, meta: &Meta) -> bool {
        let regions = self.survivors(cx, meta);
        let others = regions.iter().flat_map(|region| meta.participants.iter().map(move |shard| SiteId { region, shard: *shard }));
        let mut others = others.filter(|site| *site != cx.me);
        near.cohort.has_entry(&meta.attempt) || others.any(|site| cx.peers.closed(site) < meta.at)
    }

    /// The timestamp up to which this site is in doubt about nothing, carries nothing, takes part in no resolution, and will not in this epoch. This
    /// survives a crash, since the next incarnation issues no timestamp at or below the clock bound on disk. Zero until the site knows which attempts
    /// it has to carry.
    pub(crate) fn close(&mut self, near: &NearCoordinator<'_>, own_closed: Timestamp, cx: &Shared) -> Timestamp {
        let closed = own_closed.min(cx.clock.bound());
        let open = self.unresolved.iter().map(|attempt| &self.attempts[attempt]);
        let open = open.filter(|state| state.is_in_doubt() || state.is_preparing() || state.is_resolving());
        let closed = open.map(|state| state.meta.at.previous()).min().map_or(closed, |lowest| lowest.min(closed));
        self.closed = closed.max(self.closed);
        if near.mover.is_settled(cx) || !cx.has_copy() { closed } else { Timestamp::ZERO }
    }
}

/// What is done by rules that are broken.
impl Coordinator {
    /// Casts another vote on `attempt`, whatever was voted before.
    fn vote_again(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, vote: Vote, cx: &mut Context<'_>) {
        let before = self.attempts.get_mut(&attempt).and_then(|state| state.vote.take());
        self.voted -= usize::from(before.is_some());
        self.vote(near, attempt, vote, Batch::new(), cx);
    }

    /// Ballot 1 as plain Paxos runs it: accepts the commit that somebody in doubt asks about, whatever was voted at ballot 0.
    fn accept_at_ballot_one(&mut self, near: &NearCoordinator<'_>, meta: Meta, cx: &mut Context<'_>) {
        let attempt = meta.attempt;
        if self.attempts[&attempt].vote == Some(Vote::No(Refusal::Superseded)) {
            return;
        }
        self.vote_again(near, attempt, Vote::Firm, cx);
        let accepted = Promise::Vote(Voted { meta: meta.clone(), region: cx.me.region, vote: Vote::Firm, high: Timestamp::ZERO });
        for region in meta.electorate.iter() {
            cx.fx.persist(Batch::new()).send(meta.coordinator_in(region), accepted.clone());
        }
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
