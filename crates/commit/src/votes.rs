//! Votes as write-once registers, and the outcome as a pure function of them.
//!
//! Every region has one durable vote per transaction attempt. A no is final at once. A yes is *provisional* at first: the
//! region is prepared, and only the attempt's gateway may count it. It becomes final in one of two ways, once and for
//! ever: *firm*, when somebody in doubt asks for it because the gateway is silent, or *withdrawn*, which is a no, when
//! the gateway itself takes the attempt back.
//!
//! ```text
//!                 ┌─▶ No ◀──────────────┐ withdrawn by the gateway, which has not concluded and now counts final votes only
//!     no vote yet ┤                     │
//!                 └─▶ Yes (provisional) ┴─▶ Firm   asked for by anybody else
//! ```
//!
//! Whose votes count is the attempt's *electorate*, which it carries with it: the regions that were active when its gateway
//! made it. The attempt commits if a majority of those is yes, and aborts if so many are no that a majority of yes is
//! impossible. The gateway counts every yes, all others count firm ones: whoever has seen enough knows the outcome.
//!
//! Why two kinds of yes: were every yes final, then with two of five regions out of reach the votes yes, yes, no of the
//! others would decide nothing until one of the two came back, and their rows would stay locked. As it is, the gateway,
//! knowing that it has concluded nothing and that nobody else may have, takes two yes-votes back and has its outcome.
//!
//! A region that has *forgotten* an attempt (it was resolved there and its record collected) will never vote yes on it
//! again, and if it knew the attempt as committed, the commit stands in its log. It counts as a no once its log has been
//! read that far without finding it.
//!
//! Source: Replicated Commit, section 3.2.2: a region is an acceptor of Paxos, its yes an acceptance. The two kinds of yes are ours.
//!
//! Invariants: a final vote never changes; a gateway that withdraws has not concluded, and concludes from final votes
//! only; hence an outcome, once reached by anybody, is everybody's.

use crate::placement::Regions;
use rhumb_core::{RegionId, Rules, SiteId, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A region's vote on an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Vote {
    /// It holds all locks, found all reads current, and is prepared on disk. Provisional: its gateway may count it and
    /// may withdraw it, until somebody else asks for it.
    Yes,
    /// The same, for ever.
    Firm,
    /// It will never be prepared for this attempt.
    No(Refusal),
}

/// Why a region votes no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// Another transaction holds a lock in the way.
    Locked,
    /// A shared lock that the transaction took at its read has been taken over by a writer.
    LockLost,
    /// What was read is no longer the newest.
    Stale,
    /// A written key has a version, or was read, at or above the proposed timestamp; a retry must lie above this one.
    TimestampTooLow(Timestamp),
    /// The region had not heard of the attempt when it was asked for its vote.
    UnknownTransaction,
    /// A later attempt of the same transaction is known: the gateway has given this one up.
    Superseded,
    /// A site of the region did not prepare in time.
    TimedOut,
    /// The attempt is of an epoch that has ended there: the placement has changed.
    StaleConfiguration,
    /// It would make a region active that has no copy of all rows yet, as far as is known there.
    CopyIncomplete(RegionId),
    /// The gateway took the attempt back while the yes was provisional, or before there was a vote.
    Withdrawn,
}

impl Vote {
    /// True if the region is prepared to commit.
    pub fn is_yes(&self) -> bool {
        matches!(self, Vote::Yes | Vote::Firm)
    }

    /// True if this vote can never change.
    pub fn is_final(&self) -> bool {
        *self != Vote::Yes
    }
}

/// What all votes together say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// A majority voted yes.
    Committed,
    /// A majority of yes is impossible.
    Aborted,
}

/// An outcome, with the floor that readers of a commit must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Decision {
    /// A majority voted yes.
    Committed {
        /// A snapshot that sees the commit is read at this timestamp or above it.
        floor: Timestamp,
    },
    /// A majority of yes is impossible.
    Aborted,
}

impl Decision {
    /// The outcome alone.
    pub fn outcome(self) -> Outcome {
        match self {
            Decision::Committed { .. } => Outcome::Committed,
            Decision::Aborted => Outcome::Aborted,
        }
    }

    /// True if the attempt committed.
    pub fn is_commit(self) -> bool {
        self.outcome() == Outcome::Committed
    }
}

/// The votes on one attempt that somebody has seen, and how high the sites asked had prepared then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    votes: BTreeMap<RegionId, Vote>,
    highs: BTreeMap<SiteId, Timestamp>,
}

impl Tally {
    /// Takes note of a region's vote. A final vote seen before stays as it is; while all `rules` hold, no other can follow.
    pub fn record<B: Copy + PartialEq>(&mut self, region: RegionId, vote: Vote, rules: Rules<B>) {
        if let Some(known) = self.of(region).filter(|known| known.is_final()) {
            let is_same = !vote.is_final() || known.is_yes() == vote.is_yes();
            debug_assert!(is_same || rules.are_broken(), "the vote of {region} changed from {known} to {vote}");
        }
        self.record_if_open(region, vote);
    }

    /// Takes note of a region's vote, unless a final one was seen.
    pub fn record_if_open(&mut self, region: RegionId, vote: Vote) {
        if !self.of(region).is_some_and(Vote::is_final) {
            self.votes.insert(region, vote);
        }
    }

    /// Takes note of the highest timestamp that `site` had prepared or applied when it voted, or was asked.
    pub fn hear_high(&mut self, site: SiteId, high: Timestamp) {
        let known = self.highs.entry(site).or_default();
        *known = high.max(*known);
    }

    /// The floor of the attempt if it commits: the highest timestamp heard of. The votes tell that of the coordinators' shard; none as long
    /// as a majority of `electorate` is missing in one of the `others`, unless all that are missing are `lost`.
    pub fn floor(&self, electorate: Regions, lost: Regions, mut others: impl Iterator<Item = u16>) -> Option<Timestamp> {
        let heard = |shard| self.highs.keys().filter(|site| site.shard == shard).map(|site| site.region).collect::<Regions>();
        let suffices =
            |heard: Regions| heard.and(electorate).len() >= electorate.majority() || electorate.without(lost).without(heard).is_empty();
        others.all(|shard| suffices(heard(shard))).then(|| self.highs.values().copied().max().unwrap_or(Timestamp::ZERO))
    }

    /// Overwrites a vote, as no correct site ever does.
    pub fn overwrite(&mut self, region: RegionId, vote: Vote) {
        self.votes.insert(region, vote);
    }

    /// The outcome among `electorate`, if the final votes seen decide it.
    pub fn outcome(&self, electorate: Regions) -> Option<Outcome> {
        self.decide(electorate, |vote| *vote == Vote::Firm)
    }

    /// The same for the attempt's gateway, which counts provisional votes too, as long as it has withdrawn none.
    pub fn outcome_at_gateway(&self, electorate: Regions) -> Option<Outcome> {
        self.decide(electorate, Vote::is_yes)
    }

    fn decide(&self, electorate: Regions, counts: impl Fn(&Vote) -> bool) -> Option<Outcome> {
        let votes = || self.votes.iter().filter(|(region, _)| electorate.contains(**region)).map(|(_, vote)| vote);
        let yes = votes().filter(|vote| counts(vote)).count();
        let no = votes().filter(|vote| !vote.is_yes()).count();
        if yes >= electorate.majority() {
            Some(Outcome::Committed)
        } else if no + electorate.majority() > electorate.len() {
            Some(Outcome::Aborted)
        } else {
            None
        }
    }

    /// The vote of `region`, if it was seen.
    pub fn of(&self, region: RegionId) -> Option<&Vote> {
        self.votes.get(&region)
    }

    /// The final votes seen.
    pub fn final_votes(&self) -> impl Iterator<Item = (RegionId, &Vote)> {
        self.votes.iter().filter(|(_, vote)| vote.is_final()).map(|(region, vote)| (*region, vote))
    }

    /// The number of votes seen.
    pub fn len(&self) -> usize {
        self.votes.len()
    }

    /// True if no vote was seen.
    pub fn is_empty(&self) -> bool {
        self.votes.is_empty()
    }

    /// The refusals seen, in the order of regions.
    pub fn refusals(&self) -> impl Iterator<Item = (RegionId, Refusal)> + '_ {
        self.votes.iter().filter_map(|(region, vote)| match vote {
            Vote::No(refusal) => Some((*region, *refusal)),
            Vote::Yes | Vote::Firm => None,
        })
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Vote::Yes => write!(f, "yes"),
            Vote::Firm => write!(f, "firm yes"),
            Vote::No(refusal) => write!(f, "no ({refusal})"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outcome().fmt(f)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Committed => write!(f, "committed"),
            Outcome::Aborted => write!(f, "aborted"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Locked => write!(f, "locked by another transaction"),
            Refusal::LockLost => write!(f, "a lock was taken over by a writer"),
            Refusal::Stale => write!(f, "a row read has changed"),
            Refusal::TimestampTooLow(above) => write!(f, "timestamp too low, retry above {above}"),
            Refusal::UnknownTransaction => write!(f, "unknown transaction"),
            Refusal::Superseded => write!(f, "a later attempt is known"),
            Refusal::TimedOut => write!(f, "a site of the region did not prepare in time"),
            Refusal::StaleConfiguration => write!(f, "the placement has changed"),
            Refusal::CopyIncomplete(region) => write!(f, "{region} has not copied all rows yet"),
            Refusal::Withdrawn => write!(f, "withdrawn by its gateway, as too few regions answered in time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO: Vote = Vote::No(Refusal::Locked);

    fn tally(votes: &[(u16, Vote)]) -> Tally {
        let mut tally = Tally::default();
        for (region, vote) in votes {
            tally.record_if_open(RegionId(*region), vote.clone());
        }
        tally
    }

    #[test]
    fn a_majority_of_yes_commits_and_an_impossible_one_aborts() {
        let outcome = |votes: &[(u16, Vote)]| (tally(votes).outcome(Regions::first(5)), tally(votes).outcome_at_gateway(Regions::first(5)));
        assert_eq!(outcome(&[(0, Vote::Firm), (1, Vote::Firm)]), (None, None));
        assert_eq!(outcome(&[(0, Vote::Firm), (1, Vote::Firm), (4, Vote::Firm)]), (Some(Outcome::Committed), Some(Outcome::Committed)));
        assert_eq!(outcome(&[(0, NO), (1, NO)]), (None, None));
        assert_eq!(outcome(&[(0, NO), (1, NO), (2, NO)]), (Some(Outcome::Aborted), Some(Outcome::Aborted)));
    }

    #[test]
    fn only_the_gateway_counts_a_provisional_yes() {
        let votes = tally(&[(0, Vote::Yes), (1, Vote::Yes), (4, Vote::Firm)]);
        assert_eq!((votes.outcome(Regions::first(5)), votes.outcome_at_gateway(Regions::first(5))), (None, Some(Outcome::Committed)));
    }

    #[test]
    fn a_provisional_yes_becomes_final_once() {
        let withdrawn = Vote::No(Refusal::Withdrawn);
        assert_eq!(tally(&[(0, Vote::Yes), (0, withdrawn.clone()), (0, Vote::Yes)]).of(RegionId(0)), Some(&withdrawn));
        assert_eq!(tally(&[(0, Vote::Yes), (0, Vote::Firm), (0, Vote::Yes)]).of(RegionId(0)), Some(&Vote::Firm));
    }

    #[test]
    fn with_an_even_number_of_regions_half_the_votes_against_abort() {
        assert_eq!(tally(&[(0, Vote::Firm)]).outcome(Regions::first(2)), None);
        assert_eq!(tally(&[(0, NO)]).outcome(Regions::first(2)), Some(Outcome::Aborted));
        assert_eq!(tally(&[(0, Vote::Firm), (1, Vote::Firm), (2, NO)]).outcome(Regions::first(4)), None);
        assert_eq!(tally(&[(0, NO), (2, NO)]).outcome(Regions::first(4)), Some(Outcome::Aborted));
    }

    #[test]
    fn every_complete_set_of_final_votes_decides_and_alike_for_all() {
        for regions in 1..=7u16 {
            for votes in 0..(1u32 << regions) {
                let all: Vec<_> = (0..regions).map(|region| (region, if votes >> region & 1 == 1 { Vote::Firm } else { NO })).collect();
                let tally = tally(&all);
                assert!(tally.outcome(Regions::first(usize::from(regions))).is_some());
                assert_eq!(
                    tally.outcome(Regions::first(usize::from(regions))),
                    tally.outcome_at_gateway(Regions::first(usize::from(regions)))
                );
            }
        }
    }
}
