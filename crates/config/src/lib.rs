//! The configuration of one site: a TOML file, the same for every site of a cluster but for `site`, `data_dir` and
//! `listen`. Or one file for all sites: a [`Cluster`], of which each is made.
//!
//! [`Config`] is the file as it is written, [`Setup`] what it means: reading one gives the other or a [`ConfigError`]
//! that names the file, the key and what is allowed there. A site never starts from a configuration that is not whole.

#[macro_use]
mod file;

mod agreed;
mod check;
mod cluster;
pub mod models;
mod placement;
mod quad;
mod read;
mod tls;

use rhumb_core::clock_offset::MAX_OFFSET;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

pub use agreed::Agreed;
pub use check::{QuotaSetup, Setup, WanLinks};
pub use cluster::{Cluster, ClusterRegion, FOLDER_NAMES, first_port, names_a_folder};
pub use placement::{Coordinators, Placement};
pub use quad::{Assignment, Auto, Quad, Score, first_quorums};
pub use tls::{Renewal, RenewalSetup, Tls, TlsSetup};

file! {
    /// The file of one site.
    pub struct Config {
        /// Where this site keeps its data. Relative to the folder of the file.
        pub data_dir: PathBuf,
        /// Which of the cluster's sites this is.
        pub site: OwnSite,
        /// Where this site listens.
        pub listen: Listen,
        /// All regions of the cluster, in the same order at every site.
        pub regions: Vec<Region>,
        /// The certificates by which the site is known and knows others; plain text, on the loopback alone, if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tls: Option<Tls>,
    }
}

/// Which of the cluster's sites this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnSite {
    /// The name of its region.
    pub region: String,
    /// Its place in that region's `sites`, from 0.
    pub shard: u16,
}

/// Where a site listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// For PostgreSQL clients. Port 0: any free port.
    #[serde(deserialize_with = "read::address")]
    pub sql: SocketAddr,
    /// For clients of quotas that speak the Redis protocol. Port 0: any free port. None if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read::optional_address")]
    pub resp: Option<SocketAddr>,
    /// For health, metrics, quotas and administration. Port 0: any free port.
    #[serde(deserialize_with = "read::address")]
    pub http: SocketAddr,
    /// For the other sites; the same address as in `regions`.
    #[serde(deserialize_with = "read::address")]
    pub peer: SocketAddr,
}

/// A region of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// The peer address of each of its sites, by shard.
    #[serde(deserialize_with = "read::addresses")]
    pub sites: Vec<SocketAddr>,
}

/// The emulated wide-area network. At most one of `profile`, `file` and `matrix` is given; without any links have no delay
/// of their own, only jitter and loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wan {
    /// A shipped matrix of round-trip times, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// A matrix of round-trip times of one's own, a CSV file. Relative to the folder of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The text of such a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<String>,
    /// Up to so many milliseconds, each as likely, are added to each message's way.
    #[serde(default)]
    pub jitter_ms: f64,
    /// The share of messages that are lost, 0 to below 1.
    #[serde(default)]
    pub loss: f64,
}

/// The site's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clock {
    /// So far the clocks of two sites may differ, in milliseconds: messages of a site that is ahead by more are refused, and a site that
    /// differs by more from a majority ends.
    pub max_offset_ms: u32,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { max_offset_ms: MAX_OFFSET.as_millis_f64() as u32 }
    }
}

/// The storage engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// Memory for caching blocks of files, in MiB.
    pub cache_mib: u32,
    /// Memory for the newest versions of rows that were read lately, in MiB.
    pub row_cache_mib: u32,
}

impl Default for Storage {
    fn default() -> Storage {
        Storage { cache_mib: 32, row_cache_mib: 32 }
    }
}

/// Quotas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// The epoch of demand and forecasts, in seconds: the time between two values of the series that models were trained on.
    pub epoch_s: u32,
    /// A model for each quota that has one: a file of `rhumb forecast train`. Relative to the folder of the configuration.
    pub models: BTreeMap<String, PathBuf>,
}

impl Default for Quotas {
    fn default() -> Quotas {
        Quotas { epoch_s: 60, models: BTreeMap::new() }
    }
}

/// Databases of protocol `catenae`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Catenae {
    /// The length of an epoch, in milliseconds. Stays what it was when the cluster began: timestamps are made of it.
    pub epoch_ms: u32,
    /// When a commit is answered.
    pub durability: Durability,
    /// Coordinators of a region: its first sites, each for a part of the tables. Stays what it was, too.
    pub coordinators: u16,
    /// Where the chain servers of a region stand.
    pub chain_sites: ChainSites,
}

/// Where the chain servers of a region stand, which conflicting transactions of an epoch visit one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainSites {
    /// All with its coordinator.
    Coordinator,
    /// On its coordinator and the site beside it, in turn.
    Every,
}

/// When a commit of Catenae is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Once a majority of regions has it on disk.
    Majority,
    /// Once its own region has it on disk; should that be lost, the others wait for it.
    Region,
}

impl Default for Catenae {
    fn default() -> Catenae {
        Catenae { epoch_ms: 10, durability: Durability::Majority, coordinators: 1, chain_sites: ChainSites::Coordinator }
    }
}

/// The HTTP port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Names by which clients reach it, besides `localhost` and addresses. Requests to others are refused: they may come from a page in
    /// somebody's browser.
    pub names: Vec<String>,
}

/// Bounds that an operator may move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// So many requests of clients may wait for their answers; one more is told that the site is busy.
    pub requests: u32,
    /// How long a site that is told to stop waits for what clients have under way, in milliseconds.
    pub stop_grace_ms: u64,
    /// Memory that prepared statements and portals of all clients of SQL may take, in MiB.
    pub statements_mib: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { requests: 4_096, stop_grace_ms: 10_000, statements_mib: 512 }
    }
}

/// The file of the secret unless said otherwise.
pub const SECRET_FILE: &str = "cluster.secret";

fn default_secret_file() -> PathBuf {
    SECRET_FILE.into()
}

fn default_cluster() -> String {
    "rhumb".to_owned()
}

/// What is wrong with a configuration. One line; says where and what is allowed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ConfigError {
    #[error("{file}: cannot read the configuration: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{file}{}{}: {message}", at_line(*.line), at_key(.key))]
    Mistake { file: String, line: Option<usize>, key: String, message: String },
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

fn at_key(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!(", {key}") }
}
