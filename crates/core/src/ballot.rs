//! Ballots, and the register of an acceptor of single-decree Paxos (Lamport, "The part-time parliament").
//!
//! ```text
//!   proposer                        acceptors
//!     ├── prepare (ballot) ────────────▶│ promises it, unless it has promised a higher one
//!     │◀──────────── accepted, on disk ─┤
//!     │ a quorum: the value of the highest ballot that one of them has accepted, or one of its own
//!     ├── accept (ballot, value) ──────▶│ accepts it, unless it has promised a higher one
//!     │◀────────────────────── on disk ─┤
//!     │ a quorum: the value is chosen
//! ```
//!
//! Which value a proposer is free to propose, who makes a quorum and what must be on disk along with a promise differ from one use to the next,
//! so each has its own proposer. The register is the same everywhere.
//!
//! Invariants: what is promised and accepted only ever rises; nothing is accepted below what is promised.

use crate::SiteId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An attempt to lead an instance. Ordered by number, then by leader, so no two leaders share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ballot<L = SiteId> {
    /// Above that of each ballot which the leader knew of.
    pub number: u64,
    /// Whose attempt it is.
    pub leader: L,
}

/// What an acceptor has promised and accepted in one instance. It must be on disk before anybody hears of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Acceptor<V, L = SiteId> {
    promised: Option<Ballot<L>>,
    accepted: Option<(Ballot<L>, V)>,
}

impl<V, L> Default for Acceptor<V, L> {
    fn default() -> Acceptor<V, L> {
        Acceptor { promised: None, accepted: None }
    }
}

impl<V, L: Copy + Ord> Acceptor<V, L> {
    /// The highest ballot that it has promised; `None` if there was none yet.
    pub fn promised(&self) -> Option<Ballot<L>> {
        self.promised
    }

    /// What it has accepted last, and in which ballot.
    pub fn accepted(&self) -> Option<&(Ballot<L>, V)> {
        self.accepted.as_ref()
    }

    /// Promises to take part in no ballot below `ballot`. True if that is new, and so is to be written.
    ///
    /// # Errors
    /// The ballot that it has promised, which is higher.
    pub fn promise(&mut self, ballot: Ballot<L>) -> Result<bool, Ballot<L>> {
        match self.promised {
            Some(promised) if promised > ballot => Err(promised),
            promised => {
                self.promised = Some(ballot);
                Ok(promised != Some(ballot))
            }
        }
    }

    /// Accepts `value` in `ballot`. True if that is new, and so is to be written; a ballot has one value, so the second time it is not.
    ///
    /// # Errors
    /// The ballot that it has promised, which is higher.
    pub fn accept(&mut self, ballot: Ballot<L>, value: V) -> Result<bool, Ballot<L>> {
        let is_new = self.promise(ballot)?;
        if self.accepted.as_ref().is_some_and(|(at, _)| *at == ballot) {
            return Ok(is_new);
        }
        self.accepted = Some((ballot, value));
        Ok(true)
    }

    /// The first ballot of `leader` above all that it has promised, and above the number `heard`.
    pub fn next_ballot(&self, heard: u64, leader: L) -> Ballot<L> {
        let promised = self.promised.map_or(0, |promised| promised.number);
        Ballot { number: promised.max(heard) + 1, leader }
    }
}

/// The value that a proposer must propose again: that of the highest ballot which one of a quorum has accepted. `None`: it is free.
pub fn to_propose_again<'a, V: 'a, L: Copy + Ord + 'a>(accepted: impl IntoIterator<Item = &'a (Ballot<L>, V)>) -> Option<&'a V> {
    accepted.into_iter().max_by_key(|(ballot, _)| *ballot).map(|(_, value)| value)
}

impl<L: fmt::Display> fmt::Display for Ballot<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.number, self.leader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SiteId = SiteId::new(0, 0);
    const B: SiteId = SiteId::new(1, 0);

    fn ballot(number: u64, leader: SiteId) -> Ballot {
        Ballot { number, leader }
    }

    #[test]
    fn ballots_are_promised_and_accepted_in_their_order() {
        let mut acceptor = Acceptor::default();
        assert_eq!((acceptor.promised(), acceptor.next_ballot(0, B)), (None, ballot(1, B)));
        assert_eq!(acceptor.promise(ballot(1, B)), Ok(true));
        assert_eq!(acceptor.promise(ballot(1, B)), Ok(false), "it is on disk already");
        assert_eq!(acceptor.promise(ballot(1, A)), Err(ballot(1, B)));
        assert_eq!(acceptor.accept(ballot(1, A), "low"), Err(ballot(1, B)));
        assert_eq!(acceptor.accept(ballot(1, B), "first"), Ok(true));
        assert_eq!(acceptor.accept(ballot(1, B), "first"), Ok(false), "it is on disk already");
        assert_eq!(acceptor.promise(ballot(2, A)), Ok(true));
        assert_eq!(acceptor.accept(ballot(1, B), "first"), Err(ballot(2, A)));
        assert_eq!(acceptor.accept(ballot(3, B), "third"), Ok(true), "to accept is to promise");
        assert_eq!((acceptor.promised(), acceptor.accepted()), (Some(ballot(3, B)), Some(&(ballot(3, B), "third"))));
        assert_eq!((acceptor.next_ballot(0, A), acceptor.next_ballot(7, A)), (ballot(4, A), ballot(8, A)));
    }

    #[test]
    fn the_value_of_the_highest_ballot_is_proposed_again() {
        assert_eq!(to_propose_again::<&str, SiteId>([]), None);
        let accepted = [(ballot(2, A), "two"), (ballot(2, B), "two of B"), (ballot(1, B), "one")];
        assert_eq!(to_propose_again(&accepted), Some(&"two of B"));
    }
}
