//! What sites with escrows say to each other.

use rhumb_quota::name::Name;
use serde::Serialize;
use std::fmt;

/// What promises nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Note {
    /// Here is your share of a new quota.
    Allot {
        /// Which quota.
        quota: Name,
        /// How many tokens.
        share: u64,
    },
    /// Lend me this many.
    Borrow {
        /// Of which quota.
        quota: Name,
        /// At least how many are needed.
        need: u64,
    },
}

/// What is durable at the sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Promise {
    /// The share is mine.
    Allotted {
        /// Of which quota.
        quota: Name,
    },
    /// These tokens are yours now; none if the lender has none to spare.
    Lend {
        /// Of which quota.
        quota: Name,
        /// How many.
        amount: u64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Allot { quota, share } => write!(f, "Allot {quota} {share}"),
            Note::Borrow { quota, need } => write!(f, "Borrow {quota} {need}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Allotted { quota } => write!(f, "Allotted {quota}"),
            Promise::Lend { quota, amount } => write!(f, "Lend {quota} {amount}"),
        }
    }
}
