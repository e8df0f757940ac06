//! What is said of a quota to those who ask.

use crate::name::Name;
use crate::refusal::Refusal;
use crate::spec::Spec;
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How far a reader looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Read {
    /// This site's tokens; no trip.
    #[default]
    Local,
    /// The tokens of all sites that answer, each at its own moment; one trip.
    Global,
    /// All tokens at one moment between question and answer; a redistribution's trips, in which no token moves. Needs
    /// every site.
    Exact,
}

/// The tokens of a quota at one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteTokens {
    /// Which site.
    pub site: SiteId,
    /// Tokens that it may give out.
    pub left: u64,
    /// Tokens that clients hold and may be released here.
    pub held: u64,
    /// Tokens on offer in a redistribution under way, of either kind.
    pub offered: u64,
    /// Tokens to be taken out of circulation since the limit was lowered.
    pub owed: u64,
    /// Tokens of lost sites that operators have freed, as far as this site takes them back.
    pub freed: u64,
}

/// A quota and its tokens, as far as the reader looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub spec: Spec,
    /// How far the reader looked.
    pub read: Read,
    /// The sites that answered.
    pub sites: Vec<SiteTokens>,
    /// The sites that did not.
    pub missing: Vec<SiteId>,
    /// Tokens booked as held by clients of lost sites, of this quota or of one below it that has ended, those freed or released since included.
    pub booked: u64,
}

impl Info {
    /// Tokens that the sites that answered may give out, those on offer not counted.
    pub fn left(&self) -> u64 {
        self.sites.iter().map(|site| site.left).sum()
    }

    /// Tokens that clients hold, by the sites that answered.
    pub fn held(&self) -> u64 {
        self.sites.iter().map(|site| site.held).sum()
    }

    /// Tokens on offer in redistributions under way.
    pub fn offered(&self) -> u64 {
        self.sites.iter().map(|site| site.offered).sum()
    }

    /// Tokens of lost sites that operators have freed.
    pub fn freed(&self) -> u64 {
        self.sites.iter().map(|site| site.freed).sum()
    }

    /// Tokens to be taken out of circulation since the limit was lowered.
    pub fn owed(&self) -> u64 {
        self.sites.iter().map(|site| site.owed).sum()
    }
}

impl Read {
    /// All of them, by name.
    pub const NAMES: &'static [&'static str] = &["local", "global", "exact"];
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Read::Local => "local",
            Read::Global => "global",
            Read::Exact => "exact",
        })
    }
}

impl FromStr for Read {
    type Err = Refusal;
    fn from_str(text: &str) -> Result<Read, Refusal> {
        match text.to_ascii_lowercase().as_str() {
            "local" => Ok(Read::Local),
            "global" => Ok(Read::Global),
            "exact" => Ok(Read::Exact),
            _ => Err(Refusal::Invalid(format!("no read `{text}`; there are {}", Read::NAMES.join(", ")))),
        }
    }
}
