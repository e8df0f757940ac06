//! What the sites of Avantan\[\*\] say to each other.

use super::super::Call;
use super::Instance;
use crate::list::{Entry, List};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Messages that promise nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Note {
    /// The sender is in another instance.
    Busy { instance: Instance },
}

/// Messages that promise what is on the sender's disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    /// Who can offer something?
    Election { instance: Instance, call: Call },
    /// The sender's offer.
    ElectionOk { instance: Instance, entry: Entry },
    /// The list, to its members.
    Accept { instance: Instance, list: List },
    /// The sender has the list, and knows that this many sites are lost: it ignores their messages.
    AcceptOk { instance: Instance, losses: u32 },
    /// A member has no list of this instance and will never take one: it is dead.
    Refused { instance: Instance },
    /// The leader has not chosen the receiver, or has given up.
    Discard { instance: Instance },
    /// Has the receiver accepted the list, as the sender has?
    Ask { instance: Instance },
    /// Every member has the list: it is decided, and the sender has applied it.
    Decided { instance: Instance, list: List },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Busy { instance } => write!(f, "Busy {instance}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Election { instance, call } => write!(f, "Election {instance}, {call}"),
            Promise::ElectionOk { instance, entry } => write!(f, "ElectionOk {instance}, {entry}"),
            Promise::Accept { instance, list } => write!(f, "Accept {instance} {list}"),
            Promise::AcceptOk { instance, losses: 0 } => write!(f, "AcceptOk {instance}"),
            Promise::AcceptOk { instance, losses } => write!(f, "AcceptOk {instance}, {losses} lost"),
            Promise::Refused { instance } => write!(f, "Refused {instance}"),
            Promise::Discard { instance } => write!(f, "Discard {instance}"),
            Promise::Ask { instance } => write!(f, "Ask {instance}"),
            Promise::Decided { instance, list } => write!(f, "Decided {instance} {list}"),
        }
    }
}
