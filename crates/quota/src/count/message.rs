//! What sites say to each other in a count.

use crate::info::SiteTokens;
use crate::lost::Terms;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Messages that promise nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Note {
    /// The sender stands still, by the name of `standing`, with these tokens, as it knows the quota; `in_doubt`: [`Account::in_doubt`].
    ///
    /// [`Account::in_doubt`]: crate::account::Account
    Standing { number: u64, standing: u64, tokens: SiteTokens, in_doubt: u64, terms: Terms },
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
    /// So many there were, of which so many are in doubt; and all knew the quota so, if they did.
    Counted { number: u64, tokens: Vec<SiteTokens>, in_doubt: u64, terms: Option<Terms> },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Standing { number, tokens, .. } => write!(f, "Standing #{number} {} left, {} held", tokens.left, tokens.held),
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
            Promise::Counted { number, tokens, .. } => {
                let (left, held) = tokens.iter().fold((0, 0), |(left, held), site| (left + site.left, held + site.held));
                write!(f, "Counted #{number} {left} left, {held} held")
            }
        }
    }
}
