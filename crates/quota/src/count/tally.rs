//! What a count has found.

use super::Word;
use crate::info::SiteTokens;
use crate::lost::Terms;
use serde::{Deserialize, Serialize};

/// The tokens of all sites that are not lost, at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// By site.
    pub tokens: Vec<SiteTokens>,
    /// Of those held, the ones that clients may have released at a lost site,
    pub in_doubt: u64,
    /// and the ones that no client holds any more: they are to be taken back.
    pub returning: u64,
    /// The terms on which all knew the quota, if they were the same: then what lost sites have, and clients hold, follows from any site's count.
    pub terms: Option<Terms>,
}

impl Tally {
    /// What these sites said.
    pub fn of(words: &[Word]) -> Tally {
        let mut terms = words.iter().map(|word| word.terms);
        Tally {
            tokens: words.iter().map(|word| word.tokens).collect(),
            in_doubt: words.iter().map(|word| word.in_doubt).sum(),
            returning: words.iter().map(|word| word.returning).sum(),
            terms: terms.next().filter(|first| terms.all(|terms| terms == *first)),
        }
    }

    /// Tokens that count as held.
    pub fn held(&self) -> u64 {
        self.tokens.iter().map(|site| site.held).sum()
    }

    /// Of these, those that clients hold, for all that sites know.
    pub fn held_by_clients(&self) -> u64 {
        self.held().saturating_sub(self.returning)
    }
}
