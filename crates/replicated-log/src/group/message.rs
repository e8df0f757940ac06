//! What the replicas of a group send each other to agree on a log.

use super::log::{Entry, Position, Slot};
use rhumb_core::Ballot;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A message that promises nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)] // the variants are documented; their fields are named after the types above
pub enum GroupNote<C> {
    /// Would you vote for this ballot of mine? Nobody has promised anything yet.
    Canvass { ballot: Ballot, last: Position },
    /// I would.
    Support { ballot: Ballot },
    /// Vote for this ballot of mine, whose log ends here.
    Campaign { ballot: Ballot, last: Position },
    /// Leader: these entries follow the one at `previous`; all up to `chosen` are chosen. Sent without entries, too: it keeps the lease.
    Append { ballot: Ballot, round: u64, previous: Position, entries: Vec<Entry<C>>, chosen: Slot },
    /// I have promised a higher ballot.
    Refused { promised: Ballot },
    /// I have no such entry at `previous`: what I may share with you ends at `last`.
    Mismatch { ballot: Ballot, last: Slot },
    /// Leader: the entries after yours are compacted away here; fetch the state from me.
    Compacted { ballot: Ballot },
    /// Leader: I lead no more; `to` is to follow me.
    Yield { ballot: Ballot, to: rhumb_core::SiteId },
}

/// A message that promises something durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum GroupPromise {
    /// I take part in no lower ballot.
    Vote { ballot: Ballot },
    /// My log is the leader's up to this slot. For the length of a lease from when `round` was taken in I vote for nobody else.
    Accepted { ballot: Ballot, upto: Slot, round: u64 },
}

/// A ballot as `3r1.0`.
struct Shown(Ballot);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0.number, self.0.leader)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.slot, self.ballot.number)
    }
}

impl<C: fmt::Display> fmt::Display for GroupNote<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupNote::Canvass { ballot, last } => write!(f, "Canvass {} after {last}", Shown(*ballot)),
            GroupNote::Support { ballot } => write!(f, "Support {}", Shown(*ballot)),
            GroupNote::Campaign { ballot, last } => write!(f, "Campaign {} after {last}", Shown(*ballot)),
            GroupNote::Append { ballot, round, previous, entries, chosen } => {
                write!(f, "Append {} round {round} after {previous}", Shown(*ballot))?;
                for (slot, entry) in (previous.slot + 1..).zip(entries) {
                    write!(f, " [{slot}:{} {}]", entry.ballot.number, entry.command)?;
                }
                write!(f, " chosen {chosen}")
            }
            GroupNote::Refused { promised } => write!(f, "Refused, promised {}", Shown(*promised)),
            GroupNote::Mismatch { ballot, last } => write!(f, "Mismatch {} last {last}", Shown(*ballot)),
            GroupNote::Compacted { ballot } => write!(f, "Compacted {}", Shown(*ballot)),
            GroupNote::Yield { ballot, to } => write!(f, "Yield {} to {to}", Shown(*ballot)),
        }
    }
}

impl fmt::Display for GroupPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupPromise::Vote { ballot } => write!(f, "Vote {}", Shown(*ballot)),
            GroupPromise::Accepted { ballot, upto, round } => write!(f, "Accepted {} upto {upto} round {round}", Shown(*ballot)),
        }
    }
}
