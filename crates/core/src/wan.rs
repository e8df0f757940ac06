//! The WAN profiles that ship with Rhumb: matrices of round-trip times, each with where it comes from.

use crate::rtt::RttMatrix;

/// A shipped matrix of round-trip times.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// What `--wan` calls it.
    pub name: &'static str,
    /// Who measured it, when, and under which licence it is passed on.
    pub source: &'static str,
    text: &'static str,
}

impl Profile {
    /// The matrix.
    pub fn matrix(&self) -> RttMatrix {
        RttMatrix::parse(self.name, self.text).expect("shipped profiles are checked by a test")
    }
}

macro_rules! shipped {
    ($name:literal, $source:literal) => {
        Profile { name: $name, source: $source, text: include_str!(concat!("../profiles/", $name, ".csv")) }
    };
}

/// All shipped profiles.
pub const PROFILES: [Profile; 7] = [
    shipped!(
        "paper_replicated_commit_5",
        "Mahmoud et al., Low-Latency Multi-Datacenter Databases using Replicated Commit, VLDB 2013, Table 1"
    ),
    shipped!("paper_samya_5", "Maiyya et al., Samya, round-trip times of its five-region evaluation"),
    shipped!("paper_gplacer_9", "Zakhary et al., GPlacer, Table 1 (slightly asymmetric, as printed)"),
    shipped!("aws_32", "AWS, one-year medians to 2025-10, cloudping figures as kept in an Apache-2.0 repository"),
    shipped!("azure_48", "Azure, published medians 2026-03, Microsoft's table from an MIT repository; gaps filled from the transpose"),
    shipped!("gcp_39", "GCP, public measurements, MIT"),
    shipped!("aws_azure_42", "AWS and Azure across clouds, 2022-04, Skyplane, Apache-2.0"),
];

/// The profile called `name`.
pub fn profile(name: &str) -> Option<Profile> {
    PROFILES.into_iter().find(|profile| profile.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_profile_parses_and_has_as_many_regions_as_it_says() {
        for profile in PROFILES {
            let count: usize = profile.name.rsplit('_').next().and_then(|count| count.parse().ok()).expect("named after its size");
            assert_eq!(profile.matrix().names().len(), count, "{}", profile.name);
        }
    }
}
