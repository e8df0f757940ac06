//! What sites say to each other in a count.

use super::{Tally, Word};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Messages that promise nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Note {
    /// The sender stands still, by the name of `standing`.
    Standing { number: u64, standing: u64, word: Word },
    /// All stood still at one moment: go on.
    Go { number: u64 },
    /// The count has come to nothing.
    Void { number: u64 },
}

/// Messages that promise that what their sender did before is on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    /// The receiver is to stand still, and to say what it has. After the outcome of a redistribution that its sender has just told.
    Stand { number: u64 },
    /// The sender has stood still from its `Standing` of that name until now.
    Stood { number: u64, standing: u64 },
    /// All stood still, and had this.
    Counted { number: u64, tally: Tally },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Standing { number, word: Word { tokens, .. }, .. } => {
                write!(f, "Standing #{number} {} left, {} held", tokens.left, tokens.held)
            }
            Note::Go { number } => write!(f, "Go #{number}"),
            Note::Void { number } => write!(f, "Void #{number}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Stand { number } => write!(f, "Stand #{number}"),
            Promise::Stood { number, .. } => write!(f, "Stood #{number}"),
            Promise::Counted { number, tally } => {
                let left: u64 = tally.tokens.iter().map(|site| site.left).sum();
                write!(f, "Counted #{number} {left} left, {} held", tally.held())
            }
        }
    }
}
