//! What one run is made of: a system, a limit, a load, what goes wrong. Two runs of equal setups are equal.

use super::baselines::{escrow, multipaxsys};
use super::parameters as p;
use rhumb_core::Span;
use rhumb_quota::spec::{OfferPolicy, ProtocolKind};
use std::fmt;

/// What a site of Samya knows of the demand to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prediction {
    /// Nothing: it acts once it is short.
    None,
    /// What the laboratory's model says; without one, that the next epoch is like the last.
    Model,
    /// The trace.
    Perfect,
}

/// A form of Samya.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Samya {
    /// How sites agree.
    pub protocol: ProtocolKind,
    /// What a site puts into a redistribution.
    pub offer: OfferPolicy,
    /// What it knows of the demand to come.
    pub prediction: Prediction,
}

/// Where the leader of MultiPaxSys stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaderRegion {
    /// In the middle of the US: of all regions the nearest to a majority.
    UsCentral,
    /// In the region of the US where the clients are.
    UsWest,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// Samya.
    Samya(Samya),
    /// One replicated log.
    MultiPaxSys(multipaxsys::Settings, LeaderRegion),
    /// Shares, borrowed from one site after another.
    Demarcation(escrow::Lending),
    /// Samya without a limit.
    NoConstraint,
    /// Samya that rejects what a site's own tokens do not cover.
    NoRedistribution,
}

/// What goes wrong during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Nothing.
    None,
    /// Four times, a fifth of the run apart, a site crashes for good together with a client: one is left at the end.
    Crashes,
    /// Asia and Europe are cut off from the rest from the start on: three sites against two.
    Partition,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setup {
    /// What is measured.
    pub system: System,
    /// The maximum limit.
    pub limit: u64,
    /// Points of the trace that are replayed.
    pub points: usize,
    /// Time between two points as replayed.
    pub interval: Span,
    /// Sites per region, each with a client of its own.
    pub sites_per_region: u16,
    /// Of a hundred transactions, so many are reads of all tokens instead.
    pub read_percent: u8,
    /// Requests that a client has outstanding at the most.
    pub connections: usize,
    /// What goes wrong.
    pub trouble: Trouble,
    /// Decides the moments of the requests.
    pub seed: u64,
}

impl Setup {
    /// `system` under the load of section 5.3: an hour, five sites, no reads, no trouble.
    pub fn new(system: System, seed: u64) -> Setup {
        Setup {
            system,
            limit: p::LIMIT,
            points: p::POINTS_OF_AN_HOUR,
            interval: p::INTERVAL,
            sites_per_region: 1,
            read_percent: 0,
            connections: p::CONNECTIONS,
            trouble: Trouble::None,
            seed,
        }
    }

    /// How long the clients ask.
    pub fn length(&self) -> Span {
        self.interval * self.points as u64
    }
}

impl LeaderRegion {
    /// The region's name.
    pub fn region(self) -> &'static str {
        match self {
            LeaderRegion::UsCentral => "us-central1",
            LeaderRegion::UsWest => "us-west1",
        }
    }
}

impl System {
    /// Its name in tables and plots.
    pub fn name(&self) -> String {
        match self {
            System::Samya(it) => match it.prediction {
                Prediction::Model => format!("Samya {}, {}", it.protocol, it.offer),
                other => format!("Samya {}, {}, prediction {other}", it.protocol, it.offer),
            },
            System::MultiPaxSys(it, LeaderRegion::UsCentral) if *it == multipaxsys::Settings::default() => "MultiPaxSys".into(),
            System::MultiPaxSys(it, leader_region) if *it == multipaxsys::Settings::default() => {
                format!("MultiPaxSys, {}", leader_region.region())
            }
            System::MultiPaxSys(it, _) => format!("MultiPaxSys, depth {} batch {}", it.depth, it.batch),
            System::Demarcation(escrow::Lending::Half) => "Demarcation/Escrow".into(),
            System::Demarcation(escrow::Lending::Need) => "Demarcation, needs only".into(),
            System::NoConstraint => "No constraint".into(),
            System::NoRedistribution => "No redistribution".into(),
        }
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Prediction::None => "none",
            Prediction::Model => "model",
            Prediction::Perfect => "perfect",
        })
    }
}
