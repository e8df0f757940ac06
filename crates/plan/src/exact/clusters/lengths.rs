//! How far the sites of each cluster are at best: tables that bounds are read from.
//!
//! The n-th nearest site of a cluster, for each client by itself, is no farther than the n-th nearest of any n sites chosen
//! in it. Lengths are 32-bit floats that hold integers: microseconds in units of a power of two that leaves sums of
//! [`SUM_MAX`] lengths below 2^24, so that every sum and comparison of them is exact. A length is rounded down to whole
//! units (in practice, to microseconds: one unit, unless a round trip takes seconds), so it remains a lower bound.

use super::hierarchy::Hierarchy;
use crate::problem::Problem;

/// How many numbers are worked on in step.
pub(super) const LANES: usize = 8;
/// One number per client of a block.
pub(super) type Block = [f32; LANES];
/// A latency is a hop and two rounds at the most.
const SUM_MAX: u32 = 3;
/// Up to here, every integer is a 32-bit float.
const EXACT_MAX: u32 = 1 << f32::MANTISSA_DIGITS;

/// Lower bounds of lengths to the sites of clusters.
pub(super) struct Lengths {
    pub blocks: usize,
    /// How many ranks are kept of each cluster: the number of replicas.
    pub ranks: usize,
    /// Microseconds per unit, as a power of two.
    pub unit_bits: u32,
    clusters: usize,
    /// By cluster, rank and block: the length to the nearest, next, ... site; infinite beyond the last.
    ranked: Vec<Block>,
    /// By cluster and block: the hop to the nearest site.
    hops: Vec<Block>,
    /// By cluster, cluster and rank: the length from the best-placed site of the one to the nearest, next, ... of the other.
    between: Vec<f32>,
}

impl Lengths {
    /// The lengths of `problem`; those between clusters only if commits may be handed over.
    pub fn new(problem: &Problem, hierarchy: &Hierarchy) -> Lengths {
        let (matrix, candidates) = (problem.matrix(), problem.candidates());
        let mut unit_bits = 0;
        while SUM_MAX * (matrix.longest_us() >> unit_bits) >= EXACT_MAX {
            unit_bits += 1;
        }
        let blocks = problem.clients().len().div_ceil(LANES);
        let (clusters, ranks) = (hierarchy.0.len(), problem.replicas());
        let mut lengths = Lengths { blocks, ranks, unit_bits, clusters, ranked: Vec::new(), hops: Vec::new(), between: Vec::new() };
        lengths.ranked = vec![[0.0; LANES]; clusters * ranks * blocks];
        lengths.hops = vec![[0.0; LANES]; clusters * blocks];
        let units = |us: u32| (us >> unit_bits) as f32;
        for (place, client) in problem.clients().iter().enumerate() {
            let (block, lane) = (place / LANES, place % LANES);
            let from = matrix.from(client.region);
            let ranked = ranked_by_cluster(hierarchy, ranks, |site| units(from[candidates[site]]));
            for (at, length) in ranked.into_iter().enumerate() {
                lengths.ranked[at * blocks + block][lane] = length;
            }
            for (cluster, sites) in hierarchy.0.iter().enumerate() {
                let hops = sites.sites.iter().map(|&site| matrix.hop_us(client.region, candidates[site]));
                lengths.hops[cluster * blocks + block][lane] = units(hops.min().expect("a cluster has a site"));
            }
        }
        if problem.model().handoff {
            lengths.between = between(hierarchy, ranks, |from, to| units(matrix.rtt_us(candidates[from], candidates[to])));
        }
        lengths
    }

    /// The lengths of a block of clients to the nearest, next, ... site of `cluster`.
    pub fn ranked(&self, cluster: usize, rank: usize, block: usize) -> &Block {
        &self.ranked[(cluster * self.ranks + rank) * self.blocks + block]
    }

    /// The hops of all clients to the nearest site of `cluster`.
    pub fn hops(&self, cluster: usize) -> &[Block] {
        &self.hops[cluster * self.blocks..][..self.blocks]
    }

    /// The lengths from the best-placed site of `from` to the nearest, next, ... of `to`.
    pub fn between(&self, from: usize, to: usize) -> &[f32] {
        &self.between[(from * self.clusters + to) * self.ranks..][..self.ranks]
    }
}

/// The lesser of two numbers, by lane: one instruction, as there is nothing else to them.
#[inline(always)]
pub(super) fn lesser(one: &Block, other: &Block) -> Block {
    std::array::from_fn(|lane| if one[lane] < other[lane] { one[lane] } else { other[lane] })
}

/// The greater of two numbers, by lane.
#[inline(always)]
pub(super) fn greater(one: &Block, other: &Block) -> Block {
    std::array::from_fn(|lane| if one[lane] > other[lane] { one[lane] } else { other[lane] })
}

/// The numbers `then` where one is less than the other, else zero, by lane.
#[inline(always)]
pub(super) fn where_less(one: &Block, other: &Block, then: &Block) -> Block {
    let then = *then;
    std::array::from_fn(|lane| if one[lane] < other[lane] { then[lane] } else { 0.0 })
}

/// By cluster and rank: the shortest of the lengths to its sites, the next, and so on, merged from those of its parts.
fn ranked_by_cluster(hierarchy: &Hierarchy, ranks: usize, length: impl Fn(usize) -> f32) -> Vec<f32> {
    let mut ranked = vec![f32::INFINITY; hierarchy.0.len() * ranks];
    for (cluster, of) in hierarchy.0.iter().enumerate() {
        let (before, row) = ranked.split_at_mut(cluster * ranks);
        match of.parts {
            None => row[0] = length(of.sites[0]),
            Some([one, other]) => {
                let [one, other] = [one, other].map(|part| &before[part * ranks..][..ranks]);
                let (mut i, mut j) = (0, 0);
                for length in &mut row[..ranks] {
                    let first = one[i] <= other[j];
                    *length = if first { one[i] } else { other[j] };
                    i += usize::from(first);
                    j += usize::from(!first);
                }
            }
        }
    }
    ranked
}

/// By cluster, cluster and rank, the least over the sites of the first.
fn between(hierarchy: &Hierarchy, ranks: usize, length: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    let row = hierarchy.0.len() * ranks;
    let mut between = Vec::with_capacity(hierarchy.0.len() * row);
    for of in &hierarchy.0 {
        match of.parts {
            None => between.extend(ranked_by_cluster(hierarchy, ranks, |site| length(of.sites[0], site))),
            Some(parts) => {
                let [one, other] = parts.map(|part| part * row);
                for at in 0..row {
                    between.push(between[one + at].min(between[other + at]));
                }
            }
        }
    }
    between
}
