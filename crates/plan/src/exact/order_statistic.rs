//! The bound of each client by itself: the best that any completion of a partial placement could do for it alone.
//!
//! Let P be the sites chosen, R those still open and r how many are missing. For a client, no completion has a smaller q-th
//! smallest length than P together with the r sites of R that are shortest *for this client*: replacing a site by one that
//! is no longer for it never makes an order statistic longer. A lower bound per client is one of the objective as well,
//! for every objective is monotone in the latency of every client. The clients do not share the missing picks here, which
//! makes the bound weak where many are missing, and exact where none is.

use super::relaxation::Relaxation;
use crate::problem::{Problem, REPLICAS_MAX};

/// The bound, and the scratch space for it.
pub(super) struct OrderStatistic {
    /// By family and client, the sites in ascending order of length.
    ascending: Vec<Vec<u16>>,
    open: Vec<bool>,
    /// By family and client.
    parts_ns: Vec<Vec<u64>>,
    bounds_ns: Vec<u64>,
    order: Vec<(u64, u64)>,
}

impl OrderStatistic {
    pub fn new(relaxation: &Relaxation) -> OrderStatistic {
        let sites = u16::try_from(relaxation.sites).expect("a matrix has no more regions than 16 bits count");
        let sorted = |row: &[u32]| {
            let mut ascending: Vec<u16> = (0..sites).collect();
            ascending.sort_by_key(|&site| row[usize::from(site)]);
            ascending
        };
        let ascending = relaxation
            .families
            .iter()
            .map(|family| (0..relaxation.clients).flat_map(|client| sorted(family.row(client))).collect())
            .collect();
        OrderStatistic {
            ascending,
            open: vec![false; relaxation.sites],
            parts_ns: vec![vec![0; relaxation.clients]; relaxation.families.len()],
            bounds_ns: vec![0; relaxation.clients],
            order: Vec::with_capacity(relaxation.clients),
        }
    }

    /// The bound of the objective where `chosen` are chosen and `missing` more will be, out of `open`.
    pub fn bound(&mut self, problem: &Problem, relaxation: &Relaxation, chosen: &[usize], open: &[usize], missing: usize) -> u64 {
        self.clients_ns(relaxation, chosen, open, missing);
        problem.objective().value(&self.bounds_ns, problem.weights(), &mut self.order)
    }

    /// The bound of every client, in nanoseconds.
    pub fn clients_ns(&mut self, relaxation: &Relaxation, chosen: &[usize], open: &[usize], missing: usize) -> &[u64] {
        self.bounds_ns.copy_from_slice(&relaxation.constant_ns);
        open.iter().for_each(|&site| self.open[site] = true);
        for ((family, ascending), parts) in relaxation.families.iter().zip(&self.ascending).zip(&mut self.parts_ns) {
            for (client, (part, ascending)) in parts.iter_mut().zip(ascending.chunks_exact(relaxation.sites)).enumerate() {
                let row = family.row(client);
                let best = ascending.iter().map(|&site| usize::from(site)).filter(|&site| self.open[site]).take(missing);
                *part = family.value_ns(client, smallest(row, chosen.iter().copied().chain(best), family.order));
                self.bounds_ns[client] += *part;
            }
        }
        open.iter().for_each(|&site| self.open[site] = false);
        &self.bounds_ns
    }

    /// The part of the last bounds of all clients that is due to the family at `place`, in nanoseconds.
    pub fn part_ns(&self, place: usize) -> &[u64] {
        &self.parts_ns[place]
    }

    /// The last bounds of all clients, in nanoseconds.
    pub fn last_ns(&self) -> &[u64] {
        &self.bounds_ns
    }
}

/// The `order`-th smallest length of `row` at `sites`.
fn smallest(row: &[u32], sites: impl Iterator<Item = usize>, order: usize) -> u32 {
    let mut sorted = [u32::MAX; REPLICAS_MAX];
    for (count, site) in sites.enumerate() {
        let mut place = count;
        while place > 0 && sorted[place - 1] > row[site] {
            sorted[place] = sorted[place - 1];
            place -= 1;
        }
        sorted[place] = row[site];
    }
    sorted[order - 1]
}
