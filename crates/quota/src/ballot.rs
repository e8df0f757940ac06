//! Ballots: attempts to lead an instance of Paxos, in an order that no two share.

use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An attempt to lead. The default lies below all others and is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ballot {
    /// Above all ballots its leader knew of; from 1.
    pub number: u64,
    /// Whose.
    pub leader: SiteId,
}

impl Default for Ballot {
    fn default() -> Ballot {
        Ballot { number: 0, leader: SiteId::new(0, 0) }
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.number, self.leader)
    }
}
