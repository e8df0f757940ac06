//! Memory: how long attempts are kept, and up to which timestamp this site is done with all of them.
//!
//! Invariant: what is forgotten gets no vote any more; a refusal is kept, within bounds, as long as another region may be prepared for what it
//! refused.

use super::Coordinator;
use crate::config::FORGET_MAX;
use crate::context::{Context, Shared};
use crate::job::Job;
use crate::message::{Attempt, Meta};
use crate::records::{self, Number, VOTES};
use crate::views::NearCoordinator;
use rhumb_core::{Batch, SiteId, Span, Time, Timestamp, work};
use std::ops::Bound;

impl Coordinator {
    /// The attempts after `after` made up to `floor` that are over for this region and were heard of first `age` ago or longer.
    pub(super) fn forgettable(&self, after: Option<Attempt>, floor: Time, age: Span, now: Time) -> impl Iterator<Item = Attempt> {
        let floor = Timestamp::from_time(floor);
        // An attempt is made after its transaction began.
        let last = Attempt::last_begun(floor);
        let begin = after.filter(|after| *after < last).map_or(Bound::Unbounded, Bound::Excluded);
        let begun_by_then = self.attempts.range((begin, Bound::Included(last)));
        begun_by_then
            .filter(move |(attempt, state)| attempt.made <= floor && state.is_over() && now.since(state.since) >= age)
            .map(|(attempt, _)| *attempt)
    }

    /// An incarnation begins, whose clock and those of all incarnations before have stood at `bound` at the most. They have applied nothing above
    /// `highest`.
    pub(crate) fn begin_above(&mut self, bound: Timestamp, highest: Timestamp) {
        self.closed = bound;
        self.remembers_from = bound.max(highest);
    }

    /// An earlier incarnation has forgotten attempts made at or below `forgotten`.
    pub(crate) fn recover_forgotten(&mut self, forgotten: Timestamp) {
        self.forgotten = forgotten;
    }

    /// What is known of `meta`'s attempt, which is a new one if need be. If the attempt was forgotten here, it has no vote: it may have said yes
    /// once.
    pub(super) fn state_of_forgotten(&mut self, cx: &Shared, meta: &Meta) {
        let is_forgotten = self.is_forgotten(&meta.attempt);
        self.state_of(meta, cx.now).stands_in |= is_forgotten;
    }

    pub(super) fn is_forgotten(&self, attempt: &Attempt) -> bool {
        attempt.made <= self.forgotten && self.attempts.get(attempt).is_none_or(|state| state.stands_in)
    }

    /// Drops the attempts that are resolved, or that this region has no part in, once they are old. One that was refused stays, within bounds, as
    /// long as another region may be prepared for it: should that one be away now, it has to hear of the refusal.
    pub(super) fn forget(&mut self, near: &NearCoordinator<'_>, cx: &mut Context<'_>) {
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
            self.refused.remove(attempt);
            batch.delete_record(VOTES, records::attempt_key(attempt));
            self.forgotten = self.forgotten.max(attempt.made);
        }
        Number::Forgotten.put(&mut batch, self.forgotten.bits());
        cx.fx.persist(batch);
    }

    /// True unless every other site that the attempt concerns has closed its timestamp: in any region, for those without a vote may carry it.
    pub(super) fn may_be_prepared_elsewhere(&self, near: &NearCoordinator<'_>, cx: &Shared, meta: &Meta) -> bool {
        let regions = self.survivors(cx, meta);
        let others = regions.iter().flat_map(|region| meta.participants.iter().map(move |shard| SiteId { region, shard: *shard }));
        let mut others = others.filter(|site| *site != cx.me);
        near.cohort.has_entry(&meta.attempt) || others.any(|site| cx.peers.closed(site) < meta.at)
    }

    /// The timestamp up to which this site is in doubt about nothing, carries nothing, takes part in no resolution, and will not in this epoch: the
    /// next incarnation issues no timestamp at or below the clock bound on disk. Zero until the site knows which attempts it has to carry.
    pub(crate) fn close(&mut self, near: &NearCoordinator<'_>, own_closed: Timestamp, cx: &Shared) -> Timestamp {
        let closed = own_closed.min(cx.clock.bound());
        let open = self.unresolved.iter().map(|attempt| &self.attempts[attempt]);
        let open = open.filter(|state| state.is_in_doubt() || state.is_preparing() || state.is_resolving());
        let closed = open.map(|state| state.meta.at.previous()).min().map_or(closed, |lowest| lowest.min(closed));
        self.closed = closed.max(self.closed);
        if near.mover.is_settled(cx) || !cx.has_copy() { closed } else { Timestamp::ZERO }
    }

    /// What this site tells others that it has [closed](Self::close): up to where that survives a crash. Who hears it may forget what it would need to
    /// be told of an attempt that it lets go of, so that must be on disk, and it is seldom that anything waits for it there.
    pub(crate) fn durably_closed(&mut self, closed: Timestamp, cx: &mut Context<'_>) -> Timestamp {
        // It may have taken over what another site is in doubt about.
        self.closed_on_disk = self.closed_on_disk.min(closed);
        if closed > self.closed_on_disk {
            let token = cx.jobs.begin(Job::Closed(closed));
            cx.fx.persist(Batch::new()).notify(token);
        }
        self.closed_on_disk
    }

    /// All that this site had let go of when it closed `closed` is on disk.
    pub(crate) fn on_closed(&mut self, closed: Timestamp) {
        self.closed_on_disk = closed;
    }
}
