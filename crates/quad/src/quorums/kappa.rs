//! How many cores: `cores = auto`, from the availability that is asked for and the load.
//!
//! Transactions run as long as a majority of the cores is up, so the fewest cores that are up often enough are the least that will
//! do; more of them make every write wait for more sites (the paper's Figure 7). More than that only take part if the cores would be
//! asked for more than they can do: reads ask a majority, and the more cores there are, the smaller a part of them each has to serve.
//! Writes of cores go to all, so no number of cores relieves them.

use super::{CORES_MAX, majority};
use std::fmt;

/// What is asked of the cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// The share of time that a majority of the cores must be up: 0 to 1.
    pub availability: f64,
    /// The share of time that a site is up, each for itself: 0 to 1.
    pub site_availability: f64,
    /// Transactions that only read, of all sites together, over the capacity of one.
    pub reads: f64,
    /// Transactions that write, likewise.
    pub writes: f64,
}

impl Demand {
    /// What each of so many cores has to do, over its capacity.
    fn load_with(&self, cores: usize) -> f64 {
        self.writes + self.reads * majority(cores) as f64 / cores as f64
    }
}

/// Why so many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The fewest that are available enough.
    Availability,
    /// More, since the fewest would have more to do than they can.
    Load,
    /// No number of cores that there can be is available enough: these are, the most.
    Unreachable,
    /// As many as there are, which the load may ask for: by how much expectations of it have erred, it may ask for more, or for fewer.
    Kept,
}

/// How many cores, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kappa {
    /// How many.
    pub cores: usize,
    /// Why.
    pub reason: Reason,
    /// The share of time that a majority of them is up.
    pub available: f64,
    /// What each has to do, over its capacity.
    pub load: f64,
}

/// How many of `sites` sites, at least one, are to be cores.
pub fn kappa(sites: usize, demand: Demand) -> Kappa {
    let most = sites.clamp(1, CORES_MAX);
    let with = |cores: usize, reason| Kappa {
        cores,
        reason,
        available: majority_is_up(cores, demand.site_availability),
        load: demand.load_with(cores),
    };
    let available = |cores: &usize| majority_is_up(*cores, demand.site_availability) >= demand.availability;
    let enough: Vec<usize> = (1..=most).filter(available).collect();
    let Some(fewest) = enough.first() else {
        let best = (1..=most).map(|cores| with(cores, Reason::Unreachable));
        return best.reduce(|best, next| if next.available > best.available { next } else { best }).expect("one site at least");
    };
    let first = with(*fewest, Reason::Availability);
    if first.load <= 1.0 {
        return first;
    }
    let more = enough[1..].iter().map(|cores| with(*cores, Reason::Load));
    let mut best = first;
    for next in more {
        if best.load > 1.0 && next.load < best.load {
            best = next;
        }
    }
    best
}

/// How many of `sites` sites are to be cores where `there` are and the demand lies between these two. A change of their number interrupts all
/// sites, so both ends of it must ask for more, or both for fewer: else noise about the load that one core can bear would move the number to
/// and fro.
pub fn kappa_between(sites: usize, low: Demand, high: Demand, there: usize) -> Kappa {
    let (least, most) = (kappa(sites, low), kappa(sites, high));
    let available = majority_is_up(there, high.site_availability);
    if least.cores > there {
        least
    } else if most.cores < there || available < high.availability {
        most
    } else if least.cores == there {
        least
    } else {
        Kappa { cores: there, reason: Reason::Kept, available, load: high.load_with(there) }
    }
}

/// The probability that more than half of `cores` are up.
fn majority_is_up(cores: usize, each: f64) -> f64 {
    // By one core after the other: how likely so many of them are up.
    let mut up = vec![1.0];
    for _ in 0..cores {
        let mut next = vec![0.0; up.len() + 1];
        for (count, likely) in up.iter().enumerate() {
            next[count] += likely * (1.0 - each);
            next[count + 1] += likely * each;
        }
        up = next;
    }
    up[majority(cores)..].iter().sum()
}

impl fmt::Display for Kappa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kappa { cores, reason, available, load } = self;
        let percent = available * 100.0;
        match reason {
            Reason::Availability => write!(f, "{cores} cores: the fewest of which a majority is up often enough ({percent:.4} %)"),
            Reason::Load => write!(f, "{cores} cores: with fewer, each has more to do than it can (with so many {:.0} %)", load * 100.0),
            Reason::Kept => {
                write!(f, "{cores} cores: as many as there are, by what the load may be (up to {:.0} % for each)", load * 100.0)
            }
            Reason::Unreachable => write!(f, "{cores} cores: none but these come nearer to the availability asked for ({percent:.4} %)"),
        }
    }
}
