//! What the replicas say to each other.

use super::command::{CommandId, Entry};
use super::state::State;
use rhumb_core::{Ballot, Time};
use rhumb_quota::request::{Answer, Request};
use serde::Serialize;
use std::fmt;

/// What promises nothing.
#[derive(Clone, Debug, Serialize)]
pub enum Note {
    /// A gateway's request.
    Forward {
        /// Its name.
        id: CommandId,
        /// What is asked.
        request: Request,
    },
    /// The answer to it.
    Reply {
        /// Its name.
        id: CommandId,
        /// What the client is told.
        answer: Answer,
    },
    /// The leader is there.
    Heartbeat {
        /// It leads in this ballot.
        ballot: Ballot,
        /// Every slot up to this one is chosen.
        chosen: u64,
        /// When it left, by the leader's clock.
        sent: Time,
    },
    /// A voter heard the heartbeat.
    Heard {
        /// Of this ballot.
        ballot: Ballot,
        /// The heartbeat's own time.
        sent: Time,
    },
    /// Who asks wants to lead.
    Prepare {
        /// In this ballot.
        ballot: Ballot,
        /// It has applied the log up to here.
        applied: u64,
    },
    /// Store this entry.
    Accept {
        /// By the leader of this ballot.
        ballot: Ballot,
        /// Where.
        slot: u64,
        /// What.
        entry: Entry,
    },
    /// Every slot up to this one is chosen.
    Chosen {
        /// Says the leader of this ballot.
        ballot: Ballot,
        /// Up to which.
        slot: u64,
    },
    /// A higher ballot was promised.
    Outdone {
        /// This one.
        promised: Ballot,
    },
    /// The sender lacks what was chosen after this slot.
    Fetch {
        /// It has applied the log up to here.
        applied: u64,
    },
    /// The replicated state, for one that fell behind.
    Snapshot {
        /// The state.
        state: State,
    },
}

/// What is durable at the sender.
#[derive(Clone, Debug, Serialize)]
pub enum Promise {
    /// It accepts nothing below this ballot any more.
    Promised {
        /// The ballot.
        ballot: Ballot,
        /// What it accepted in slots that the candidate has not applied.
        accepted: Vec<(u64, Ballot, Entry)>,
        /// Its state, if the candidate's is older.
        state: Option<State>,
    },
    /// It stored the entry.
    Accepted {
        /// Of the leader of this ballot.
        ballot: Ballot,
        /// In this slot.
        slot: u64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Forward { id, .. } => write!(f, "Forward {id}"),
            Note::Reply { id, .. } => write!(f, "Reply {id}"),
            Note::Heartbeat { ballot, chosen, .. } => write!(f, "Heartbeat {ballot} chosen {chosen}"),
            Note::Heard { ballot, .. } => write!(f, "Heard {ballot}"),
            Note::Prepare { ballot, applied } => write!(f, "Prepare {ballot} applied {applied}"),
            Note::Accept { ballot, slot, entry } => write!(f, "Accept {ballot} slot {slot} ×{}", entry.len()),
            Note::Chosen { ballot, slot } => write!(f, "Chosen {ballot} slot {slot}"),
            Note::Outdone { promised } => write!(f, "Outdone by {promised}"),
            Note::Fetch { applied } => write!(f, "Fetch after {applied}"),
            Note::Snapshot { state } => write!(f, "Snapshot at {}", state.applied()),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Promised { ballot, accepted, .. } => write!(f, "Promised {ballot} accepted ×{}", accepted.len()),
            Promise::Accepted { ballot, slot } => write!(f, "Accepted {ballot} slot {slot}"),
        }
    }
}
