//! Names of quotas.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The longest name of a quota, in bytes.
pub const NAME_BYTES_MAX: usize = 200;

/// The name of a quota: 1 to [`NAME_BYTES_MAX`] bytes of UTF-8 without white space and control characters. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// Why a text is no name, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvalidName(pub(crate) String);

impl Name {
    /// The name that `text` spells, if it may be one.
    pub fn new(text: &str) -> Result<Name, InvalidName> {
        let invalid = |why: String| Err(InvalidName(why));
        if text.is_empty() {
            return invalid("the name of a quota is empty; give it 1 to 200 bytes".into());
        }
        if text.len() > NAME_BYTES_MAX {
            return invalid(format!("the name of a quota has {} bytes; at most {NAME_BYTES_MAX} are allowed", text.len()));
        }
        if text.chars().any(|char| char.is_whitespace() || char.is_control()) {
            return invalid("the name of a quota holds white space or control characters; neither is allowed".into());
        }
        Ok(Name(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Name, InvalidName> {
        Name::new(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.as_str().to_owned()
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_printable() {
        for good in ["vm", "eCommerce.com/clothing", "größe", &"x".repeat(NAME_BYTES_MAX)] {
            assert_eq!(Name::new(good).expect("allowed").as_str(), good);
        }
        for (bad, why) in [
            ("", "the name of a quota is empty; give it 1 to 200 bytes"),
            ("a b", "the name of a quota holds white space or control characters; neither is allowed"),
            ("a\n", "the name of a quota holds white space or control characters; neither is allowed"),
            (&"x".repeat(10_000), "the name of a quota has 10000 bytes; at most 200 are allowed"),
        ] {
            assert_eq!(Name::new(bad), Err(InvalidName(why.into())));
        }
    }
}
