//! The bound that lets the clients share what clusters hold: a price per site, by Lagrangian duality.
//!
//! To [`Bound`], every client has the nearest sites of each cluster for itself. Here they agree, at a price. Take one order
//! statistic of order q over lengths x(s) (see [`Relaxation`]) with the value v of a placement, and let v₀ be what `Bound` says
//! that v does not go below. A cluster K that holds n(K) replicas is *certain* at a target μ if all of its sites are nearer than
//! μ. If v < μ, then q sites are within v; at most the n(K) of each certain cluster are among them, so N = q − Σ n(K) more must
//! be, N ≥ 1 as long as μ is no more than the q-th smallest of the farthest lengths of what is held. So this *gain*
//!
//! ```text
//!   φ(s) = ( μ − max(x(s), v₀) )⁺ / N       for sites of clusters that are not certain, else 0
//! ```
//!
//! satisfies v ≥ μ − Σ φ(s) over the sites s of the placement: the N sites have φ(s) ≥ (μ − v) / N each. Summed over clients
//! and families, with Φ(s) the sum of the gains of a site,
//!
//! ```text
//!   cost ≥ Σ μ − Σ over K of (the n(K) largest Φ in K)                  for every choice of targets μ
//! ```
//!
//! At μ = v₀ nothing is gained, and that is the bound of `Bound`. Subgradient ascent looks for better targets, from those of the
//! node above. At the same targets, a division of K leaves the largest Φ of its two parts, which closes some divisions without
//! another look.
//!
//! Arithmetic is in 32-bit floats, summed up in 64 bits; [`Prices::proven`] takes off what rounding can have added.

use super::bound::{Bound, Held, Waits};
use super::hierarchy::Cluster;
use super::lengths::{Block, LANES, greater, lesser, where_less};
use crate::exact::relaxation::Relaxation;
use crate::problem::{Problem, REPLICAS_MAX};

/// Half a unit in the last place of a 32-bit float: the relative error of one operation.
const ROUNDING: f64 = 6e-8;
/// The ascent aims this much above the incumbent, so that a bound that meets it still moves.
const AIM: f64 = 1.002;

/// One order statistic per client.
struct Family {
    /// Which.
    order: usize,
    /// What it is of.
    waits: Waits,
    /// By block: nanoseconds per unit of length, times the client's weight; and the inverse, zero where that is zero.
    weights: Vec<Block>,
    inverses: Vec<Block>,
    /// By site and block.
    lengths: Vec<Block>,
    /// By cluster and block: the longest of its sites' lengths.
    farthest: Vec<Block>,
}

/// A target for every order statistic, by family and block.
pub(super) type Targets = Vec<Block>;

/// The prices of sites, and scratch space.
pub(super) struct Prices {
    blocks: usize,
    families: Vec<Family>,
    /// What every placement costs besides.
    constant: f64,
    /// By family and block, what no order statistic goes below at the node at hand, and what none exceeds.
    floors: Vec<Block>,
    caps: Vec<Block>,
    /// By cluster of several sites held, family and block: what a site there gains of each unit below the target.
    shares: Vec<Block>,
    /// By site: what it gains at the best targets, and at those at hand.
    gains: Vec<f64>,
    trial: Vec<f64>,
    /// The sites that gain most, each with the place of its cluster in `shares`.
    picks: Vec<(usize, usize)>,
    slopes: Vec<Block>,
}

impl Prices {
    /// For `problem`, whose clients count by `weights` and whose lengths are those of `bound`.
    pub fn new(problem: &Problem, clusters: &[Cluster], bound: &Bound, weights: &[u64]) -> Prices {
        let relaxation = Relaxation::new(problem);
        let blocks = relaxation.clients.div_ceil(LANES);
        let unit_bits = bound.lengths.unit_bits;
        let mut families = Vec::new();
        for (place, family) in relaxation.families.iter().enumerate() {
            let waits = match (family.of_majority, place == 0 && problem.model().handoff) {
                (false, _) => Waits::Nearest,
                (true, true) => Waits::Commit,
                (true, false) => Waits::Majority,
            };
            let room = |rows: usize| vec![[0.0; LANES]; blocks * rows];
            let (mut of_clients, mut inverses, mut lengths, mut farthest) =
                (room(1), room(1), room(relaxation.sites), room(clusters.len()));
            for (client, weight) in weights.iter().enumerate() {
                let (block, lane) = (client / LANES, client % LANES);
                let weight = *weight as f64 * family.scale[client] as f64 * (1u64 << unit_bits) as f64;
                of_clients[block][lane] = weight as f32;
                inverses[block][lane] = if weight > 0.0 { (1.0 / weight) as f32 } else { 0.0 };
                for (site, length) in family.row(client).iter().enumerate() {
                    lengths[site * blocks + block][lane] = (length >> unit_bits) as f32;
                }
            }
            for (farthest, cluster) in farthest.chunks_exact_mut(blocks).zip(clusters) {
                for site in &cluster.sites {
                    for (farthest, length) in farthest.iter_mut().zip(&lengths[site * blocks..]) {
                        *farthest = greater(farthest, length);
                    }
                }
            }
            families.push(Family { order: family.order, waits, weights: of_clients, inverses, lengths, farthest });
        }
        let all = vec![[0.0; LANES]; blocks * families.len()];
        let shares = vec![[0.0; LANES]; all.len() * problem.replicas()];
        let gains = vec![0.0; relaxation.sites];
        let (trial, picks, constant) = (gains.clone(), Vec::new(), bound.constant as f64);
        Prices { blocks, families, constant, floors: all.clone(), caps: all.clone(), shares, gains, trial, picks, slopes: all }
    }

    /// Targets to start from: none are reached.
    pub fn targets(&self) -> Targets {
        vec![[0.0; LANES]; self.floors.len()]
    }

    /// The largest sums of what 0, 1, ... up to `count` of `sites` gain at the targets of the last bound.
    pub fn largest(&self, sites: &[usize], count: usize) -> [f64; REPLICAS_MAX + 1] {
        let mut largest = [0.0; REPLICAS_MAX + 1];
        for &site in sites {
            let mut gain = self.gains[site];
            for slot in &mut largest[1..=count] {
                if gain > *slot {
                    std::mem::swap(slot, &mut gain);
                }
            }
        }
        for place in 1..=count {
            largest[place] += largest[place - 1];
        }
        largest
    }

    /// The best bound that `rounds` of ascent from `targets` find for placements that are `held`; `targets` become those of the
    /// bound. Ends where the bound exceeds `incumbent`.
    pub fn raise(&mut self, clusters: &[Cluster], bound: &Bound, held: &[Held], targets: &mut Targets, rounds: u32, incumbent: f64) -> f64 {
        let open: Vec<Held> = held.iter().copied().filter(|held| clusters[held.cluster].parts.is_some()).collect();
        self.limit(bound, held, targets);
        let mut best = f64::NEG_INFINITY;
        let mut best_targets = targets.clone();
        let mut step = 1.0;
        for round in 1..=rounds {
            self.share(held, &open, targets);
            let value = self.proven(clusters, &open, targets);
            if value > best {
                best = value;
                best_targets.copy_from_slice(targets);
                self.gains.copy_from_slice(&self.trial);
            } else {
                step *= 0.5;
            }
            if best > incumbent || round == rounds || !self.climb(targets, step * (incumbent * AIM - value).max(0.0)) {
                break;
            }
        }
        targets.copy_from_slice(&best_targets);
        best
    }

    /// Computes the floors and caps, and keeps the targets within.
    fn limit(&mut self, bound: &Bound, held: &[Held], targets: &mut Targets) {
        let blocks = self.blocks;
        for (place, family) in self.families.iter().enumerate() {
            bound.floors(held, family.waits, &mut self.floors[place * blocks..][..blocks]);
            for block in 0..blocks {
                let mut kept = [[f32::INFINITY; LANES]; REPLICAS_MAX / 2 + 1];
                for held in held {
                    for _ in 0..held.replicas {
                        let mut carried = family.farthest[held.cluster * blocks + block];
                        for slot in &mut kept[..family.order] {
                            (*slot, carried) = (lesser(slot, &carried), greater(slot, &carried));
                        }
                    }
                }
                let at = place * blocks + block;
                self.caps[at] = greater(&kept[family.order - 1], &self.floors[at]);
                targets[at] = greater(&lesser(&targets[at], &self.caps[at]), &self.floors[at]);
            }
        }
    }

    /// Computes what sites of the clusters in `open` gain of each unit.
    fn share(&mut self, held: &[Held], open: &[Held], targets: &Targets) {
        let (blocks, all) = (self.blocks, targets.len());
        for (place, family) in self.families.iter().enumerate() {
            for block in 0..blocks {
                let at = place * blocks + block;
                let (target, weights) = (&targets[at], &family.weights[block]);
                let farthest = |held: &Held| &family.farthest[held.cluster * blocks + block];
                let mut needed = [family.order as f32; LANES];
                for held in held {
                    let certain = where_less(farthest(held), target, &[held.replicas as f32; LANES]);
                    needed = std::array::from_fn(|lane| needed[lane] - certain[lane]);
                }
                // Where the floor exceeds what is certain, the target is the floor, and nothing is gained.
                let needed = greater(&needed, &[1.0; LANES]);
                let share: Block = std::array::from_fn(|lane| weights[lane] / needed[lane]);
                for (index, held) in open.iter().enumerate() {
                    let certain = where_less(farthest(held), target, &share);
                    self.shares[index * all + at] = std::array::from_fn(|lane| share[lane] - certain[lane]);
                }
            }
        }
    }

    /// The bound at `targets`, less what rounding can have added: a weight, a share and a gain are each rounded a few times,
    /// and a sum of gains once per block.
    fn proven(&mut self, clusters: &[Cluster], open: &[Held], targets: &Targets) -> f64 {
        let all = targets.len();
        let added = 1.0 + ROUNDING * (all + 2 * LANES) as f64;
        let mut sums = [0.0; LANES];
        for (weights, target) in self.families.iter().flat_map(|family| &family.weights).zip(targets) {
            for lane in 0..LANES {
                sums[lane] += f64::from(weights[lane]) * f64::from(target[lane]);
            }
        }
        let mut value = (self.constant + sums.iter().sum::<f64>()) * (1.0 - 8.0 * ROUNDING);
        self.picks.clear();
        for (index, held) in open.iter().enumerate() {
            let from = self.picks.len();
            let shares = &self.shares[index * all..][..all];
            for &site in &clusters[held.cluster].sites {
                let mut sums = [0.0; LANES];
                for (place, family) in self.families.iter().enumerate() {
                    let range = place * self.blocks..(place + 1) * self.blocks;
                    let row = &family.lengths[site * self.blocks..][..self.blocks];
                    let limits = targets[range.clone()].iter().zip(&self.floors[range.clone()]);
                    for ((lengths, shares), (target, floor)) in row.iter().zip(&shares[range]).zip(limits) {
                        let lengths = greater(lengths, floor);
                        for lane in 0..LANES {
                            let gain = target[lane] - lengths[lane];
                            sums[lane] += shares[lane] * if gain > 0.0 { gain } else { 0.0 };
                        }
                    }
                }
                self.trial[site] = added * f64::from(sums.iter().sum::<f32>());
                self.picks.push((index, site));
            }
            let part = &mut self.picks[from..];
            if held.replicas < part.len() {
                part.select_nth_unstable_by(held.replicas, |a, b| self.trial[b.1].total_cmp(&self.trial[a.1]));
            }
            self.picks.truncate(from + held.replicas);
            value -= self.picks[from..].iter().map(|pick| self.trial[pick.1]).sum::<f64>();
        }
        value
    }

    /// Moves the targets along the subgradient at the sites that gain most; whether there was anywhere to go.
    fn climb(&mut self, targets: &mut Targets, length: f64) -> bool {
        let (blocks, all) = (self.blocks, targets.len());
        let mut norms = [0.0; LANES];
        for (place, family) in self.families.iter().enumerate() {
            for block in 0..blocks {
                let at = place * blocks + block;
                let (target, floor, cap) = (&targets[at], &self.floors[at], &self.caps[at]);
                let mut slope = family.weights[block];
                for &(index, site) in &self.picks {
                    let (lengths, share) = (&family.lengths[site * blocks + block], &self.shares[index * all + at]);
                    let falls = where_less(&greater(lengths, floor), target, share);
                    slope = std::array::from_fn(|lane| slope[lane] - falls[lane]);
                }
                let (inverse, slopes) = (&family.inverses[block], &mut self.slopes[at]);
                for lane in 0..LANES {
                    let stuck = (slope[lane] > 0.0) & (target[lane] >= cap[lane]);
                    let free = if stuck { 0.0 } else { slope[lane] };
                    slopes[lane] = free * inverse[lane];
                    norms[lane] += free * slopes[lane];
                }
            }
        }
        let norm: f64 = norms.iter().map(|&norm| f64::from(norm)).sum();
        if norm < 1e-9 {
            return false;
        }
        let step = (length / norm) as f32;
        for (((target, slope), floor), cap) in targets.iter_mut().zip(&self.slopes).zip(&self.floors).zip(&self.caps) {
            let mut moved = *target;
            for lane in 0..LANES {
                moved[lane] += step * slope[lane];
            }
            *target = greater(&lesser(&moved, cap), floor);
        }
        true
    }
}
