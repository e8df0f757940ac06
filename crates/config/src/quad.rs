//! `[quad]`: how the quorums of databases of protocol `quad` follow what is measured, and what a new cluster begins with.

use rhumb_core::{SiteId, Span, Topology};
use rhumb_quad::quorums::{CostWeights, Measures, Policy, Quorums, ScoreWeights, Scoring, Settings};
use rhumb_quad::{Adaptation, Availability as Wanted, Config};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// What is measured is told once in such a time, and never more often than round trips allow.
const PERIOD_S: RangeInclusive<u32> = 1..=3_600;
const CAPACITY: RangeInclusive<u32> = 1..=10_000_000;
const WEIGHT_MAX: f64 = 1_000.0;
/// Cores of a new cluster, if it has so many sites: the fewest of which one may be lost.
const CORES: usize = 3;
/// Locks of a transaction whose client thinks for so long are taken from it.
const IDLE: Span = Span::from_secs(10);
/// Whoever waits so long for a lock, or for a site that does not answer, is told so.
const PATIENCE: Span = Span::from_secs(5);
/// A client whose commit is confirmed by some and not by all is told after so long that it may be done or not.
const UNKNOWN: Span = Span::from_secs(8);

/// Databases of protocol `quad`. Sites with other settings understand each other; only who is up first decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quad {
    /// How often sites tell each other what they measured, and quorums may follow, in seconds.
    pub period_s: u32,
    /// Transactions of its own clients that this site can have in progress at a time: its load is counted by it.
    pub capacity: u32,
    /// What makes a site strong.
    pub score: Score,
    /// What makes a majority of the cores dear to a slave.
    pub assignment: Assignment,
    /// What `cores = auto` goes by.
    pub auto: Auto,
}

/// What makes a site strong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Score {
    /// The weight of being near to the others.
    pub distance: f64,
    /// The weight of having little to do.
    pub load: f64,
    /// What tells how much it has to do: `load`, or `latency` where machines are unequal.
    pub by: Scoring,
}

/// What makes a majority of the cores dear to a slave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Assignment {
    /// The weight of the distance to its farthest core.
    pub distance: f64,
    /// The weight of the load of its busiest core.
    pub load: f64,
    /// The weight of the slaves that it has already.
    pub balance: f64,
}

/// What `cores = auto` goes by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auto {
    /// The share of time that a majority of the cores is to be up.
    pub availability: f64,
    /// The share of time that a site is up.
    pub site_availability: f64,
}

impl Default for Quad {
    fn default() -> Quad {
        Quad { period_s: 10, capacity: 100, score: Score::default(), assignment: Assignment::default(), auto: Auto::default() }
    }
}

impl Default for Score {
    fn default() -> Score {
        let ScoreWeights { rtt, load, scoring } = ScoreWeights::default();
        Score { distance: rtt, load, by: scoring }
    }
}

impl Default for Assignment {
    fn default() -> Assignment {
        let CostWeights { communication, load, balance } = CostWeights::default();
        Assignment { distance: communication, load, balance }
    }
}

impl Default for Auto {
    fn default() -> Auto {
        let Wanted { wanted, of_site } = Wanted::default();
        Auto { availability: wanted, site_availability: of_site }
    }
}

/// What is wrong with a key.
type Wrong = (String, String);

impl Quad {
    /// What it means for a site of a cluster of so many. `Err`: the key, below `quad`, and what is wrong with it.
    pub(super) fn resolve(&self, sites: usize) -> Result<Config, Wrong> {
        within("period_s", self.period_s, PERIOD_S)?;
        within("capacity", self.capacity, CAPACITY)?;
        weights("score", &[("distance", self.score.distance), ("load", self.score.load)])?;
        let Assignment { distance, load, balance } = self.assignment;
        weights("assignment", &[("distance", distance), ("load", load), ("balance", balance)])?;
        share("auto.availability", self.auto.availability)?;
        share("auto.site_availability", self.auto.site_availability)?;
        let plain = Config::default();
        let ticks = |span: Span| span.as_micros() / plain.tick.as_micros();
        let settings = Settings {
            score: ScoreWeights { rtt: self.score.distance, load: self.score.load, scoring: self.score.by },
            cost: CostWeights { communication: distance, load, balance },
            ..first_settings(sites)
        };
        let adaptation = Adaptation {
            period: Span::from_secs(u64::from(self.period_s)),
            capacity: u64::from(self.capacity),
            settings,
            auto: false,
            availability: Wanted { wanted: self.auto.availability, of_site: self.auto.site_availability },
        };
        Ok(Config {
            idle_ticks: ticks(IDLE),
            patience_ticks: ticks(PATIENCE),
            unknown_ticks: ticks(UNKNOWN),
            adaptation: Some(adaptation),
            ..plain
        })
    }
}

fn first_settings(sites: usize) -> Settings {
    Settings { policy: Policy::Quad, cores: sites.min(CORES), score: ScoreWeights::default(), cost: CostWeights::default() }
}

/// The quorums that a new cluster begins with: all sites take part. They follow from the shape of the cluster alone, so that every
/// site knows them without asking; what is measured moves them soon. None if there are more sites than quorums are built of.
pub fn first_quorums(topology: &Topology) -> Option<Quorums> {
    let sites: Vec<SiteId> = topology.sites().collect();
    let (count, unknown) = (sites.len(), vec![vec![0.0; sites.len()]; sites.len()]);
    let measures = Measures::new(sites, vec![None; count], &unknown).ok()?;
    Some(first_settings(count).quorums(&measures, &BTreeSet::new()))
}

fn within(key: &str, number: u32, allowed: RangeInclusive<u32>) -> Result<(), Wrong> {
    if allowed.contains(&number) {
        return Ok(());
    }
    Err((key.to_owned(), format!("is {number}; expected {} to {}", allowed.start(), allowed.end())))
}

fn weights(table: &str, weights: &[(&str, f64)]) -> Result<(), Wrong> {
    if let Some((key, weight)) = weights.iter().find(|(_, weight)| !(0.0..=WEIGHT_MAX).contains(weight)) {
        return Err((format!("{table}.{key}"), format!("is {weight}; expected a weight, 0 to {WEIGHT_MAX}")));
    }
    if weights.iter().all(|(_, weight)| *weight == 0.0) {
        let keys: Vec<&str> = weights.iter().map(|(key, _)| *key).collect();
        return Err((table.to_owned(), format!("all its weights are 0; expected one above that among {}", keys.join(", "))));
    }
    Ok(())
}

fn share(key: &str, share: f64) -> Result<(), Wrong> {
    if share > 0.0 && share < 1.0 {
        return Ok(());
    }
    Err((key.to_owned(), format!("is {share}; expected a share of time, above 0 and below 1")))
}
