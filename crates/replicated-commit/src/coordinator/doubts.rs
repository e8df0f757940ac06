//! Doubts: an attempt that this region has promised to commit and whose outcome it does not know. It asks the gateway, then all regions for their
//! votes, and counts them.
//!
//! Invariant: only final votes count, and none once this site has promised a round of a resolution. A region that has forgotten an attempt did not
//! commit it if its log does not hold it; only a replica that has waited for the attempt ever since, and read that log without a gap, can tell.

use super::Coordinator;
use super::attempt::AttemptState;
use crate::context::{Context, Shared};
use crate::message::{Attempt, Meta, Note, Voted};
use crate::planted::Planted;
use crate::resolution::Leader;
use crate::views::{CoordinatorView, NearCoordinator};
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::{Decision, Refusal, Tally, Vote};
use rhumb_core::{RegionId, SiteId, Timestamp, work};

impl Coordinator {
    /// Attempts that have waited long for an outcome: their gateway is silent, and regions that could decide are out.
    pub(crate) fn in_doubt(&self, cx: &Shared) -> usize {
        let long = cx.config.ask_after * 2;
        let unresolved = self.unresolved.iter().map(|attempt| &self.attempts[attempt]);
        unresolved.filter(|state| state.is_in_doubt() && cx.now.since(state.since) > long).count()
    }

    /// What is known of an attempt that somebody is in doubt about, with its outcome if anything in this site knows it.
    pub(super) fn look_up(&mut self, near: &NearCoordinator<'_>, meta: &Meta, cx: &mut Context<'_>) {
        let attempt = meta.attempt;
        let state = self.watched_state_of(near, meta, cx);
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
            state.tally.record(region, vote.clone(), cx.rules);
        }
        state.tally.hear_high(voted.coordinator(), *high);
        if region == cx.me.region && !vote.is_yes() {
            // Only now that the refusal is on disk: a new incarnation that had forgotten it could count a cohort as prepared
            // that has let go.
            self.have_unprepared(meta, cx);
        }
        self.count_votes(near, attempt, cx);
        self.rest_without_copy(attempt, cx);
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

    /// Where this region holds no copy any more and all others that could vote have forgotten the attempt, have said what they voted or are lost, it
    /// asks no more: nobody here waits for the outcome, and no log is read here that would tell it. It stays prepared. Regions that receive this
    /// region's `Stopped` learn of the doubt from that, and a copy brings the outcome.
    pub(super) fn rest_without_copy(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        let (has_copy, lost) = (cx.has_copy(), self.attempts.get(&attempt).map_or(Regions::NONE, |state| self.lost_of(cx, &state.meta)));
        let Some(state) = self.attempts.get_mut(&attempt).filter(|state| state.is_in_doubt() && !has_copy) else { return };
        let forgotten: Regions = state.forgotten_by.keys().copied().collect();
        let voted: Regions = state.final_votes().map(|(region, _)| region).collect();
        // Who takes part in a resolution is told how that ends.
        let said = if state.acceptor.is_bound() { forgotten } else { forgotten.or(voted).or(lost) };
        let others = state.meta.electorate.without(cx.me.region.into());
        if said.and(others) != others {
            return;
        }
        cx.fx.count("commit.rests_without_copy");
        state.rest(true);
        self.unresolved.remove(&attempt);
    }

    /// The votes as far as they are known. A region that has forgotten the attempt, and whose log does not hold it, did not commit it and will never
    /// vote yes. A replica that is prepared for the attempt, or carries it and lacks its rows, would have found it in the log, and so would a
    /// coordinator that has [watched](AttemptState::watched) it; another one may have taken it over and forgotten that. And the log must have been read
    /// without a gap: not while rows are being copied, and not for attempts that were in doubt here before the copy. If an attempt is still prepared
    /// here, the source of the copy was in doubt about it, too: no log had dropped it by then, and each log has been read from its beginning since.
    pub(super) fn tally(&self, near: &NearCoordinator<'_>, cx: &Shared, state: &AttemptState) -> Tally {
        let mut tally = state.tally.clone();
        state.meta.refuse_for_lost(&mut tally);
        let has_waited = near.cohort.lacks(&state.meta.attempt) || state.watched || cx.rules.breaks(Planted::TakenOverIsAbsent);
        let is_named = state.meta.at > near.cohort.collected();
        let reads_logs = near.mover.has_rows() && has_waited && (is_named || near.mover.since() <= state.meta.epoch);
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
        self.remembers_from = self.remembers_from.max(near.cohort.highest_applied());
        for state in self.attempts.values_mut() {
            state.watched = false;
            state.bound.clear();
            state.lacking.clear();
        }
        let in_doubt = |state: &&mut Box<AttemptState>| state.is_in_doubt() && state.meta.epoch < epoch;
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

    pub(super) fn count_votes(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(state) = self.attempts.get(&attempt).filter(|state| state.decision().is_none()) else { return };
        let is_bound = state.acceptor.is_bound() && !cx.rules.breaks(Planted::LateWordCounts);
        if is_bound || cx.is_lost(cx.me.region, &state.meta) {
            return; // only a round decides it; or the others have done so without this region
        }
        let tally = self.tally(near, cx, state);
        let electorate = state.meta.electorate;
        let outcome = tally.outcome(electorate);
        let outcome = if cx.rules.breaks(Planted::ProvisionalCounts) { tally.outcome_at_gateway(electorate) } else { outcome };
        let Some(outcome) = outcome else { return };
        let meta = state.meta.clone();
        let Some(decision) = cx.decision(outcome, &tally, &meta, self.lost_of(cx, &meta)) else { return };
        if state.in_one_phase.is_none() {
            cx.fx.count("commit.worked_out");
        }
        self.conclude_as_coordinator(near, &meta, decision, cx);
    }

    /// In doubt: asks the gateway, and the regions once it is dead or decides no more. Asked too early, votes become final
    /// that the gateway could still have withdrawn.
    pub(super) fn ask(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
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

    pub(super) fn request_votes(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
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
}
