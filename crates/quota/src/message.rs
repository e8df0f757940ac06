//! What quota sites say to each other.

use crate::avantan;
use crate::catalog::{self, QuotaId};
use crate::count;
use crate::info::SiteTokens;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A message that promises nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Note {
    Catalog(catalog::Note),
    Avantan(QuotaId, avantan::Note),
    Count(QuotaId, count::Note),
    /// How many tokens of the quota does the receiver have? For the sender's read of that number.
    Look(QuotaId, u64),
    /// As many.
    Seen(QuotaId, u64, SiteTokens),
}

/// A message that promises what is on the sender's disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    Catalog(catalog::Promise),
    Avantan(QuotaId, avantan::Promise),
    Count(QuotaId, count::Promise),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Catalog(note) => write!(f, "{note}"),
            Note::Avantan(quota, note) => write!(f, "{quota} {note}"),
            Note::Count(quota, note) => write!(f, "{quota} {note}"),
            Note::Look(quota, read) => write!(f, "{quota} Look #{read}"),
            Note::Seen(quota, read, tokens) => write!(f, "{quota} Seen #{read} {} left, {} held", tokens.left, tokens.held),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Catalog(promise) => write!(f, "{promise}"),
            Promise::Avantan(quota, promise) => write!(f, "{quota} {promise}"),
            Promise::Count(quota, promise) => write!(f, "{quota} {promise}"),
        }
    }
}
