//! From what a statement says of a quota to what is asked of the cluster.

use crate::error::SqlResult;
use crate::parser::QuotaDefinition;
use rhumb_quota::name::Name;
use rhumb_quota::operation::AMOUNT_MAX;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::Spec;
use std::str::FromStr;

/// As much of a number that is none as its refusal repeats, in characters.
const SHOWN_MAX: usize = 32;

/// The name that `text` spells. Error 22023.
pub fn name(text: &str) -> SqlResult<Name> {
    Ok(Name::new(text).map_err(Refusal::from)?)
}

/// The limit that `text` spells. Error 22023.
pub fn limit(text: &str) -> SqlResult<u64> {
    let limit = text.parse().ok().filter(|limit| *limit <= AMOUNT_MAX);
    let invalid = || {
        let shown: String = text.chars().take(SHOWN_MAX).collect();
        Refusal::Invalid(format!("a limit of `{shown}` tokens; allowed are whole numbers from 0 to {AMOUNT_MAX}"))
    };
    Ok(limit.ok_or_else(invalid)?)
}

/// What the quota is to be. Error 22023.
pub fn spec(definition: &QuotaDefinition) -> SqlResult<Spec> {
    let standing_alone = Spec::new(limit(&definition.limit)?);
    Ok(Spec {
        parent: definition.parent.as_deref().map(name).transpose()?,
        protocol: choice(definition.protocol.as_deref())?,
        offer: choice(definition.offer.as_deref())?,
        reallocation: choice(definition.reallocation.as_deref())?,
        ..standing_alone
    })
}

/// A choice by its name, in which `_` may stand for `-`, so that it needs no quotes.
fn choice<T: Default + FromStr<Err = Refusal>>(text: Option<&str>) -> Result<T, Refusal> {
    text.map_or_else(|| Ok(T::default()), |text| text.replace('_', "-").parse())
}
