//! What is answered about quotas, from what their actor knows of them.

use rhumb_api::lost::LostSites;
use rhumb_api::quotas::{Offer, Protocol, Quota, Read, Reallocation, SiteTokens, Spec, Tokens};
use rhumb_core::{SiteId, Topology};
use rhumb_quota::info::{self, Info};
use rhumb_quota::name::Name;
use rhumb_quota::spec::{self, OfferPolicy, ProtocolKind};

/// What `spec` lays down for the quota `name`.
pub fn spec(name: &Name, spec: &spec::Spec) -> Spec {
    Spec {
        name: name.to_string(),
        limit: spec.limit,
        parent: spec.parent.as_ref().map(Name::to_string),
        protocol: match spec.protocol {
            ProtocolKind::Majority => Protocol::Majority,
            ProtocolKind::Any => Protocol::Any,
        },
        offer: match spec.offer {
            OfferPolicy::All => Offer::All,
            OfferPolicy::Spare => Offer::Spare,
        },
        reallocation: match spec.reallocation {
            spec::Reallocation::MaximumUsage => Reallocation::MaximumUsage,
            spec::Reallocation::MostSatisfied => Reallocation::MostSatisfied,
            spec::Reallocation::Proportional => Reallocation::Proportional,
        },
    }
}

/// What `info` says of a quota, with the names of the sites from `topology`.
pub fn quota(info: &Info, topology: &Topology) -> Quota {
    let site = |&info::SiteTokens { site, left, held, offered, owed, freed }: &info::SiteTokens| SiteTokens {
        site: site_name(site, topology),
        tokens: Tokens { left, held, offered, owed },
        freed,
    };
    Quota {
        spec: spec(&info.name, &info.spec),
        read: match info.read {
            info::Read::Local => Read::Local,
            info::Read::Global => Read::Global,
            info::Read::Exact => Read::Exact,
        },
        tokens: Tokens { left: info.left(), held: info.held(), offered: info.offered(), owed: info.owed() },
        sites: info.sites.iter().map(site).collect(),
        missing: info.missing.iter().map(|&site| site_name(site, topology)).collect(),
        booked: info.booked,
        freed: info.freed(),
    }
}

/// These sites, and in how many quotas it is not settled what they have.
pub fn lost_sites(lost: &[SiteId], unsettled: usize, topology: &Topology) -> LostSites {
    LostSites { sites: lost.iter().map(|&site| site_name(site, topology)).collect(), unsettled }
}

/// The name of a site: `ireland/0`.
pub fn site_name(site: SiteId, topology: &Topology) -> String {
    format!("{}/{}", topology.name(site.region), site.shard)
}
