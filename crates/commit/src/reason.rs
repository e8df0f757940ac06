//! A sentence for people in which sites stand as themselves.
//!
//! A protocol knows a site by its place in the topology, people by its name, and only the node knows both. So what a protocol says keeps the
//! sites as values; whoever shows it to people [names](Reason::named) them.

use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why something was done or refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    Words(String),
    Site(SiteId),
}

impl Reason {
    /// These sites, with commas between them.
    pub fn list<'a>(sites: impl IntoIterator<Item = &'a SiteId>) -> Reason {
        sites.into_iter().enumerate().fold(Reason::default(), |list, (place, site)| {
            let list = if place == 0 { list } else { list.then(", ") };
            list.then(*site)
        })
    }

    /// The same, and this after it.
    pub fn then(mut self, more: impl Into<Reason>) -> Reason {
        self.0.extend(more.into().0);
        self
    }

    /// True if it says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, with the names that `name` gives to sites.
    pub fn named(&self, name: impl Fn(SiteId) -> String) -> String {
        let text = |part: &Part| match part {
            Part::Words(words) => words.clone(),
            Part::Site(site) => name(*site),
        };
        self.0.iter().map(text).collect()
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Reason {
        Reason::from(words.to_owned())
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Reason {
        Reason(vec![Part::Words(words)])
    }
}

impl From<SiteId> for Reason {
    fn from(site: SiteId) -> Reason {
        Reason(vec![Part::Site(site)])
    }
}

/// The text with the places of sites, for logs and tests.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(|site| site.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_named_where_they_stand_and_nowhere_else() {
        let sites = [SiteId::new(0, 0), SiteId::new(1, 0)];
        let reason = Reason::from("missing: ").then(Reason::list(&sites)).then("; r0.0 stays as it was written");
        assert_eq!(reason.to_string(), "missing: r0.0, r1.0; r0.0 stays as it was written");
        let name = |site: SiteId| ["california/0", "oregon/0"][usize::from(site.region.0)].to_owned();
        assert_eq!(reason.named(name), "missing: california/0, oregon/0; r0.0 stays as it was written");
    }

    #[test]
    fn a_list_of_no_sites_says_nothing() {
        assert!(Reason::list([]).is_empty());
        assert!(!Reason::from(SiteId::new(0, 0)).is_empty());
    }
}
