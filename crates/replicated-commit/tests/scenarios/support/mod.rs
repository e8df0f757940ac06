//! Clusters of Replicated Commit, and what their clients ask.

mod client;
mod disk;
pub mod messages;
pub mod placements;
mod transcript;

use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::CommitOptions;
use rhumb_replicated_commit::{Config, Site};
pub use rhumb_testkit::cluster::{R0, R1, R2, R3, R4};
use std::ops::{Deref, DerefMut};

pub type Envelope = rhumb_testkit::Envelope<Site>;

/// How the sites of a cluster are made.
pub struct ReplicatedCommit {
    placement: Placement,
    /// What a new site is made into before it starts.
    make: fn(Site) -> Site,
}

/// A cluster, with what the clients of Replicated Commit ask of it.
pub struct Cluster {
    cluster: rhumb_testkit::Cluster<ReplicatedCommit>,
    /// How clients commit.
    pub options: CommitOptions,
}

impl Cluster {
    /// Three regions with `shards` sites each, all serving and known to each other. The goal heads the transcript.
    pub fn new(shards: u16, goal: &str) -> Cluster {
        Cluster::with_sites(shards, goal, |site| site)
    }

    /// The same with one site in each region, of which not all are active.
    pub fn placed(placement: Placement, goal: &str) -> Cluster {
        Cluster::placed_with_sites(placement, goal, |site| site)
    }

    /// The same of sites that `make` has changed.
    pub fn placed_with_sites(placement: Placement, goal: &str, make: fn(Site) -> Site) -> Cluster {
        Cluster::build(3, 1, placement, goal, make)
    }

    /// The same with one site in each of `regions`.
    pub fn of_regions(regions: usize, placement: Placement) -> Cluster {
        Cluster::build(regions, 1, placement, "", |site| site)
    }

    /// The same with `shards` sites in each of `regions`.
    pub fn of_sites(regions: usize, shards: u16, placement: Placement) -> Cluster {
        Cluster::of_changed_sites(regions, shards, placement, |site| site)
    }

    /// The same of sites that `make` has changed.
    pub fn of_changed_sites(regions: usize, shards: u16, placement: Placement, make: fn(Site) -> Site) -> Cluster {
        Cluster::build(regions, shards, placement, "", make)
    }

    /// The same in three active regions: it can plant a bug in them.
    pub fn with_sites(shards: u16, goal: &str, make: fn(Site) -> Site) -> Cluster {
        Cluster::build(3, shards, Placement::everywhere(3), goal, make)
    }

    /// A cluster of one site, which `make` has changed.
    pub fn of_one_site(goal: &str, make: fn(Site) -> Site) -> Cluster {
        Cluster::build(1, 1, Placement::everywhere(1), goal, make)
    }

    fn build(regions: usize, shards: u16, placement: Placement, goal: &str, make: fn(Site) -> Site) -> Cluster {
        let mut cluster = rhumb_testkit::Cluster::new(ReplicatedCommit { placement, make }, regions, shards, goal);
        // Everybody hears everybody once.
        cluster.advance(Config::default().tick);
        Cluster { cluster, options: CommitOptions::default() }
    }
}

impl Deref for Cluster {
    type Target = rhumb_testkit::Cluster<ReplicatedCommit>;

    fn deref(&self) -> &Self::Target {
        &self.cluster
    }
}

impl DerefMut for Cluster {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cluster
    }
}
