//! The bound of a number of replicas per cluster: every client by itself has the nearest sites of each cluster.
//!
//! Let a placement hold n(K) sites of each cluster K, where the clusters share no site and the n(K) add up to 2f + 1. For a
//! client, the i-th nearest of those in K is no nearer than the i-th nearest of all sites of K, for each i ≤ n(K). So the
//! (f+1)-th smallest of these 2f + 1 lengths is no longer than its majority takes, and the least over K no longer than the
//! hop to its nearest replica. Likewise a coordinator g in K waits for its majority no less than for the (f+1)-th smallest
//! of such lengths from g, each replaced by the least over the sites of K; with the least hop to K that bounds a commit
//! that is handed over into K, and the least of that over the clusters that hold replicas bounds all that are. A latency
//! grows with each of these, an objective with each latency. Where all clusters are single sites, the bound is the
//! objective itself (but for lengths rounded down to units, see [`Lengths`]).

use super::lengths::{Block, LANES, Lengths};
use crate::model::{Model, Reads};
use crate::problem::{Problem, REPLICAS_MAX};

/// Up to here, every integer is a 64-bit float, and sums are exact in any order.
const SUM_EXACT_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
/// A share that a sum of roundings beyond does not exceed.
const ROUNDED: f64 = 1e-9;

/// How many replicas a cluster holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub cluster: usize,
    pub replicas: usize,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// The nearest replica.
    Nearest,
    /// Its own majority.
    Majority,
    /// All rounds of a commit by the best coordinator.
    Commit,
}

/// A cluster divided: what its two parts hold, one of them possibly nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division(pub [Held; 2]);

impl Division {
    /// What the parts hold that hold something.
    pub fn held(&self) -> &[Held] {
        match self.0.map(|held| held.replicas) {
            [0, _] => &self.0[1..],
            [_, 0] => &self.0[..1],
            _ => &self.0,
        }
    }
}

/// What bounds are computed from.
pub(super) struct Bound {
    pub lengths: Lengths,
    model: Model,
    majority: usize,
    /// By client, and zero up to the end of the last block: how often a unit of the commit, and of the read, counts in
    /// nanoseconds.
    commits: Vec<f64>,
    reads: Vec<f64>,
    /// What every placement costs besides, in nanoseconds.
    pub constant: u64,
    /// The sums of the divisions at hand, each in two halves, and for each all rounds of a commit that a cluster's best site
    /// coordinates: first the clusters of the rest, then those of the division.
    sums: Vec<[f64; 2]>,
    coordinated: Vec<[f32; REPLICAS_MAX]>,
}

impl Bound {
    /// For `problem`, whose objective is a sum in which clients count by `weights`.
    pub fn new(problem: &Problem, lengths: Lengths, weights: &[u64]) -> Bound {
        let model = problem.model();
        let unit = 1u64 << lengths.unit_bits;
        let asked = model.reads != Reads::Passive;
        let clients = || problem.clients().iter().zip(weights);
        let padding = || std::iter::repeat_n(0.0, LANES);
        let commits = clients().map(|(_, weight)| (1_000 * unit * weight) as f64).chain(padding()).collect();
        let reads = clients()
            .map(|(client, weight)| if asked { (unit * client.reads_milli * weight) as f64 } else { 0.0 })
            .chain(padding())
            .collect();
        let processing = u64::from(model.read_processing_us);
        let constant = clients().map(|(client, weight)| if asked { client.reads_milli * processing * weight } else { 0 }).sum();
        Bound { lengths, model, majority: problem.replicas() / 2 + 1, commits, reads, constant, sums: Vec::new(), coordinated: Vec::new() }
    }

    /// The bounds of placements that hold `rest` and besides each one of `divisions`.
    pub fn of<'d>(&mut self, rest: &[Held], divisions: impl Iterator<Item = &'d Division>) -> Vec<u64> {
        let divisions: Vec<Division> = divisions.copied().collect();
        let divisions = &divisions[..];
        self.sums.clear();
        self.sums.resize(divisions.len(), [0.0; 2]);
        // Arrays of constant length stay in registers; those of most placements are short.
        match self.majority {
            1 | 2 => self.add_up::<2>(rest, divisions),
            3 => self.add_up::<3>(rest, divisions),
            4 => self.add_up::<4>(rest, divisions),
            5..=8 => self.add_up::<8>(rest, divisions),
            _ => self.add_up::<{ REPLICAS_MAX / 2 + 1 }>(rest, divisions),
        }
        self.sums.iter().map(|sum| self.constant + whole(sum[0] + sum[1])).collect()
    }

    /// What each client waits at least for `what`, by block.
    pub fn floors(&self, held: &[Held], what: Waits, floors: &mut [Block]) {
        match self.majority {
            1 | 2 => self.floors_of::<2>(held, what, floors),
            3 => self.floors_of::<3>(held, what, floors),
            4 => self.floors_of::<4>(held, what, floors),
            5..=8 => self.floors_of::<8>(held, what, floors),
            _ => self.floors_of::<{ REPLICAS_MAX / 2 + 1 }>(held, what, floors),
        }
    }

    fn floors_of<const KEPT: usize>(&self, held: &[Held], what: Waits, floors: &mut [Block]) {
        let rounds = self.model.protocol.rounds() as f32;
        let coordinated = if what == Waits::Commit { self.coordinated_by::<KEPT>(held, &[]) } else { [0.0; REPLICAS_MAX] };
        for (block, floor) in floors.iter_mut().enumerate() {
            if what == Waits::Nearest {
                *floor = [f32::INFINITY; LANES];
                self.lower(floor, held, block, &coordinated);
                continue;
            }
            let mut kept = [[f32::INFINITY; LANES]; KEPT];
            self.carry(&mut kept, held, block);
            *floor = kept[self.majority - 1];
            if what == Waits::Commit {
                *floor = floor.map(|length| rounds * length);
                self.lower(floor, held, block, &coordinated);
            }
        }
    }

    /// Adds what each client waits for to the sum of each division.
    fn add_up<const KEPT: usize>(&mut self, rest: &[Held], divisions: &[Division]) {
        let rounds = self.model.protocol.rounds() as f32;
        let (handoff, reads) = (self.model.handoff, self.model.reads);
        if handoff {
            self.coordinated.clear();
            for division in divisions {
                let coordinated = self.coordinated_by::<KEPT>(rest, division.held());
                self.coordinated.push(coordinated);
            }
        }
        for block in 0..self.lengths.blocks {
            let mut kept_of_rest = [[f32::INFINITY; LANES]; KEPT];
            self.carry(&mut kept_of_rest, rest, block);
            let mut nearest_of_rest = [f32::INFINITY; LANES];
            if reads == Reads::Optimistic {
                self.lower(&mut nearest_of_rest, rest, block, &[0.0; REPLICAS_MAX]);
            }
            let base = block * LANES;
            for (place, division) in divisions.iter().enumerate() {
                let mut kept = kept_of_rest;
                self.carry(&mut kept, division.held(), block);
                let majority = kept[self.majority - 1];
                let mut commit = majority.map(|length| rounds * length);
                if handoff {
                    let (of_rest, of_division) = self.coordinated[place].split_at(rest.len());
                    self.lower(&mut commit, rest, block, of_rest);
                    self.lower(&mut commit, division.held(), block, of_division);
                }
                let mut sum = self.sums[place];
                weighted(&mut sum, &commit, &self.commits[base..base + LANES]);
                match reads {
                    Reads::Passive => {}
                    Reads::Majority => weighted(&mut sum, &majority, &self.reads[base..base + LANES]),
                    Reads::Optimistic => {
                        let mut nearest = nearest_of_rest;
                        self.lower(&mut nearest, division.held(), block, &[0.0; 2]);
                        weighted(&mut sum, &nearest, &self.reads[base..base + LANES]);
                    }
                }
                self.sums[place] = sum;
            }
        }
    }

    /// Carries the lengths to what is `held` through the shortest so far, for a block of clients.
    #[inline(always)]
    fn carry<const KEPT: usize>(&self, kept: &mut [Block; KEPT], held: &[Held], block: usize) {
        for held in held {
            for rank in 0..held.replicas {
                carry(kept, *self.lengths.ranked(held.cluster, rank, block));
            }
        }
    }

    /// Lowers `least` to the hops to what is `held` and what follows there, for a block of clients.
    #[inline(always)]
    fn lower(&self, least: &mut Block, held: &[Held], block: usize, then: &[f32]) {
        for (held, then) in held.iter().zip(then) {
            for (least, hop) in least.iter_mut().zip(&self.lengths.hops(held.cluster)[block]) {
                *least = lesser(*least, hop + then);
            }
        }
    }

    /// All rounds of a commit that the best site of each cluster in `rest` and `more` coordinates, a block of clusters at a time.
    fn coordinated_by<const KEPT: usize>(&self, rest: &[Held], more: &[Held]) -> [f32; REPLICAS_MAX] {
        let rounds = self.model.protocol.rounds() as f32;
        let count = rest.len() + more.len();
        let held = |place: usize| if place < rest.len() { rest[place] } else { more[place - rest.len()] };
        let mut coordinated = [f32::INFINITY; REPLICAS_MAX];
        for start in (0..count).step_by(LANES) {
            let mut kept = [[f32::INFINITY; LANES]; KEPT];
            let lanes = LANES.min(count - start);
            for to in 0..count {
                let to = held(to);
                let mut rows: [&[f32]; LANES] = [&[]; LANES];
                for (lane, row) in rows.iter_mut().enumerate() {
                    *row = self.lengths.between(held(start + lane.min(lanes - 1)).cluster, to.cluster);
                }
                for rank in 0..to.replicas {
                    carry(&mut kept, rows.map(|row| row[rank]));
                }
            }
            for (coordinated, quorum) in coordinated[start..].iter_mut().zip(kept[self.majority - 1]).take(lanes) {
                *coordinated = rounds * quorum;
            }
        }
        coordinated
    }
}

/// Carries lengths through the sorted shortest so far.
#[inline(always)]
fn carry<const KEPT: usize>(kept: &mut [Block; KEPT], mut carried: Block) {
    for slot in kept {
        for (carried, slot) in carried.iter_mut().zip(slot) {
            let lower = lesser(*carried, *slot);
            *carried = if *carried > *slot { *carried } else { *slot };
            *slot = lower;
        }
    }
}

/// The lesser of two numbers: one instruction, as there is nothing else to them.
#[inline(always)]
fn lesser(one: f32, other: f32) -> f32 {
    if one < other { one } else { other }
}

/// A sum of whole numbers, rounded down where 64-bit floats may have rounded it.
fn whole(sum: f64) -> u64 {
    if sum < SUM_EXACT_MAX { sum as u64 } else { (sum * (1.0 - ROUNDED)) as u64 }
}

/// Adds whole numbers by weights; lanes beyond the last client have none.
#[inline(always)]
fn weighted(sum: &mut [f64; 2], lengths: &Block, weights: &[f64]) {
    for pair in 0..LANES / 2 {
        for side in 0..2 {
            sum[side] += f64::from(lengths[2 * pair + side]) * weights[2 * pair + side];
        }
    }
}
