//! Clusters of quota sites, and what their clients ask.

pub mod client;
pub mod messages;
mod transcript;

use rhumb_quota::Site;
pub use rhumb_testkit::cluster::{R0, R1, R2, R3, R4};
use std::ops::{Deref, DerefMut};

pub type Envelope = rhumb_testkit::Envelope<Site>;

/// How the sites of a cluster are made.
pub struct Quotas {
    /// What a new site is made into before it starts.
    make: fn(Site) -> Site,
}

/// A cluster, with what the clients of quotas ask of it.
pub struct Cluster(rhumb_testkit::Cluster<Quotas>);

impl Cluster {
    /// So many regions with one site each, all serving. The goal heads the transcript.
    pub fn new(regions: usize, goal: &str) -> Cluster {
        Cluster::with_sites(regions, goal, |site| site)
    }

    /// The same of sites that `make` has changed: it can plant a bug in them.
    pub fn with_sites(regions: usize, goal: &str, make: fn(Site) -> Site) -> Cluster {
        Cluster(rhumb_testkit::Cluster::new(Quotas { make }, regions, 1, goal))
    }
}

impl Deref for Cluster {
    type Target = rhumb_testkit::Cluster<Quotas>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Cluster {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
