//! Resolution: how the surviving regions decide an attempt that only the votes of lost regions could decide.
//!
//! ```text
//!   leader: the coordinator of a region that is in doubt        every surviving region, the leader's too
//!     ├── Inquire (round) ─────────────────────────────────────────▶│ makes its vote final, counts no votes by itself from now on,
//!     │◀────────────────────────────────── Testified, once on disk ─┤ and says what it knows: votes, or what it has accepted
//!     │ counts, the votes of lost regions that nobody knows as yes
//!     ├── Propose (round, decision) ───────────────────────────────▶│ accepts it, unless it has promised a higher round
//!     │◀─────────────────────────────────── Accepted, once on disk ─┤
//!     │ all have accepted: decided
//! ```
//!
//! The votes of a lost region are gone with it. Where they could decide, the survivors cannot tell whether it voted yes, and a client was told so, or
//! no. So they agree on one of the two. This is single-decree Paxos (Lamport, "The part-time parliament") in which both quorums are *all* survivors.
//! So if a survivor knows how the attempt ended, or a vote of a lost region, that is known before anything is proposed; and if more regions are lost
//! later, each that is left knows the decision, unless it had forgotten the attempt.
//!
//! A site that has promised a round is *bound*: it concludes nothing from votes any more, and ignores claims that the attempt aborted. It believes a
//! claim of a commit unless it has accepted an abort: the yes-votes remain, and lost regions count as yes, so a later round decides on commit again
//! if nothing contests it.
//!
//! Two assumptions may contradict each other: of two attempts that write one row, each prepared at another survivor, the lost region can have voted
//! yes on one at the most. So a proposal to commit by assumption names the rows that the attempt reads and writes. A region that is prepared for an
//! earlier conflicting attempt *contests* the proposal. A region that accepts it contests each later conflicting attempt of its own, on disk, and
//! accepts nothing before those have ended: another survivor may know that one of them committed. A contested attempt aborts in the next round.
//!
//! A round fixes its participants. If another region is lost during the round, a new round begins without it, and every region that promises the new
//! round ignores messages of the lost one from then on.
//!
//! Invariants: a region promises and accepts rounds in their order, on disk before it says so; a leader proposes one decision in a round;
//! what all survivors have accepted in one round is the outcome of every later one.

use rhumb_commit::placement::Regions;
use rhumb_commit::votes::{Decision, Outcome, Tally, Vote};
use rhumb_core::{Ballot, RegionId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A round of one attempt's resolution, led by a region.
pub type Round = Ballot<RegionId>;

/// What a region has promised and accepted: kept on disk with its vote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Acceptor {
    register: rhumb_core::Acceptor<Decision, RegionId>,
    without: Regions,
    contested: bool,
}

/// What a region knows of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Testimony {
    /// The outcome, if it knows that.
    pub known: Option<Decision>,
    /// The final votes that it has seen, its own among them if it has one.
    pub votes: BTreeMap<RegionId, Vote>,
    /// What it has accepted last.
    pub accepted: Option<(Round, Decision)>,
    /// Another attempt is in the way of it here, and counts as committed, or may.
    pub contested: bool,
    /// It had resolved and forgotten the attempt when it was asked: if that committed by its vote, the log up to here has it.
    pub forgotten: Option<u64>,
    /// Somebody there waits for the outcome.
    pub waits: bool,
}

/// What the testimonies of all survivors say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One of them knows it, or all have accepted it before.
    Known(Decision),
    /// The votes decide.
    Counted(Outcome),
    /// The votes decide once those that nobody knows count as yes.
    Assumed(Outcome),
}

/// A region that leads a round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    round: Round,
    survivors: Regions,
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Inquiring { heard: BTreeMap<RegionId, Testimony> },
    Proposing { decision: Decision, accepted: Regions },
}

impl Acceptor {
    /// True if it has promised a round: nothing else than a round decides from now on.
    pub fn is_bound(&self) -> bool {
        self.register.promised().is_some()
    }

    /// The highest round that it has promised.
    pub fn promised(&self) -> Option<Round> {
        self.register.promised()
    }

    /// True if it has accepted last that the attempt aborted.
    pub fn has_accepted_abort(&self) -> bool {
        self.accepted().is_some_and(|(_, decision)| !decision.is_commit())
    }

    /// What it has accepted last.
    pub fn accepted(&self) -> Option<(Round, Decision)> {
        self.register.accepted().copied()
    }

    /// True if it must not commit by assumption, as another attempt may.
    pub fn is_contested(&self) -> bool {
        self.contested
    }

    /// Another attempt is in the way of it, and may commit by assumption.
    pub fn contest(&mut self) {
        self.contested = true;
    }

    /// The regions that the rounds which it has promised do without: what they say now comes too late.
    pub fn without(&self) -> Regions {
        self.without
    }

    /// Promises to take part in no round below `round`, which does without the regions that are `lost`. True if that round is new.
    ///
    /// # Errors
    ///
    /// It has promised a higher one.
    pub fn promise(&mut self, round: Round, lost: Regions) -> Result<bool, Round> {
        let is_new = self.register.promise(round)?;
        self.without = self.without.or(lost);
        Ok(is_new)
    }

    /// Accepts what the leader of `round` proposes.
    ///
    /// # Errors
    ///
    /// It has promised a higher one.
    pub fn accept(&mut self, round: Round, decision: Decision) -> Result<(), Round> {
        self.register.accept(round, decision).map(|_| ())
    }

    /// The first round after all that it has promised, and after `heard`, led by `leader`.
    pub fn next_round(&self, heard: u64, leader: RegionId) -> Round {
        self.register.next_ballot(heard, leader)
    }
}

impl Leader {
    /// The leader of `round`, in which the `survivors` take part. It has asked nobody yet.
    pub fn new(round: Round, survivors: Regions) -> Leader {
        Leader { round, survivors, phase: Phase::Inquiring { heard: BTreeMap::new() } }
    }

    /// Who takes part in the round.
    pub fn survivors(&self) -> Regions {
        self.survivors
    }

    /// The round that it leads.
    pub fn round(&self) -> Round {
        self.round
    }

    /// What it proposes, if it has come that far.
    pub fn proposed(&self) -> Option<Decision> {
        match self.phase {
            Phase::Inquiring { .. } => None,
            Phase::Proposing { decision, .. } => Some(decision),
        }
    }

    /// Those who take part and whose answer in this phase is still to come.
    pub fn awaited(&self) -> Regions {
        match &self.phase {
            Phase::Inquiring { heard } => self.survivors.without(heard.keys().copied().collect()),
            Phase::Proposing { accepted, .. } => self.survivors.without(*accepted),
        }
    }

    /// A region testifies in `round`.
    pub fn hear(&mut self, region: RegionId, round: Round, testimony: Testimony) {
        if let Phase::Inquiring { heard } = &mut self.phase
            && round == self.round
        {
            heard.insert(region, testimony);
        }
    }

    /// The regions that have forgotten the attempt, each with the end of its log.
    pub fn forgotten(&self) -> impl Iterator<Item = (RegionId, u64)> {
        let heard = match &self.phase {
            Phase::Inquiring { heard } => Some(heard),
            Phase::Proposing { .. } => None,
        };
        heard.into_iter().flatten().filter_map(|(region, testimony)| Some((*region, testimony.forgotten?)))
    }

    /// The outcome, once each of the survivors has been heard, if one of them knows it or all have accepted it.
    pub fn known(&self) -> Option<Decision> {
        let Phase::Inquiring { heard } = &self.phase else { return None };
        // What one of them has not accepted is not decided, and never will be.
        let accepted = heard.values().map(|testimony| testimony.accepted);
        let by_all = accepted.min_by_key(|accepted| accepted.map(|(round, _)| round)).flatten().map(|(_, decision)| decision);
        heard.values().find_map(|testimony| testimony.known).or(by_all)
    }

    /// True if nobody who has testified waits for the outcome.
    pub fn waits_nobody(&self) -> bool {
        match &self.phase {
            Phase::Inquiring { heard } => !heard.values().any(|testimony| testimony.waits),
            Phase::Proposing { .. } => false,
        }
    }

    /// What all testimonies say about the attempt of `electorate`, of which those `refusing` have no vote; once each of the survivors has been
    /// heard. A vote that nobody has seen counts as `assumed`.
    pub fn verdict(&self, electorate: Regions, refusing: Tally, assumed: &Vote) -> Option<Verdict> {
        let Phase::Inquiring { heard } = &self.phase else { return None };
        if let Some(decision) = self.known() {
            return Some(Verdict::Known(decision));
        }
        let mut tally = refusing;
        for (region, vote) in heard.values().flat_map(|testimony| &testimony.votes) {
            tally.record_if_open(*region, vote.clone());
        }
        if let Some(outcome) = tally.outcome(electorate) {
            return Some(Verdict::Counted(outcome));
        }
        electorate.iter().for_each(|region| tally.record_if_open(region, assumed.clone()));
        let contested = heard.values().any(|testimony| testimony.contested);
        tally.outcome(electorate).map(|outcome| Verdict::Assumed(if contested { Outcome::Aborted } else { outcome }))
    }

    /// Goes on to propose `decision`.
    pub fn propose(&mut self, decision: Decision) {
        self.phase = Phase::Proposing { decision, accepted: Regions::NONE };
    }

    /// A region has accepted what this leader proposes in `round`.
    pub fn hear_accepted(&mut self, region: RegionId, round: Round) {
        if let Phase::Proposing { accepted, .. } = &mut self.phase
            && round == self.round
        {
            *accepted = accepted.or(region.into());
        }
    }
}

impl fmt::Display for Testimony {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(decision) = self.known {
            write!(f, "{decision}, ")?;
        }
        if let Some(log_end) = self.forgotten {
            write!(f, "forgotten, log {log_end}, ")?;
        }
        if let Some((round, decision)) = self.accepted {
            write!(f, "accepted {decision} in round {round}, ")?;
        }
        if self.contested {
            write!(f, "contested, ")?;
        }
        if !self.waits {
            write!(f, "waits no more, ")?;
        }
        write!(f, "knows {{")?;
        for (index, (region, vote)) in self.votes.iter().enumerate() {
            write!(f, "{}{region} {vote}", if index > 0 { "," } else { "" })?;
        }
        write!(f, "}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_commit::votes::Refusal;
    use rhumb_core::Timestamp;

    const COMMIT: Decision = Decision::Committed { floor: Timestamp::ZERO };
    const NO: Vote = Vote::No(Refusal::UnknownTransaction);
    const A: RegionId = RegionId(0);
    const B: RegionId = RegionId(1);
    const C: RegionId = RegionId(2);

    fn round(number: u64, leader: RegionId) -> Round {
        Round { number, leader }
    }

    fn testimony<const N: usize>(votes: [(RegionId, Vote); N]) -> Testimony {
        Testimony { known: None, votes: votes.into(), accepted: None, contested: false, forgotten: None, waits: true }
    }

    /// What A, leading the first round, makes of these testimonies about an attempt of three regions, of which C is lost.
    fn verdict<const N: usize>(testimonies: [(RegionId, Testimony); N]) -> Option<Verdict> {
        let mut leader = Leader::new(round(1, A), [A, B].into_iter().collect());
        testimonies.into_iter().for_each(|(region, testimony)| leader.hear(region, round(1, A), testimony));
        leader.verdict(Regions::first(3), Tally::default(), &Vote::Firm)
    }

    #[test]
    fn what_is_promised_without_a_region_stays_without_it() {
        let mut acceptor = Acceptor::default();
        assert_eq!(acceptor.promise(round(1, B), C.into()), Ok(true));
        assert_eq!(acceptor.promise(round(1, A), A.into()), Err(round(1, B)));
        assert_eq!(acceptor.promise(round(2, A), Regions::NONE), Ok(true));
        assert_eq!(acceptor.accept(round(2, A), COMMIT), Ok(()));
        assert_eq!((acceptor.accepted(), acceptor.without()), (Some((round(2, A), COMMIT)), C.into()));
    }

    #[test]
    fn a_vote_of_a_lost_region_counts_as_yes_unless_somebody_has_seen_it() {
        let own = testimony([(A, Vote::Firm)]);
        assert_eq!(verdict([(A, own.clone()), (B, testimony([(B, NO)]))]), Some(Verdict::Assumed(Outcome::Committed)));
        assert_eq!(verdict([(A, own.clone()), (B, testimony([(B, NO), (C, NO)]))]), Some(Verdict::Counted(Outcome::Aborted)));
        assert_eq!(verdict([(A, own.clone()), (B, testimony([(B, Vote::Firm)]))]), Some(Verdict::Counted(Outcome::Committed)));
        let contested = Testimony { contested: true, ..testimony([(B, NO)]) };
        assert_eq!(verdict([(A, own), (B, contested)]), Some(Verdict::Assumed(Outcome::Aborted)));
    }

    #[test]
    fn what_all_survivors_have_accepted_is_proposed_again() {
        let accepted = |votes, number, decision| Testimony { accepted: Some((round(number, B), decision)), ..votes };
        let (own, other) = (testimony([(A, Vote::Firm)]), testimony([(B, NO)]));
        let all = [(A, accepted(own.clone(), 2, Decision::Aborted)), (B, accepted(other.clone(), 2, Decision::Aborted))];
        assert_eq!(verdict(all), Some(Verdict::Known(Decision::Aborted)));
        let some = [(A, own.clone()), (B, accepted(other.clone(), 2, Decision::Aborted))];
        assert_eq!(verdict(some), Some(Verdict::Assumed(Outcome::Committed)), "A has accepted nothing: it is not decided");
        let knows = Testimony { known: Some(Decision::Aborted), ..other };
        assert_eq!(verdict([(A, own), (B, knows)]), Some(Verdict::Known(Decision::Aborted)));
    }

    #[test]
    fn a_leader_goes_on_once_all_survivors_have_answered_in_its_round() {
        let survivors: Regions = [A, B].into_iter().collect();
        let mut leader = Leader::new(round(2, A), survivors);
        leader.hear(A, round(2, A), testimony([(A, Vote::Firm)]));
        leader.hear(B, round(1, A), testimony([(B, NO)]));
        assert_eq!(leader.awaited(), B.into(), "what was said in an earlier round does not count");
        leader.hear(B, round(2, A), testimony([(B, NO)]));
        assert!(leader.awaited().is_empty() && leader.proposed().is_none());
        leader.propose(COMMIT);
        assert_eq!((leader.proposed(), leader.awaited()), (Some(COMMIT), survivors));
        leader.hear_accepted(A, round(2, A));
        leader.hear_accepted(B, round(1, A));
        assert_eq!(leader.awaited(), B.into());
    }
}
