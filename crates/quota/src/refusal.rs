//! Why something asked of a quota was not done. A refusal changes nothing, except where it says that it does not know.

use crate::name::{InvalidName, Name};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why not. One line for people; [`Refusal::code`] is for programs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Refusal {
    #[error("{0}")]
    Invalid(String),
    #[error("there is no quota {0}; create it first")]
    Unknown(Name),
    #[error("there is a quota {0} already")]
    Exists(Name),
    #[error("the limit of quota {quota} does not allow {wanted} more")]
    Exceeded { quota: Name, wanted: u64 },
    #[error("fewer than {amount} tokens of quota {quota} are acquired, so as many cannot be released")]
    NotHeld { quota: Name, amount: u64 },
    #[error("quota {quota} has not enough tokens at this site, and {why}; try again later")]
    Unreachable { quota: Name, why: String },
    #[error("the request id {0} was used for another operation")]
    IdReused(String),
    #[error("quota {0} has quotas below it; drop those first")]
    HasChildren(Name),
    #[error(
        "{amount} tokens of quota {quota} cannot be freed: {booked} are booked as held by clients of lost sites, and {freed} of these are freed"
    )]
    NotBooked { quota: Name, amount: u64, booked: u64, freed: u64 },
    #[error("this site was declared lost and serves quotas no more; ask another one")]
    DeclaredLost,
    #[error("{0}; try again later")]
    Unavailable(String),
    #[error("it is not known whether this was done: {0}")]
    UnknownOutcome(String),
}

impl From<InvalidName> for Refusal {
    fn from(InvalidName(why): InvalidName) -> Refusal {
        Refusal::Invalid(why)
    }
}

impl Refusal {
    /// A word for programs, upper-case, as in the error replies of the Redis protocol.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Invalid(_) => "INVALID",
            Refusal::Unknown(_) => "NOQUOTA",
            Refusal::Exists(_) => "EXISTS",
            Refusal::Exceeded { .. } => "EXCEEDED",
            Refusal::NotHeld { .. } => "NOTHELD",
            Refusal::Unreachable { .. } => "UNREACHABLE",
            Refusal::IdReused(_) => "IDREUSED",
            Refusal::HasChildren(_) => "HASCHILDREN",
            Refusal::NotBooked { .. } => "NOTBOOKED",
            Refusal::DeclaredLost => "LOST",
            Refusal::Unavailable(_) => "UNAVAILABLE",
            Refusal::UnknownOutcome(_) => "UNKNOWN",
        }
    }

    /// True if the very same request may succeed later without anybody doing anything about it.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Refusal::Unreachable { .. } | Refusal::Unavailable(_))
    }
}
