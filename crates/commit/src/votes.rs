//! Votes as write-once registers, and the outcome as a pure function of them.
//!
//! Every region has one durable vote per transaction attempt: yes or no, never changed. The attempt commits if and only
//! if the yes-votes are a majority of all regions, and aborts if and only if so many are no that a majority of yes is
//! impossible. Whoever has seen enough votes knows the outcome; there is no proposer, no leader and no second round.
//!
//! ```text
//!    A: yes ─┐
//!    B: yes ─┼─▶ 3 of 5 yes: committed, whatever D and E say or ever will say
//!    C: yes ─┘
//! ```
//!
//! A region that has *forgotten* an attempt (it was resolved there and its record collected) will never vote yes on it
//! again, and if it knew the attempt as committed, the commit stands in its log. It counts as a no once its log has been
//! read that far without finding it.
//!
//! Invariants: `record` never replaces a vote; an outcome, once reached, never changes.

use rhumb_core::{RegionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A region's vote on an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vote {
    /// It holds all locks, found all reads current, and is prepared on disk.
    Yes,
    /// It will never be prepared for this attempt.
    No(Refusal),
}

/// Why a region votes no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Another transaction holds a lock in the way.
    Locked,
    /// A shared lock that the transaction took at its read has been taken over by a writer.
    LockLost,
    /// What was read is no longer the newest.
    Stale,
    /// A written key has a version, or was read, at or above the proposed timestamp; a retry must lie above this one.
    TooOld(Timestamp),
    /// The region had not heard of the attempt when it was asked for its vote.
    NeverHeard,
    /// A later attempt of the same transaction is known: the gateway has given this one up.
    Superseded,
    /// A site of the region did not prepare in time.
    TimedOut,
}

/// What all votes together say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// A majority voted yes.
    Committed,
    /// A majority of yes is impossible.
    Aborted,
}

/// The votes on one attempt that somebody has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    votes: BTreeMap<RegionId, Vote>,
}

impl Tally {
    /// Takes note of a region's vote. A vote seen before stays as it is.
    pub fn record(&mut self, region: RegionId, vote: Vote) {
        let known = self.votes.entry(region).or_insert_with(|| vote.clone());
        debug_assert!(
            cfg!(feature = "planted") || (*known == Vote::Yes) == (vote == Vote::Yes),
            "the vote of {region} changed from {known} to {vote}"
        );
    }

    /// Overwrites a vote, as no correct site ever does.
    #[cfg(feature = "planted")]
    pub fn overwrite(&mut self, region: RegionId, vote: Vote) {
        self.votes.insert(region, vote);
    }

    /// The outcome among `regions` regions, if the votes seen decide it.
    pub fn outcome(&self, regions: usize) -> Option<Outcome> {
        let majority = regions / 2 + 1;
        let yes = self.votes.values().filter(|vote| **vote == Vote::Yes).count();
        let no = self.votes.len() - yes;
        if yes >= majority {
            Some(Outcome::Committed)
        } else if no > regions - majority {
            Some(Outcome::Aborted)
        } else {
            None
        }
    }

    /// The vote of `region`, if it was seen.
    pub fn of(&self, region: RegionId) -> Option<&Vote> {
        self.votes.get(&region)
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
            Vote::Yes => None,
        })
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Vote::Yes => write!(f, "yes"),
            Vote::No(refusal) => write!(f, "no ({refusal})"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Locked => write!(f, "locked by another transaction"),
            Refusal::LockLost => write!(f, "a lock was taken over by a writer"),
            Refusal::Stale => write!(f, "a row read has changed"),
            Refusal::TooOld(above) => write!(f, "too old, retry above {above}"),
            Refusal::NeverHeard => write!(f, "never heard of it"),
            Refusal::Superseded => write!(f, "a later attempt is known"),
            Refusal::TimedOut => write!(f, "a site of the region did not prepare in time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(votes: &[(u16, bool)]) -> Tally {
        let mut tally = Tally::default();
        for &(region, yes) in votes {
            tally.record(RegionId(region), if yes { Vote::Yes } else { Vote::No(Refusal::Locked) });
        }
        tally
    }

    #[test]
    fn a_majority_of_yes_commits_and_an_impossible_one_aborts() {
        assert_eq!(tally(&[(0, true), (1, true)]).outcome(5), None);
        assert_eq!(tally(&[(0, true), (1, true), (4, true)]).outcome(5), Some(Outcome::Committed));
        assert_eq!(tally(&[(0, false), (1, false)]).outcome(5), None);
        assert_eq!(tally(&[(0, false), (1, false), (2, false)]).outcome(5), Some(Outcome::Aborted));
    }

    #[test]
    fn with_an_even_number_of_regions_half_the_votes_against_abort() {
        assert_eq!(tally(&[(0, true)]).outcome(2), None);
        assert_eq!(tally(&[(0, false)]).outcome(2), Some(Outcome::Aborted));
        assert_eq!(tally(&[(0, true), (1, true), (2, false)]).outcome(4), None);
        assert_eq!(tally(&[(0, false), (2, false)]).outcome(4), Some(Outcome::Aborted));
    }

    #[test]
    fn every_complete_set_of_votes_decides() {
        for regions in 1..=7u16 {
            for votes in 0..(1u32 << regions) {
                let all: Vec<_> = (0..regions).map(|region| (region, votes >> region & 1 == 1)).collect();
                assert!(tally(&all).outcome(usize::from(regions)).is_some());
            }
        }
    }
}
