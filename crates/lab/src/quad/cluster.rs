//! The sites of a run: how far they are from one another, and which part of the workers each has.

use super::parameters as p;
use rhumb_core::{RegionId, RttMatrix, SiteId, Span};

/// Sites, a region each. Site 0 has the most workers wherever shares differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The distances.
    pub rtt: RttMatrix,
    /// How many of the workers each site has, in shares of any sum.
    pub shares: Vec<f64>,
}

impl Cluster {
    /// Sites of one datacenter.
    pub fn datacenter(shares: &[f64]) -> Cluster {
        Cluster::delayed(&vec![Span::ZERO; shares.len()], shares)
    }

    /// Sites each of which delays all that it sends and receives, as the paper's do: a round trip between two takes what both delay it by.
    pub fn delayed(delays: &[Span], shares: &[f64]) -> Cluster {
        let names = (0..delays.len()).map(|site| format!("site {site}")).collect();
        let rtt = |from: usize, to: usize| if from == to { Span::ZERO } else { delays[from] + delays[to] + p::RTT_AT_HOME };
        Cluster { rtt: RttMatrix::of(names, rtt), shares: shares.to_vec() }
    }

    /// So many sites in four classes, delayed 4 : 2 : 1 : 0, with as many workers each.
    pub fn classes(sites: usize) -> Cluster {
        let delays: Vec<Span> = (0..sites).map(|site| p::DISTANCE * [4, 2, 1, 0][site * 4 / sites]).collect();
        Cluster::delayed(&delays, &vec![1.0; sites])
    }

    /// The same, but the part of each round trip that is spent inside datacenters is another.
    #[must_use]
    pub fn with_home(&self, home: Span) -> Cluster {
        let names = self.rtt.names().to_vec();
        let away = |from: usize, to: usize| self.rtt.rtt(RegionId(from as u16), RegionId(to as u16)) - p::RTT_AT_HOME;
        let rtt = |from: usize, to: usize| if from == to { Span::ZERO } else { away(from, to) + home };
        Cluster { rtt: RttMatrix::of(names, rtt), shares: self.shares.clone() }
    }

    /// Its sites.
    pub fn sites(&self) -> Vec<SiteId> {
        (0..self.shares.len() as u16).map(|region| SiteId::new(region, 0)).collect()
    }

    /// The site of each of so many workers: each goes where most are missing.
    pub fn places(&self, workers: u64) -> Vec<usize> {
        let whole: f64 = self.shares.iter().sum();
        let mut has = vec![0.0; self.shares.len()];
        let next = |_| {
            let so_far: f64 = has.iter().sum();
            let missing = |site: usize| self.shares[site] / whole * (so_far + 1.0) - has[site];
            let most =
                (0..has.len()).reduce(|one, other| if missing(other) > missing(one) { other } else { one }).expect("there are sites");
            has[most] += 1.0;
            most
        };
        (0..workers).map(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_dealt_out_by_shares_at_any_number_of_them() {
        let count = |cluster: &Cluster, workers| {
            let places = cluster.places(workers);
            (0..cluster.shares.len()).map(|site| places.iter().filter(|place| **place == site).count()).collect::<Vec<_>>()
        };
        let four = Cluster::datacenter(&p::SHARES_4);
        assert_eq!((count(&four, 10), count(&four, 150)), (vec![4, 3, 2, 1], vec![60, 45, 30, 15]));
        let eight = Cluster::datacenter(&p::SHARES_8);
        assert_eq!(count(&eight, 150), [45, 23, 22, 15, 15, 10, 10, 10]);
        assert_eq!(four.places(150)[..50], four.places(50)[..]);
    }

    #[test]
    fn a_round_trip_takes_what_both_sites_delay_it_by() {
        let cluster = Cluster::classes(8);
        let rtt = |from, to| cluster.rtt.rtt(RegionId(from), RegionId(to)).as_micros();
        assert_eq!((rtt(0, 1), rtt(0, 2), rtt(5, 6), rtt(6, 7)), (402_250, 302_250, 52_250, 2_250));
    }
}
