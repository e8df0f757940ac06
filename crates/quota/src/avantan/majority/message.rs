//! What the sites of Avantan\[(n+1)/2\] say to each other.

use super::super::Call;
use crate::list::{Entry, List};
use rhumb_core::Ballot;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Messages that promise nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Note {
    /// A higher ballot was promised.
    Outdated { slot: u64, promised: Ballot },
    /// The sender knows no slot from `slot` on decided, and was told of a later one.
    Lacking { slot: u64 },
    /// All slots from `from` to before `next` are decided; these are their lists that can be news to anybody.
    Decided { from: u64, next: u64, lists: Vec<(u64, List)> },
    /// What became of the ballot to which the sender made an offer?
    Ask { slot: u64, ballot: Ballot },
}

/// Messages that promise what is on the sender's disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    /// The sender wants to lead the slot.
    Election { slot: u64, ballot: Ballot, call: Call },
    /// No ballot below; here is the sender's offer, `fresh` if it was made for this very ballot, and what it has accepted in
    /// this slot.
    ElectionOk { slot: u64, ballot: Ballot, entry: Entry, fresh: bool, accepted: Option<(Ballot, List)> },
    /// The list to be decided.
    Accept { slot: u64, ballot: Ballot, list: List },
    /// Accepted.
    AcceptOk { slot: u64, ballot: Ballot },
    /// The sender, the leader of this ballot, has proposed nothing in this slot, and never will at this ballot or below.
    Dead { slot: u64, ballot: Ballot },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Outdated { slot, promised } => write!(f, "Outdated s{slot}, promised {promised}"),
            Note::Lacking { slot } => write!(f, "Lacking s{slot}"),
            Note::Decided { from, next, lists } => {
                write!(f, "Decided s{from}..{next}")?;
                lists.iter().try_for_each(|(slot, list)| write!(f, " s{slot}={list}"))
            }
            Note::Ask { slot, ballot } => write!(f, "Ask s{slot} {ballot}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Election { slot, ballot, call } => write!(f, "Election s{slot} {ballot}, {call}"),
            Promise::ElectionOk { slot, ballot, entry, accepted, .. } => {
                write!(f, "ElectionOk s{slot} {ballot}, {entry}")?;
                accepted.as_ref().map_or(Ok(()), |(at, list)| write!(f, ", accepted {at} {list}"))
            }
            Promise::Accept { slot, ballot, list } => write!(f, "Accept s{slot} {ballot} {list}"),
            Promise::AcceptOk { slot, ballot } => write!(f, "AcceptOk s{slot} {ballot}"),
            Promise::Dead { slot, ballot } => write!(f, "Dead s{slot} {ballot}"),
        }
    }
}
