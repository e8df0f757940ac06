//! What is known of the sites when quorums are built: how loaded each is, and how far from one another they are.
//!
//! Source: equations 3, 5 and 6: shares of the greatest load and distance.

use super::SITES_MAX;
use rhumb_core::SiteId;
use thiserror::Error;

/// The sites in ascending order, with what was measured of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    sites: Vec<SiteId>,
    load: Vec<Option<f64>>,
    /// Row-major, symmetric, zero on the diagonal.
    rtt_ms: Vec<f64>,
}

/// Why measures were not taken.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MeasureError {
    /// No site, or too many.
    #[error("{0} sites; quorums are built from one to {SITES_MAX}")]
    Count(usize),
    /// The sites are not in ascending order, or one stands there twice.
    #[error("site {0} is out of order; sites ascend, each once")]
    Order(SiteId),
    /// A load that is negative or no number.
    #[error("the load of site {0} is not a number of zero or more")]
    Load(SiteId),
    /// The matrix has not a row and a column for each site.
    #[error("the round-trip times are not a matrix with a row and a column for each site")]
    Shape,
    /// A round-trip time that is negative or no number.
    #[error("the round-trip time from site {0} to site {1} is not a number of zero or more")]
    Rtt(SiteId, SiteId),
}

impl Measures {
    /// `load`: of each site the transactions of a period over its capacity, or the latency predicted for it, the same for all;
    /// `None` if the site has not run for a whole period. `rtt_ms`: row = from, column = to; both directions are taken as their
    /// mean, the diagonal as zero.
    pub fn new(sites: Vec<SiteId>, load: Vec<Option<f64>>, rtt_ms: &[Vec<f64>]) -> Result<Measures, MeasureError> {
        let n = sites.len();
        if n == 0 || n > SITES_MAX {
            return Err(MeasureError::Count(n));
        }
        if let Some(pair) = sites.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(MeasureError::Order(pair[1]));
        }
        if load.len() != n || rtt_ms.len() != n || rtt_ms.iter().any(|row| row.len() != n) {
            return Err(MeasureError::Shape);
        }
        let sound = |number: f64| number.is_finite() && number >= 0.0;
        if let Some(index) = load.iter().position(|load| load.is_some_and(|load| !sound(load))) {
            return Err(MeasureError::Load(sites[index]));
        }
        let mut symmetric = vec![0.0; n * n];
        for from in 0..n {
            for to in (0..n).filter(|to| *to != from) {
                if !sound(rtt_ms[from][to]) {
                    return Err(MeasureError::Rtt(sites[from], sites[to]));
                }
                symmetric[from * n + to] = f64::midpoint(rtt_ms[from.min(to)][from.max(to)], rtt_ms[from.max(to)][from.min(to)]);
            }
        }
        Ok(Measures { sites, load, rtt_ms: symmetric })
    }

    /// The sites, ascending. Indices elsewhere are indices here.
    pub fn sites(&self) -> &[SiteId] {
        &self.sites
    }

    /// The index of `site`.
    pub fn index(&self, site: SiteId) -> Option<usize> {
        self.sites.binary_search(&site).ok()
    }

    /// True if site `index` has run for a whole period, or if none has.
    pub fn is_scored(&self, index: usize) -> bool {
        self.load[index].is_some() || self.load.iter().all(Option::is_none)
    }

    /// The load of site `index` over the greatest of all: 0 to 1. Zero where nothing is known, and if none has any.
    pub fn relative_load(&self, index: usize) -> f64 {
        let greatest = self.load.iter().flatten().copied().fold(0.0, f64::max);
        ratio(self.load[index].unwrap_or(0.0), greatest)
    }

    /// The round trip between two sites, milliseconds.
    pub fn rtt_ms(&self, from: usize, to: usize) -> f64 {
        self.rtt_ms[from * self.sites.len() + to]
    }

    /// The same over the greatest between any two: 0 to 1.
    pub fn relative_rtt(&self, from: usize, to: usize) -> f64 {
        let greatest = self.rtt_ms.iter().copied().fold(0.0, f64::max);
        ratio(self.rtt_ms(from, to), greatest)
    }

    /// How far site `index` is from all others, over the farthest of all: 0 to 1. The Euclidean norm of its row.
    pub fn remoteness(&self, index: usize) -> f64 {
        let n = self.sites.len();
        let norm = |row: usize| self.rtt_ms[row * n..][..n].iter().map(|rtt| rtt * rtt).sum::<f64>().sqrt();
        let farthest = (0..n).map(norm).fold(0.0, f64::max);
        ratio(norm(index), farthest)
    }
}

/// `part` over `greatest`; zero if all parts are.
fn ratio(part: f64, greatest: f64) -> f64 {
    if greatest > 0.0 { part / greatest } else { 0.0 }
}
