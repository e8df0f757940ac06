//! `/quotas…`: global quotas and their tokens.
//!
//! Numbers in bodies are [`Number`]s: whether they are whole and how large they may be is checked by the site, whose message says what is
//! allowed. For the same reason the choices of a [`NewQuota`] are strings.

use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::fmt;
use utoipa::ToSchema;

/// The body of `PUT /quotas/{name}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewQuota {
    /// Tokens that clients together may hold.
    #[schema(value_type = u64, minimum = 0, maximum = 9007199254740991_i64)]
    pub limit: Number,
    /// The quota above: what is acquired here is acquired there too. Absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How sites agree on a redistribution. Absent: `majority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Protocol>)]
    pub protocol: Option<String>,
    /// What a site puts into a redistribution. Absent: `spare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Offer>)]
    pub offer: Option<String>,
    /// How tokens are given out if they are not enough. Absent: `maximum-usage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Reallocation>)]
    pub reallocation: Option<String>,
}

/// The body of `PATCH /quotas/{name}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLimit {
    /// Tokens that clients together may hold.
    #[schema(value_type = u64, minimum = 0, maximum = 9007199254740991_i64)]
    pub limit: Number,
}

/// The body of `POST /quotas/{name}/acquire`, `/release` and `/free`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// How many tokens.
    #[schema(value_type = u64, minimum = 1, maximum = 9007199254740991_i64)]
    pub amount: Number,
    /// The id of the request: asked again under the same, it is answered again and not done again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub id: Option<String>,
}

/// The body of `POST /quotas/{name}/read`: an object without members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExactRead {}

/// The answer to `POST /quotas/{name}/acquire`, `/release` and `/free`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Done {
    /// Tokens of the quota left at this site right after.
    pub left: u64,
}

/// All quotas by name: the answer to `GET /quotas`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Quotas {
    /// Each with the tokens of this site.
    pub quotas: Vec<Quota>,
}

/// A quota and its tokens: the answer to `GET /quotas/{name}` and to `POST /quotas/{name}/read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Quota {
    /// What was laid down for it.
    #[serde(flatten)]
    pub spec: Spec,
    /// How far was looked.
    pub read: Read,
    /// The tokens of the sites that answered, summed up.
    #[serde(flatten)]
    pub tokens: Tokens,
    /// The sites that answered.
    pub sites: Vec<SiteTokens>,
    /// The sites that did not.
    pub missing: Vec<String>,
    /// Tokens booked as held for lost sites, those released or freed since included.
    pub booked: u64,
    /// Tokens of lost sites that operators have freed.
    pub freed: u64,
}

/// What was laid down for a quota: the answer to `PUT /quotas/{name}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// Tokens that clients together may hold.
    pub limit: u64,
    /// The quota above: what is acquired here is acquired there too; null if there is none.
    #[schema(required)]
    pub parent: Option<String>,
    /// How sites agree on a redistribution.
    pub protocol: Protocol,
    /// What a site puts into a redistribution.
    pub offer: Offer,
    /// How tokens are given out if they are not enough.
    pub reallocation: Reallocation,
}

/// Tokens of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tokens {
    /// Tokens that may be given out, those on offer not counted.
    pub left: u64,
    /// Tokens that clients hold.
    pub held: u64,
    /// Tokens on offer in redistributions under way.
    pub offered: u64,
    /// Tokens to be taken out of circulation since the limit was lowered.
    pub owed: u64,
}

/// The tokens of a quota at one site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteTokens {
    /// As `california/0`.
    pub site: String,
    /// Its tokens.
    #[serde(flatten)]
    pub tokens: Tokens,
    /// Tokens of lost sites that operators have freed here.
    pub freed: u64,
}

/// How sites agree on a redistribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// By a majority of all sites.
    Majority,
    /// By any sites that have enough.
    Any,
}

/// What a site puts into a redistribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Offer {
    /// All its tokens.
    All,
    /// The tokens that it does not need in the next moments.
    Spare,
}

/// How tokens are given out if they are not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reallocation {
    /// As many tokens as possible come to use: the smallest wants are refused first.
    MaximumUsage,
    /// As many sites as possible get all they want: the largest wants are refused first.
    MostSatisfied,
    /// Each site gets its share of what it wants.
    Proportional,
}

/// How far a read of a quota looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// At this site's tokens.
    Local,
    /// At those of all sites that answer, each at its own moment.
    Global,
    /// At all tokens at one moment.
    Exact,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Majority => "majority",
            Protocol::Any => "any",
        })
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Offer::All => "all",
            Offer::Spare => "spare",
        })
    }
}

impl fmt::Display for Reallocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reallocation::MaximumUsage => "maximum-usage",
            Reallocation::MostSatisfied => "most-satisfied",
            Reallocation::Proportional => "proportional",
        })
    }
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
