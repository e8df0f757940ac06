//! Clusters of replicated logs, what their clients ask, and what their sites hold.

mod client;
pub mod messages;
mod transcript;

use rhumb_core::{Inspect, Key, Load, Loaded, RegionId, Rules, SiteId, Span, Timestamp};
use rhumb_replicated_log::planted::Planted;
use rhumb_replicated_log::{Config, Site};
pub use rhumb_testkit::cluster::{R0, R1, R2};
use std::ops::{Deref, DerefMut};

/// The region of the leaders.
pub const NORTH: RegionId = RegionId(0);
/// The one of those that lead next.
pub const EAST: RegionId = RegionId(1);

pub type Envelope = rhumb_testkit::Envelope<Site>;

/// Until groups have leaders that serve, or others once these are gone: leases are waited out.
pub const ELECTION: Span = Span::from_millis(3_500);

/// How the sites of a cluster are made.
pub struct ReplicatedLog {
    config: Config,
    rules: Rules<Planted>,
}

/// A cluster, with what its clients ask of it. Leaders are preferred in the first region.
pub struct Cluster {
    cluster: rhumb_testkit::Cluster<ReplicatedLog>,
}

impl Cluster {
    /// Three regions with `shards` sites each, which have leaders. The goal heads the transcript.
    pub fn new(shards: u16, goal: &str) -> Cluster {
        Cluster::with(shards, goal, Config::default(), Rules::HOLD)
    }

    /// The same with other settings.
    pub fn configured(shards: u16, config: Config) -> Cluster {
        Cluster::with(shards, "", config, Rules::HOLD)
    }

    /// The same by other rules.
    pub fn with(shards: u16, goal: &str, config: Config, rules: Rules<Planted>) -> Cluster {
        let mut cluster = Cluster::leaderless(shards, goal, config, rules);
        cluster.advance(Span::from_secs(1));
        for shard in 0..shards {
            assert!(cluster.site(SiteId::new(0, shard)).leads().is_some(), "the preferred replica leads");
        }
        cluster
    }

    /// The same before anybody has become a leader.
    pub fn leaderless(shards: u16, goal: &str, config: Config, rules: Rules<Planted>) -> Cluster {
        Cluster { cluster: rhumb_testkit::Cluster::new(ReplicatedLog { config, rules }, 3, shards, goal) }
    }

    /// A key of that shard; each `number` has another one.
    pub fn key(&self, shard: u16, number: usize) -> String {
        let names = (0..).map(|suffix| format!("k{suffix}"));
        names.filter(|name| self.topology().shard_of(&Key::from(name.as_str())) == shard).nth(number).expect("hashes spread")
    }

    /// The size of a table of `site`.
    pub fn table(&self, site: SiteId, name: &str) -> usize {
        let mut size = None;
        self.site(site).tables(&mut |table| {
            if table.name == name {
                size = Some(table.size);
            }
        });
        size.expect("the site has such a table")
    }

    /// The sizes of a table at all sites of a shard.
    pub fn tables(&self, shard: u16, name: &str) -> Vec<usize> {
        (0..3).map(|region| self.table(SiteId::new(region, shard), name)).collect()
    }

    /// The newest value of `key` on the disk of `site`, and its version.
    pub fn stored(&self, site: SiteId, key: &str) -> (Timestamp, Option<String>) {
        let load = Load::Get { keys: vec![Key::from(key)], at: Timestamp::MAX, bytes: usize::MAX };
        let loaded = self.store(site).load(&load).expect("a store in memory does not fail");
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        (rows[0].version, rows[0].value.as_ref().map(|value| String::from_utf8_lossy(&value.0).into_owned()))
    }

    /// All sites of a shard have this value of `key`, and are in doubt about nothing.
    pub fn assert_ended(&self, shard: u16, key: &str, value: Option<&str>) {
        for site in (0..3).map(|region| SiteId::new(region, shard)).filter(|site| self.is_up(*site)) {
            assert_eq!(self.stored(site, key).1.as_deref(), value, "{key} at {site}");
            assert_eq!(self.site(site).in_doubt(), 0, "{site}");
        }
    }
}

impl Deref for Cluster {
    type Target = rhumb_testkit::Cluster<ReplicatedLog>;

    fn deref(&self) -> &Self::Target {
        &self.cluster
    }
}

impl DerefMut for Cluster {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cluster
    }
}
