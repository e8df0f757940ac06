//! The settings on which all sites of a cluster agree, for ever: promises on disk mean what they mean under these alone.
//!
//! There is one list of them, [`Setup::agreed`]. Sites compare it when they meet, by its [fingerprint](Setup::fingerprint), and each binds
//! its data folder to it ([`crate::site::owner`]): a site whose setting was changed would read its own epochs, votes and rows as something
//! else, whether a peer is there to object or not. Who holds what, and which quorums there are, is changed by the protocols themselves
//! while clients run; of the placement the list has the one that the cluster began with.

use super::Setup;
use rhumb_commit::placement::Regions;

/// A setting on which all sites of a cluster agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Its key in the configuration.
    pub name: &'static str,
    /// What it is, as in the configuration. One line.
    pub value: String,
}

impl Setup {
    /// All settings on which the sites of a cluster agree, besides its name.
    pub fn agreed(&self) -> Vec<Agreed> {
        let names = |regions: Vec<_>| format!("{:?}", regions.into_iter().map(|region| self.topology.name(region)).collect::<Vec<_>>());
        let of = |regions: Regions| names(regions.iter().collect());
        let catenae = &self.catenae;
        [
            ("regions", names(self.topology.regions().collect())),
            ("sites per region", self.topology.shard_count().to_string()),
            ("placement.active", of(self.placement.voters)),
            ("placement.passive", of(self.placement.passives)),
            ("catenae.epoch_ms", (catenae.epoch.as_micros() / 1_000).to_string()),
            ("catenae.durability", format!("{:?}", format!("{:?}", catenae.durability).to_lowercase())),
            ("catenae.coordinators", catenae.coordinators.to_string()),
        ]
        .map(|(name, value)| Agreed { name, value })
        .into()
    }

    /// A number that sites of one cluster share and those of another hardly can: FNV-1a over its name and all that its sites agree on.
    pub fn fingerprint(&self) -> u64 {
        let settings = self.agreed().into_iter().map(|Agreed { name, value }| format!("\n{name} = {value}"));
        let text = std::iter::once(self.cluster.clone()).chain(settings).collect::<String>();
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }
}
