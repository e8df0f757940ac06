//! What a placement must keep to, besides its size of 2f + 1.

use crate::matrix::Matrix;
use std::collections::{BTreeMap, BTreeSet};

/// Something that every placement must satisfy. Regions are indices of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// The data must stay within these regions.
    Within(BTreeSet<usize>),
    /// This region holds no replica.
    Forbidden(usize),
    /// This region holds a replica.
    Required(usize),
    /// At most `limit` replicas in any one group: a provider, a continent, a country. At most f of a group means that the
    /// whole group may be lost. No more than two such constraints, so that feasibility stays a matter of flows.
    AtMost {
        /// The number of replicas that a group may hold.
        limit: u32,
        /// The groups.
        groups: Groups,
    },
    /// How many clients a replica in each region can carry (by region). Under full replication every replica carries the
    /// writes of every client, wherever those are coordinated, so a region qualifies only if it can carry all clients.
    Capacity(Vec<u64>),
    /// The replicas together cost at most this per month, in millionths of a dollar.
    Budget(u64),
}

/// A division of the regions into groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// What a group is: "provider", "continent".
    pub kind: String,
    /// The groups' names.
    pub names: Vec<String>,
    /// The group of each region: an index of `names`.
    pub of: Vec<u32>,
}

impl Groups {
    /// The division by `kind` that puts each region, in the order of the matrix, into the group called so. Groups are
    /// numbered in the order they come up.
    pub fn new(kind: &str, group_of_each: impl Iterator<Item = String>) -> Groups {
        let mut groups = Groups { kind: kind.to_owned(), names: Vec::new(), of: Vec::new() };
        let mut numbers = BTreeMap::new();
        for name in group_of_each {
            let number = *numbers.entry(name.clone()).or_insert_with(|| {
                groups.names.push(name);
                groups.names.len() as u32 - 1
            });
            groups.of.push(number);
        }
        groups
    }
}

impl Constraint {
    /// The constraint in words, as errors and tables show it.
    pub fn describe(&self, matrix: &Matrix) -> String {
        let name = |region: &usize| matrix.names()[*region].as_str();
        match self {
            Constraint::Within(regions) => format!("data stays within {}", regions.iter().map(name).collect::<Vec<_>>().join(", ")),
            Constraint::Forbidden(region) => format!("no replica in {}", name(region)),
            Constraint::Required(region) => format!("a replica in {}", name(region)),
            Constraint::AtMost { limit, groups } => format!("at most {limit} per {}", groups.kind),
            Constraint::Capacity(_) => "a replica only where there is capacity for all clients".to_owned(),
            Constraint::Budget(micro_dollars) => {
                format!("at most {}.{:02} dollars a month", micro_dollars / 1_000_000, micro_dollars % 1_000_000 / 10_000)
            }
        }
    }
}
