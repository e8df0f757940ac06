//! Voting: the two-phase commit inside the region, and its one vote.
//!
//! ```text
//!   Accept ─▶ Prepare to the cohorts ─▶ all prepared ─▶ Yes ─▶ the gateway
//!                                    └▶ one cannot   ─▶ No  ─▶ the gateway, the cohorts let go
//!   a site alone: prepared ─▶ Firm, with the rows ─▶ the gateway
//!   AskVote: a yes becomes firm, what is not cast a No      Withdraw: what is not final becomes a No
//! ```
//!
//! Invariant: a vote is on disk before it is told; a final one never changes. A later attempt of a transaction says that the earlier ones aborted.

use super::{Coordinator, Supersedes};
use crate::context::{Context, Local};
use crate::message::{Attempt, Meta, Note, Part, Promise, Voted};
use crate::planted::Planted;
use crate::views::NearCoordinator;
use rhumb_commit::votes::{Decision, Refusal, Vote};
use rhumb_core::{Batch, SiteId, Timestamp};

impl Coordinator {
    /// True if this region has neither voted on `attempt`, which it knows, nor heard how it ended.
    pub(crate) fn awaits_vote(&self, attempt: &Attempt) -> bool {
        self.attempts.get(attempt).is_some_and(|state| state.vote.is_none() && state.decision().is_none())
    }

    /// The attempts of the same transaction made before `attempt`, or after it.
    pub(super) fn siblings(&self, attempt: Attempt) -> (Vec<Attempt>, Vec<Attempt>) {
        let of_txn = |made| Attempt { txn: attempt.txn, made };
        let known = self.attempts.range(of_txn(Timestamp::ZERO)..=of_txn(Timestamp::MAX)).map(|(known, _)| *known);
        known.filter(|known| *known != attempt).partition(|known| *known < attempt)
    }

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
        let closed = self.closed;
        let state = self.watched_state_of(near, &meta, cx);
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
    pub(super) fn have_prepared(&mut self, meta: &Meta, parts: Vec<(u16, Part)>, supersedes: Supersedes, cx: &mut Context<'_>) {
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
    pub(super) fn abort_earlier(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) -> Supersedes {
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

    /// The only site of the cluster is prepared: the attempt commits with this region's yes, once that is on disk, and so are its rows in `batch`.
    /// They cannot be taken back, so the yes is firm.
    pub(crate) fn on_committing(
        &mut self,
        near: &NearCoordinator<'_>,
        attempt: Attempt,
        floor: Timestamp,
        batch: Batch,
        cx: &mut Context<'_>,
    ) {
        let state = self.attempts.get_mut(&attempt).expect("its vote is awaited");
        state.in_one_phase = Some(floor);
        let vote = if cx.rules.breaks(Planted::CommittingTakenBack) { Vote::Yes } else { Vote::Firm };
        self.vote(near, attempt, vote, batch, cx);
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
    pub(super) fn have_unprepared(&mut self, meta: &Meta, cx: &mut Context<'_>) {
        for &shard in &meta.participants {
            let cohort = SiteId { region: cx.me.region, shard };
            cx.send(cohort, Note::Unprepare { attempt: meta.attempt });
        }
    }

    /// Tells this region's vote to `to`, after `batch` and all before it is on disk.
    pub(super) fn send_vote(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, to: &[SiteId], batch: Batch, cx: &mut Context<'_>) {
        let state = &self.attempts[&attempt];
        let vote = state.vote.clone().expect("told once cast");
        let voted = Voted { meta: state.meta.clone(), region: cx.me.region, vote, high: near.cohort.highest() };
        let mut persist = cx.fx.persist(batch);
        for site in to {
            persist = persist.send(*site, Promise::Vote(voted.clone()));
        }
    }

    /// Sends a vote just cast to `from` as well, unless it gets it anyway.
    pub(super) fn send_vote_besides(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, from: SiteId, cx: &mut Context<'_>) {
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
            let is_resolving = self.attempts.get(&attempt).is_some_and(|state| state.is_resolving());
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

    /// The gateway takes the attempt back, as far as that is still possible.
    pub(crate) fn on_withdraw(&mut self, near: &NearCoordinator<'_>, from: SiteId, meta: Meta, cx: &mut Context<'_>) {
        let attempt = meta.attempt;
        if self.is_forgotten(&attempt) {
            return cx.fx.count("commit.withdraw_forgotten");
        }
        let state = self.watched_state_of(near, &meta, cx);
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
}

/// What is done by rules that are broken.
impl Coordinator {
    /// Casts another vote on `attempt`, whatever was voted before.
    pub(super) fn vote_again(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, vote: Vote, cx: &mut Context<'_>) {
        let before = self.attempts.get_mut(&attempt).and_then(|state| state.vote.take());
        self.voted -= usize::from(before.is_some());
        self.vote(near, attempt, vote, Batch::new(), cx);
    }

    /// Ballot 1 as plain Paxos runs it: accepts the commit that somebody in doubt asks about, whatever was voted at ballot 0.
    pub(super) fn accept_at_ballot_one(&mut self, near: &NearCoordinator<'_>, meta: Meta, cx: &mut Context<'_>) {
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
