//! One attempt, as the coordinator of a region knows it.
//!
//! ```text
//!   Accept ─▶ Open ─▶ committed ─▶ Applying ─▶ all cohorts have applied ─▶ Over
//!             │  ▲    aborted ──────────────────────────────────────────▶ Over
//!             ▼  │
//!           Resting: its outcome is among copied rows, or will be
//! ```
//!
//! Its vote is apart from that: a region may vote and hear of the outcome in either order, or do only one of the two.

use crate::message::{Meta, Part};
use crate::records::{self, VOTES, VoteRecord};
use crate::resolution::{Acceptor, Leader};
use crate::trace::Trace;
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::{Decision, Tally, Vote};
use rhumb_core::{Batch, RegionId, SiteId, Time, Timestamp, record};
use std::collections::{BTreeMap, BTreeSet};

/// How far an attempt has come in this region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its outcome is not known here.
    Open,
    /// Nor is it, and nobody here waits for it.
    Resting,
    /// It has committed; cohorts of this region are applying it.
    Applying {
        /// Up to where a snapshot must reach that sees it.
        floor: Timestamp,
    },
    /// It has ended, and nobody here waits for it any more.
    Over(Decision),
}

/// What a coordinator knows of one attempt.
#[derive(Clone, Debug)]
pub(super) struct AttemptState {
    pub(super) meta: Meta,
    /// What it does in each shard; empty if no `Accept` came, and once resolved.
    pub(super) parts: BTreeMap<u16, Part>,
    /// This region's vote, on disk or on its way there.
    pub(super) vote: Option<Vote>,
    pub(super) tally: Tally,
    phase: Phase,
    pub(super) prepared: BTreeSet<u16>,
    pub(super) applied: BTreeSet<u16>,
    /// Peers that have forgotten it, and the ends of their logs.
    pub(super) forgotten_by: BTreeMap<RegionId, u64>,
    pub(super) since: Time,
    /// Had it been taken over before this state began, that was remembered then; if it is later, the state learns so. Not if rows were copied since.
    pub(super) watched: bool,
    /// Its gateway has said that it decides no more.
    pub(super) over: bool,
    /// Somebody in doubt has asked for this region's vote: it may not reach the others that this region reaches.
    pub(super) asked: bool,
    /// Regions that are lost, as an operator says who cannot declare them so before this is settled.
    pub(super) presumed_lost: Regions,
    /// This region's part in its resolution, on disk or on its way there.
    pub(super) acceptor: Acceptor,
    /// The attempt's gateway and cohorts, other sites of this region, that leave its outcome to this one; what they had seen is in the tally.
    pub(super) bound: BTreeSet<SiteId>,
    /// The round that this region leads, and when it may begin another.
    pub(super) leader: Option<Leader>,
    /// What the attempt reads and writes in this shard, as a region says that is prepared for it, or a leader that proposes to commit it by
    /// assumption.
    pub(super) contents: Option<Part>,
    /// It was forgotten here, and is kept again for what it has promised: it has no vote.
    pub(super) stands_in: bool,
    /// What the rows here say of it, where others have forgotten it.
    pub(super) trace: Trace,
    /// The cohorts of this region, at other sites, that have certainly not applied it.
    pub(super) lacking: BTreeSet<SiteId>,
    /// What this region proposes rests on votes of lost regions that nobody has seen.
    pub(super) assumes: bool,
    pub(super) leads_from: Time,
    /// The number of the highest round of others that was in the way of one of this region's.
    pub(super) outranked_by: u64,
    /// It stays on record though this region has no vote: others here have acted on its outcome.
    pub(super) kept: bool,
    /// That it committed is on disk or on its way there, though not all cohorts have applied it.
    pub(super) commit_on_record: bool,
    /// The floor with which it commits by this region's vote alone: its rows go to disk along with that.
    pub(super) in_one_phase: Option<Timestamp>,
}

impl AttemptState {
    pub(super) fn new(meta: Meta, since: Time) -> AttemptState {
        AttemptState {
            meta,
            parts: BTreeMap::new(),
            vote: None,
            tally: Tally::default(),
            phase: Phase::Open,
            prepared: BTreeSet::new(),
            applied: BTreeSet::new(),
            forgotten_by: BTreeMap::new(),
            since,
            watched: false,
            over: false,
            asked: false,
            presumed_lost: Regions::NONE,
            acceptor: Acceptor::default(),
            bound: BTreeSet::new(),
            leader: None,
            contents: None,
            trace: Trace::default(),
            lacking: BTreeSet::new(),
            assumes: false,
            stands_in: false,
            leads_from: Time::ZERO,
            outranked_by: 0,
            kept: false,
            commit_on_record: false,
            in_one_phase: None,
        }
    }

    /// As `record` of an earlier incarnation has it; region `own` has no other cohorts than its coordinator if `is_only_cohort`. The commit of a region
    /// that voted yes is on disk with the first cohort's rows, and others may still wait for it; where it did not, rows come by the log.
    pub(super) fn recovered(record: VoteRecord, own: RegionId, is_only_cohort: bool, since: Time) -> AttemptState {
        let VoteRecord { meta, vote, decision, acceptor } = record;
        let mut state = AttemptState { vote, acceptor, kept: true, ..AttemptState::new(meta, since) };
        state.commit_on_record = decision.is_some_and(Decision::is_commit);
        state.stands_in = state.vote.is_none() && decision.is_none() && state.meta.electorate.contains(own);
        state.phase = match decision {
            Some(Decision::Committed { floor }) if !is_only_cohort && state.has_yes() => Phase::Applying { floor },
            Some(decision) => Phase::Over(decision),
            None if state.has_yes() || state.acceptor.is_bound() => Phase::Open,
            None => Phase::Resting,
        };
        if let Some(vote) = &state.vote {
            state.tally.record_if_open(own, vote.clone());
        }
        state
    }

    pub(super) fn put_record(&self, batch: &mut Batch) {
        if self.vote.is_some() || self.kept || self.acceptor.is_bound() {
            let AttemptState { meta, vote, acceptor, .. } = self;
            // A commit goes on record with its rows, or before other sites hear of it: else the next incarnation finds out.
            let has_decision = |decision: &Decision| !decision.is_commit() || self.is_resolved() || self.commit_on_record;
            let in_one_phase = self.in_one_phase.map(|floor| Decision::Committed { floor });
            let decision = self.decision().filter(has_decision).or(in_one_phase);
            let record = VoteRecord { meta: meta.clone(), vote: vote.clone(), decision, acceptor: acceptor.clone() };
            batch.put_record(VOTES, records::attempt_key(&meta.attempt), record::encode(&record));
        }
    }

    /// How it ended, if that is known here.
    pub(super) fn decision(&self) -> Option<Decision> {
        match self.phase {
            Phase::Open | Phase::Resting => None,
            Phase::Applying { floor } => Some(Decision::Committed { floor }),
            Phase::Over(decision) => Some(decision),
        }
    }

    /// True if nobody in this region waits for its outcome, or waits any more.
    pub(super) fn is_resolved(&self) -> bool {
        matches!(self.phase, Phase::Resting | Phase::Over(_))
    }

    /// Its outcome is known. One that aborted is over at once.
    pub(super) fn decide(&mut self, decision: Decision) {
        assert!(self.decision().is_none_or(|known| known.outcome() == decision.outcome()), "an outcome never changes");
        self.phase = match (self.phase, decision) {
            (Phase::Open | Phase::Applying { .. }, Decision::Committed { floor }) => Phase::Applying { floor },
            (Phase::Resting | Phase::Over(_), _) | (_, Decision::Aborted) => Phase::Over(decision),
        };
    }

    /// It counted as aborted, and has committed.
    pub(super) fn overrule(&mut self, floor: Timestamp) {
        self.phase = Phase::Over(Decision::Committed { floor });
    }

    /// Nobody in this region waits for it any more. True if somebody did.
    pub(super) fn resolve(&mut self) -> bool {
        let waited = !self.is_resolved();
        self.phase = self.decision().map_or(Phase::Resting, Phase::Over);
        waited
    }

    /// Whether somebody in this region waits for its outcome, which is not known.
    pub(super) fn rest(&mut self, rests: bool) {
        self.phase = if rests { Phase::Resting } else { Phase::Open };
    }

    /// True if this region has promised to commit and does not know whether to.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.has_yes() && self.decision().is_none()
    }

    /// True if this region has promised to commit and has its outcome among rows that it copied, whatever that is; or will copy, should it hold
    /// a copy again.
    pub(super) fn is_settled_by_copy(&self) -> bool {
        self.is_in_doubt() && self.is_resolved()
    }

    /// True if this region takes part in its resolution, and has not heard how that ended.
    pub(super) fn is_resolving(&self) -> bool {
        self.acceptor.is_bound() && self.decision().is_none() && !self.is_left()
    }

    /// True if this region, which has not promised to commit it, waits for its outcome no more.
    pub(super) fn is_left(&self) -> bool {
        !self.has_yes() && self.phase == Phase::Resting
    }

    /// This region takes part in its resolution.
    pub(super) fn take_part(&mut self) {
        if self.is_left() {
            self.phase = Phase::Open;
        }
    }

    /// True if this region has no part in it any more. A vote whose outcome was only copied stays, so that nobody takes its absence for a refusal.
    pub(super) fn is_over(&self) -> bool {
        let may_commit = self.has_yes() || (self.acceptor.is_bound() && !self.is_left());
        !may_commit || (self.is_resolved() && self.decision().is_some())
    }

    /// The sites of the region of `site`, its coordinator, that may act on the attempt's outcome without it: the gateway, which counts votes, and
    /// cohorts, which take over logs. As all survivors, they are waited for: no span of time would do where clocks may jump.
    pub(super) fn unbound(&self, site: SiteId) -> Vec<SiteId> {
        let Meta { attempt, participants, .. } = &self.meta;
        let cohorts = participants.iter().map(|shard| SiteId { shard: *shard, ..site });
        let gateway = Some(attempt.txn.gateway).filter(|gateway| gateway.region == site.region && !self.over);
        let near: BTreeSet<SiteId> = cohorts.chain(gateway).filter(|near| *near != site && self.decision().is_none()).collect();
        near.difference(&self.bound).copied().collect()
    }

    /// Region `own` leads another round, of these `survivors`: after the one that it leads, whether it has promised that itself or not.
    pub(super) fn lead(&mut self, own: RegionId, survivors: Regions) {
        self.leave_round();
        self.leader = Some(Leader::new(self.acceptor.next_round(self.outranked_by, own), survivors));
    }

    /// Leads its round no more. No other one gets that name.
    pub(super) fn leave_round(&mut self) {
        let led = self.leader.take().map_or(0, |leader| leader.round().number);
        self.outranked_by = self.outranked_by.max(led);
    }

    /// It must not commit by assumption: adds that to `batch`.
    pub(super) fn contest(&mut self, batch: &mut Batch) {
        self.acceptor.contest();
        self.kept = true;
        self.put_record(batch);
    }

    /// True if the cohorts of this region are asked whether they can prepare.
    pub(super) fn is_preparing(&self) -> bool {
        self.vote.is_none() && !self.parts.is_empty()
    }

    /// The final votes that were heard.
    pub(super) fn final_votes(&self) -> impl Iterator<Item = (RegionId, Vote)> {
        self.tally.final_votes().map(|(region, vote)| (region, vote.clone()))
    }

    /// True if others that are prepared for it, carry it or take part in its resolution are to learn from this region what became of it: its log
    /// does not say so, or they would not believe that.
    pub(super) fn is_wanted(&self) -> bool {
        match self.decision() {
            None => !self.has_yes(),
            Some(Decision::Aborted) => true,
            Some(Decision::Committed { .. }) => (self.kept && !self.has_yes()) || self.acceptor.is_bound(),
        }
    }

    /// True if this region is prepared by its vote.
    pub(super) fn has_yes(&self) -> bool {
        self.vote.as_ref().is_some_and(Vote::is_yes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolution::Round;
    use crate::testing::{ME, R1, Stage, ms};
    use rhumb_commit::votes::Refusal;

    /// A leader that has not promised its round itself, as its gateway is silent, begins another with fewer survivors: what the others
    /// promised in the first one must not count for the second.
    #[test]
    fn no_two_rounds_of_a_leader_have_one_name() {
        let meta = Meta { electorate: Regions::first(4), ..Stage::new(1).meta(R1, 100, &[0]) };
        let mut state = AttemptState::new(meta, Time::ZERO);
        let rounds = [3, 2].map(|survivors| {
            state.lead(ME.region, Regions::first(survivors));
            state.leader.as_ref().expect("it leads").round()
        });
        assert!(rounds[0] < rounds[1], "{rounds:?}");
    }

    /// What a new incarnation makes of a record.
    fn recovered(vote: Option<Vote>, decision: Option<Decision>, is_bound: bool, is_only_cohort: bool) -> AttemptState {
        let meta = Stage::new(2).meta(R1, 100, &[0, 1]);
        let mut acceptor = Acceptor::default();
        if is_bound {
            acceptor.promise(Round { number: 1, leader: R1.region }, Regions::NONE).expect("its first round");
        }
        AttemptState::recovered(VoteRecord { meta, vote, decision, acceptor }, ME.region, is_only_cohort, Time::ZERO)
    }

    #[test]
    fn only_a_commit_of_a_region_that_voted_yes_is_still_being_applied_after_a_restart() {
        let floor = ms(100);
        let committed = Decision::Committed { floor };
        for vote in [None, Some(Vote::No(Refusal::Locked)), Some(Vote::Yes), Some(Vote::Firm)] {
            let has_yes = vote.as_ref().is_some_and(Vote::is_yes);
            for is_bound in [false, true] {
                let phase = |decision, is_only_cohort| recovered(vote.clone(), decision, is_bound, is_only_cohort).phase;
                let waits = if has_yes { Phase::Applying { floor } } else { Phase::Over(committed) };
                assert_eq!(phase(Some(committed), false), waits, "{vote:?}");
                assert_eq!(phase(Some(committed), true), Phase::Over(committed), "{vote:?}: its one cohort has applied it");
                assert_eq!(phase(Some(Decision::Aborted), false), Phase::Over(Decision::Aborted), "{vote:?}");
                let open = if has_yes || is_bound { Phase::Open } else { Phase::Resting };
                assert_eq!(phase(None, false), open, "{vote:?}, bound: {is_bound}");
            }
        }
    }
}
