//! What a quota is: its limit, what stands above it, and how its tokens move between sites.

use crate::name::Name;
use crate::operation::AMOUNT_MAX;
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Quotas of a cluster at the most.
pub const QUOTAS_MAX: usize = 10_000;
/// Quotas above one another at the most, the lowest included.
pub const DEPTH_MAX: usize = 8;

/// How sites agree on a redistribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProtocolKind {
    /// Avantan\[(n+1)/2\]: a majority of all sites. Balances best; needs a majority to move tokens.
    #[default]
    Majority,
    /// Avantan\[\*\]: any sites that have enough. Moves tokens within any part of a divided network.
    Any,
}

/// What a site puts into a redistribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OfferPolicy {
    /// All its tokens: requests wait until it is over, as in Samya, 4.3.
    All,
    /// What it does not need in the next moments: it keeps serving.
    #[default]
    Spare,
}

/// How the tokens of a redistribution are given out if they are not enough for all that is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reallocation {
    /// As many tokens as possible come to use: the smallest wants are refused first.
    #[default]
    MaximumUsage,
    /// As many sites as possible get all they want: the largest wants are refused first.
    MostSatisfied,
    /// Each site gets its share of what it wants.
    Proportional,
}

macro_rules! named {
    ($type:ty, $what:literal, $($variant:path => $name:literal),+) => {
        impl $type {
            /// All of them, by name.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($variant => $name),+ })
            }
        }

        impl FromStr for $type {
            type Err = Refusal;
            fn from_str(text: &str) -> Result<$type, Refusal> {
                match text.to_ascii_lowercase().as_str() {
                    $($name => Ok($variant),)+
                    _ => Err(Refusal::Invalid(format!("no {} `{text}`; there are {}", $what, <$type>::NAMES.join(", ")))),
                }
            }
        }
    };
}

named!(ProtocolKind, "protocol", ProtocolKind::Majority => "majority", ProtocolKind::Any => "any");
named!(OfferPolicy, "offer policy", OfferPolicy::All => "all", OfferPolicy::Spare => "spare");
named!(Reallocation, "reallocation",
    Reallocation::MaximumUsage => "maximum-usage",
    Reallocation::MostSatisfied => "most-satisfied",
    Reallocation::Proportional => "proportional");

/// What a quota is to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spec {
    /// Tokens that clients together may hold, 0 to [`AMOUNT_MAX`].
    pub limit: u64,
    /// The quota above: what is acquired here is acquired there too.
    pub parent: Option<Name>,
    /// How sites agree.
    pub protocol: ProtocolKind,
    /// What a site offers.
    pub offer: OfferPolicy,
    /// Who gets what.
    pub reallocation: Reallocation,
}

impl Spec {
    /// A quota of `limit` tokens that stands alone, with the defaults.
    pub fn new(limit: u64) -> Spec {
        Spec {
            limit,
            parent: None,
            protocol: ProtocolKind::default(),
            offer: OfferPolicy::default(),
            reallocation: Reallocation::default(),
        }
    }

    /// Refuses what no quota can be.
    pub fn check(&self) -> Result<(), Refusal> {
        check_limit(self.limit)
    }
}

/// Refuses a limit that no quota can have.
pub fn check_limit(limit: u64) -> Result<(), Refusal> {
    if limit > AMOUNT_MAX {
        return Err(Refusal::Invalid(format!("a limit of {limit} tokens; at most {AMOUNT_MAX} are allowed")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_read_as_it_is_shown() {
        for name in ProtocolKind::NAMES {
            assert_eq!(name.parse::<ProtocolKind>().expect("its name").to_string(), *name);
        }
        for name in OfferPolicy::NAMES {
            assert_eq!(name.parse::<OfferPolicy>().expect("its name").to_string(), *name);
        }
        for name in Reallocation::NAMES {
            assert_eq!(name.to_uppercase().parse::<Reallocation>().expect("its name").to_string(), *name);
        }
        let error = "most".parse::<ProtocolKind>().expect_err("no such protocol");
        assert_eq!(error.to_string(), "no protocol `most`; there are majority, any");
    }
}
