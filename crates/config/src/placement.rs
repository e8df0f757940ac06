//! `[placement]`: which regions vote, which only hold a copy, and where the clients of a region read and commit.

use rhumb_commit::placement::{self, Regions};
use rhumb_core::{RegionId, Topology};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names that are less alike are not taken for each other; 1 is the same.
const ALIKE: f64 = 0.6;

/// Which regions hold what, by name. Without it all are active.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// The regions that hold a copy and vote.
    pub active: Vec<String>,
    /// The regions that hold a copy and do not vote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passive: Vec<String>,
    /// Where the clients of a region read and commit, if not as near as they can.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coordinators: BTreeMap<String, Coordinators>,
}

/// Where the clients of a region read and commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinators {
    /// Optimistic reads go to this region, unless there is a copy at home.
    pub read: String,
    /// Commits are handed to this region.
    pub commit: String,
}

/// What is wrong with a key.
type Wrong = (String, String);

impl Placement {
    /// What it means in a cluster of these regions. `Err`: the key, below `placement`, and what is wrong with it.
    pub fn resolve(&self, topology: &Topology) -> Result<placement::Placement, Wrong> {
        if self.active.is_empty() {
            return Err(("active".to_owned(), "is empty; at least one region must vote".to_owned()));
        }
        let voters = listed("active", &self.active, topology)?;
        let passives = listed("passive", &self.passive, topology)?;
        if let Some(both) = passives.iter().find(|&region| voters.contains(region)) {
            let name = topology.name(both);
            return Err(("passive".to_owned(), format!("`{name}` is active already; a region is either active or passive")));
        }
        let mut placement =
            placement::Placement { epoch: 1, voters, passives, coordinators: BTreeMap::new(), former: Vec::new(), lost: BTreeMap::new() };
        for (of, Coordinators { read, commit }) in &self.coordinators {
            let key = |part: &str| format!("coordinators.{of}{part}");
            let region = find(of, topology).map_err(|why| (key(""), why))?;
            let (read, commit) =
                (find(read, topology).map_err(|why| (key(".read"), why))?, find(commit, topology).map_err(|why| (key(".commit"), why))?);
            if !placement.copies().contains(read) {
                let copies: Vec<&str> = placement.copies().iter().map(|copy| topology.name(copy)).collect();
                let why = format!("`{}` holds no copy; expected one of {}", topology.name(read), copies.join(", "));
                return Err((key(".read"), why));
            }
            placement.coordinators.insert(region, placement::Coordinators { read, commit });
        }
        Ok(placement)
    }
}

fn listed(key: &str, names: &[String], topology: &Topology) -> Result<Regions, Wrong> {
    let mut regions = Regions::NONE;
    for (index, name) in names.iter().enumerate() {
        let key = || format!("{key}[{index}]");
        let region = find(name, topology).map_err(|why| (key(), why))?;
        if regions.contains(region) {
            return Err((key(), format!("`{name}` is listed twice")));
        }
        regions = regions.or(region.into());
    }
    Ok(regions)
}

/// The region called `name`. `Err`: which one may have been meant.
fn find(name: &str, topology: &Topology) -> Result<RegionId, String> {
    topology.region(name).ok_or_else(|| {
        let names: Vec<&str> = topology.regions().map(|region| topology.name(region)).collect();
        let alike = |known: &&str| strsim::normalized_damerau_levenshtein(name, known);
        let nearest = names.iter().copied().max_by(|one, other| alike(one).total_cmp(&alike(other))).filter(|known| alike(known) >= ALIKE);
        let meant = nearest.map(|nearest| format!("did you mean `{nearest}`? ")).unwrap_or_default();
        format!("`{name}` is not among the regions; {meant}expected one of {}", names.join(", "))
    })
}
