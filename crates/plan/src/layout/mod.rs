//! Which regions of a running cluster hold what: what a plan is held against, and what it proposes.
//!
//! | role | holds a copy | votes | its clients read, without locks |
//! |---|---|---|---|
//! | active | yes | yes | at home |
//! | passive | yes | no | at home |
//! | none | no | no | where the layout says, else at the nearest copy |
//!
//! Regions go by their names here, as a cluster tells and takes them; [`latency`] works on the matrix.

pub mod course;
pub mod latency;
pub mod proposal;

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Which regions hold what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The regions that hold a copy and vote.
    pub active: BTreeSet<String>,
    /// Those that hold a copy and do not vote.
    #[serde(default)]
    pub passive: BTreeSet<String>,
    /// Where the clients of a region read and commit, if not as near as they can.
    #[serde(default)]
    pub coordinators: BTreeMap<String, Coordinators>,
}

/// Where the clients of a region read and commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinators {
    /// The region whose copy is read, unless there is one at home.
    pub read: String,
    /// The region that runs commits.
    pub commit: String,
}

/// What a region holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A copy, and a vote.
    Active,
    /// A copy.
    Passive,
    /// Nothing.
    None,
}

/// A region whose role changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoleChange {
    /// The region.
    pub region: String,
    /// Its role before.
    pub from: Role,
    /// Its role after.
    pub to: Role,
}

impl Layout {
    /// The regions that hold a copy.
    pub fn copies(&self) -> BTreeSet<String> {
        &self.active | &self.passive
    }

    /// What `region` holds.
    pub fn role(&self, region: &str) -> Role {
        if self.active.contains(region) {
            Role::Active
        } else if self.passive.contains(region) {
            Role::Passive
        } else {
            Role::None
        }
    }

    /// The regions that hold something else in `next`, by name.
    pub fn changes(&self, next: &Layout) -> Vec<RoleChange> {
        let regions = &self.copies() | &next.copies();
        let change = |region: String| RoleChange { from: self.role(&region), to: next.role(&region), region };
        regions.into_iter().map(change).filter(|change| change.from != change.to).collect()
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |regions: &BTreeSet<String>| regions.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        write!(f, "active {}", names(&self.active))?;
        if !self.passive.is_empty() {
            write!(f, "; passive {}", names(&self.passive))?;
        }
        Ok(())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Active => "active",
            Role::Passive => "passive",
            Role::None => "none",
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The layout with these active and passive regions, separated by blanks.
    pub(crate) fn layout(active: &str, passive: &str) -> Layout {
        let set = |names: &str| names.split_whitespace().map(str::to_owned).collect();
        Layout { active: set(active), passive: set(passive), coordinators: BTreeMap::new() }
    }

    #[test]
    fn what_changes_is_told_by_region() {
        let (now, next) = (layout("a b c", "d e"), layout("a d f", "b e"));
        let told = |change: &RoleChange| format!("{} {} {}", change.region, change.from, change.to);
        let changes: Vec<String> = now.changes(&next).iter().map(told).collect();
        assert_eq!(changes, ["b active passive", "c active none", "d passive active", "f none active"]);
        assert_eq!(now.changes(&now), []);
        assert_eq!((now.to_string(), layout("a", "").to_string()), ("active a, b, c; passive d, e".to_owned(), "active a".to_owned()));
    }
}
