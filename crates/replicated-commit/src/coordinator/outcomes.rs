//! Outcomes: how an attempt ended, from whoever knows it, and to the sites of this region that act on it.
//!
//! Invariant: an abort is on disk before anybody acts on it, and a commit before a cohort at another site does; an outcome never changes.

use super::Coordinator;
use super::attempt::AttemptState;
use crate::config::ORPHANS_MAX;
use crate::context::{Context, Local, Shared};
use crate::message::{ATTEMPT, Attempt, Meta, Note, Part, Promise};
use crate::planted::Planted;
use crate::views::NearCoordinator;
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::Decision;
use rhumb_core::{Batch, RegionId, SiteId, Timestamp};
use std::collections::BTreeSet;

impl Coordinator {
    /// True if it is on record here that `attempt` committed.
    pub(crate) fn has_committed(&self, attempt: &Attempt) -> bool {
        self.attempts.get(attempt).is_some_and(|state| state.decision().is_some_and(Decision::is_commit))
    }

    /// True if this site has it on record that `attempt` aborted, or as coordinator will have.
    pub(crate) fn has_aborted(&self, attempt: &Attempt) -> bool {
        self.attempts.get(attempt).is_some_and(|state| state.decision() == Some(Decision::Aborted))
    }

    /// The regions that have no say on an attempt: what their logs tell of it comes too late.
    fn heard_not(&self, cx: &Shared, meta: &Meta) -> Regions {
        Regions::first(cx.topology.region_count()).without(self.survivors(cx, meta))
    }

    /// True if `region` had its say on `attempt`, which is on record here: it was not lost, nor presumed to be.
    pub(crate) fn counts_in(&self, cx: &Shared, attempt: &Attempt, region: RegionId) -> bool {
        self.attempts.get(attempt).is_some_and(|state| self.survivors(cx, &state.meta).contains(region))
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
    pub(super) fn send_aborted(&mut self, meta: &Meta, to: impl IntoIterator<Item = SiteId>, cx: &mut Context<'_>) {
        let without = self.heard_not(cx, meta);
        let state = self.attempts.get_mut(&meta.attempt).expect("it aborted here");
        let mut batch = Batch::new();
        if !std::mem::replace(&mut state.kept, true) {
            state.put_record(&mut batch);
        }
        let mut persist = cx.fx.persist(batch);
        for site in to {
            persist = persist.send(site, Promise::Aborted { meta: meta.clone(), without });
        }
    }

    /// The coordinator, another site of this region, has agreed `without` lost regions that it aborted: no late log or copy of one of them undoes
    /// that.
    pub(crate) fn keep_abort(&mut self, meta: &Meta, without: Regions, cx: &mut Context<'_>) {
        let state = self.state_of(meta, cx.now);
        state.presumed_lost = state.presumed_lost.or(without);
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
    pub(super) fn send_apply(&mut self, attempt: Attempt, parts: Vec<(u16, Option<Part>)>, cx: &mut Context<'_>) {
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
        let waited = self.attempts.get_mut(&attempt).is_some_and(|state| state.resolve());
        if waited {
            self.put_resolved(attempt, batch);
        }
        waited
    }

    /// Nobody looks after an attempt any more that is resolved: its record says so.
    pub(super) fn put_resolved(&mut self, attempt: Attempt, batch: &mut Batch) {
        let state = self.attempts.get_mut(&attempt).expect("it is resolved");
        state.parts.clear();
        // The record of a commit in one phase has said so from the first.
        if state.in_one_phase.is_none() {
            state.put_record(batch);
        }
        self.unresolved.remove(&attempt);
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
        let state = self.state_of(meta, cx.now);
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
        near.cohort.is_bound(attempt) || state.is_some_and(|state| may_abort(state))
    }

    /// This site has found the outcome: tells all regions that vote.
    pub(super) fn conclude_as_coordinator(&mut self, near: &NearCoordinator<'_>, meta: &Meta, decision: Decision, cx: &mut Context<'_>) {
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

    /// A region that took part in agreeing that the attempt aborted has it committed in its log, which this site takes over: it had forgotten that. Adds
    /// to `batch` that it committed.
    pub(crate) fn overrule_abort(&mut self, attempt: Attempt, floor: Timestamp, batch: &mut Batch) {
        if let Some(state) = self.attempts.get_mut(&attempt).filter(|state| state.decision() == Some(Decision::Aborted)) {
            state.overrule(floor);
            state.put_record(batch);
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
        if self.state_of(meta, cx.now).decision().is_none() {
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
    pub(super) fn distribute(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, decision: Decision, cx: &mut Context<'_>) {
        let state = self.attempts.get_mut(&attempt).expect("an outcome belongs to a state");
        state.decide(decision);
        // It is remembered from now on for as long as any other.
        state.since = cx.now;
        (state.leader, state.contents) = (None, None);
        self.assumed.remove(&attempt);
        self.refused.remove(&attempt);
        match decision {
            Decision::Committed { .. } => {
                cx.fx.agree(ATTEMPT, attempt, &Some(state.meta.at));
                self.have_applied(near, attempt, cx);
            }
            Decision::Aborted => {
                let meta = state.meta.clone();
                let without = self.heard_not(cx, &meta);
                let state = self.attempts.get_mut(&attempt).expect("an outcome belongs to a state");
                // The gateway of this region tells its client, by what is on record here.
                state.kept |= attempt.txn.gateway.region == cx.me.region;
                let mut told: BTreeSet<SiteId> =
                    meta.participants.iter().map(|shard| SiteId { region: cx.me.region, shard: *shard }).collect();
                told.extend(Some(attempt.txn.gateway).filter(|gateway| gateway.region == cx.me.region));
                let mut batch = Batch::new();
                self.put_resolved(attempt, &mut batch);
                let mut persist = cx.fx.persist(batch);
                for site in told {
                    persist = persist.send(site, Promise::Aborted { meta: meta.clone(), without });
                }
            }
        }
    }

    /// Has the cohorts apply a committed attempt, those that have not yet.
    pub(super) fn have_applied(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
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
        let has_yes = self.attempts.get(&meta.attempt).is_some_and(|state| state.has_yes());
        let have_applied = self.resolve(meta.attempt, &mut batch) || has_yes;
        if meta.two_rounds && have_applied {
            let confirmed = Promise::Confirmed { attempt: meta.attempt, region: cx.me.region };
            cx.fx.persist(batch).send(meta.attempt.txn.gateway, confirmed);
        } else if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
    }
}
