//! What is answered over HTTP, as JSON shows it. `openapi.json` describes the same, and tests compare the two.

use rhumb_core::{SiteId, Topology};
use rhumb_quota::info::{Info, SiteTokens};
use rhumb_quota::name::Name;
use rhumb_quota::operation::Done;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::Spec;
use serde::Serialize;

/// A quota as it is shown.
#[derive(Serialize)]
pub struct ShownQuota {
    #[serde(flatten)]
    spec: ShownSpec,
    read: String,
    left: u64,
    held: u64,
    offered: u64,
    owed: u64,
    sites: Vec<ShownSite>,
    missing: Vec<String>,
    booked: u64,
    freed: u64,
}

/// What a quota is, as it is shown.
#[derive(Serialize)]
pub struct ShownSpec {
    name: String,
    limit: u64,
    parent: Option<String>,
    protocol: String,
    offer: String,
    reallocation: String,
}

#[derive(Serialize)]
struct ShownSite {
    site: String,
    left: u64,
    held: u64,
    offered: u64,
    owed: u64,
    freed: u64,
}

/// Sites declared lost.
#[derive(Serialize)]
pub struct ShownLost {
    sites: Vec<String>,
    unsettled: usize,
}

/// All quotas.
#[derive(Serialize)]
pub struct ShownQuotas {
    quotas: Vec<ShownQuota>,
}

/// What was acquired or released left so many tokens at this site.
#[derive(Serialize)]
pub struct ShownDone {
    left: u64,
}

impl ShownSpec {
    /// What `spec` says of the quota `name`.
    pub fn new(name: &Name, spec: &Spec) -> ShownSpec {
        ShownSpec {
            name: name.to_string(),
            limit: spec.limit,
            parent: spec.parent.as_ref().map(Name::to_string),
            protocol: spec.protocol.to_string(),
            offer: spec.offer.to_string(),
            reallocation: spec.reallocation.to_string(),
        }
    }
}

impl ShownQuota {
    /// What `info` says, with the names of the sites from `topology`.
    pub fn new(info: &Info, topology: &Topology) -> ShownQuota {
        let name = |site: SiteId| shown_name(site, topology);
        let site = |&SiteTokens { site, left, held, offered, owed, freed }: &SiteTokens| {
            let site = name(site);
            ShownSite { site, left, held, offered, owed, freed }
        };
        ShownQuota {
            spec: ShownSpec::new(&info.name, &info.spec),
            read: info.read.to_string(),
            left: info.left(),
            held: info.held(),
            offered: info.offered(),
            owed: info.owed(),
            sites: info.sites.iter().map(site).collect(),
            missing: info.missing.iter().map(|&site| name(site)).collect(),
            booked: info.booked,
            freed: info.freed(),
        }
    }
}

/// The name of a site: `ireland/0`.
pub fn shown_name(site: SiteId, topology: &Topology) -> String {
    format!("{}/{}", topology.name(site.region), site.shard)
}

impl ShownLost {
    /// These sites, and in how many quotas it is not settled what they have.
    pub fn new(lost: &[SiteId], unsettled: usize, topology: &Topology) -> ShownLost {
        ShownLost { sites: lost.iter().map(|site| shown_name(*site, topology)).collect(), unsettled }
    }
}

impl ShownQuotas {
    /// Likewise of all quotas.
    pub fn new(quotas: &[Info], topology: &Topology) -> ShownQuotas {
        ShownQuotas { quotas: quotas.iter().map(|info| ShownQuota::new(info, topology)).collect() }
    }
}

impl ShownDone {
    /// What became of an operation.
    pub fn new(done: Done) -> ShownDone {
        ShownDone { left: done.left }
    }
}

impl ShownFailure {
    /// Why something was not done.
    pub fn new(refusal: &Refusal) -> ShownFailure {
        ShownFailure { error: ShownError { code: refusal.code(), message: refusal.to_string() } }
    }
}

/// Why something was not done.
#[derive(Serialize)]
pub struct ShownFailure {
    error: ShownError,
}

#[derive(Serialize)]
struct ShownError {
    code: &'static str,
    message: String,
}
