//! What stands in the log: commands, each with a name of its own, so that one sent twice is carried out once.

use rhumb_core::SiteId;
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Action, Done};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::spec::Spec;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Names a command: the gateway that took it and the number it gave it, which it gives only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CommandId {
    /// The gateway.
    pub gateway: SiteId,
    /// Its number there.
    pub ticket: u64,
}

/// A change of the replicated record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Change {
    /// Acquires and releases, each for itself.
    Run(Vec<(Action, Name, u64)>),
    /// A new quota.
    Create(Name, Spec),
    /// A new limit.
    SetLimit(Name, u64),
    /// The end of a quota.
    Drop(Name),
}

/// A change on its way through the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its name.
    pub id: CommandId,
    pub(super) change: Change,
}

/// What one slot of the log holds. Empty: a slot that a new leader had to fill.
pub type Entry = Vec<Command>;

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// Of acquires and releases.
    Ran(Vec<Result<Done, Refusal>>),
    /// Of a change of the quota itself.
    Changed(Result<(), Refusal>),
}

impl Change {
    /// The change that `request` asks for; `None` if it only looks.
    pub(super) fn of(request: &Request) -> Option<Change> {
        Some(match request {
            Request::Run(operations) => Change::Run(operations.iter().map(|it| (it.action, it.quota.clone(), it.amount)).collect()),
            Request::Create { name, spec } => Change::Create(name.clone(), spec.clone()),
            Request::SetLimit { name, limit } => Change::SetLimit(name.clone(), *limit),
            Request::Drop { name } => Change::Drop(name.clone()),
            Request::DeclareLost { .. } | Request::Get { .. } | Request::List | Request::Status => return None,
        })
    }

    /// The outcome of a change of which nothing else is known.
    pub(super) fn refused(&self, refusal: Refusal) -> Outcome {
        match self {
            Change::Run(operations) => Outcome::Ran(vec![Err(refusal); operations.len()]),
            _ => Outcome::Changed(Err(refusal)),
        }
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Answer {
        match outcome {
            Outcome::Ran(outcomes) => Answer::Ran(outcomes),
            Outcome::Changed(outcome) => Answer::Changed(outcome),
        }
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.gateway, self.ticket)
    }
}
