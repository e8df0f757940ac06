//! What a site says when it stands still.

use crate::info::SiteTokens;
use crate::lost::Terms;
use serde::{Deserialize, Serialize};

/// One site's tokens, and how it knows the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// What it has.
    pub tokens: SiteTokens,
    /// Of these, those held that clients may have released at a lost site.
    pub in_doubt: u64,
    /// Tokens that count as held, here or elsewhere, and that it is to take back.
    pub returning: u64,
    /// As it knows the quota.
    pub terms: Terms,
}
