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

/// How many replicas a cluster holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub cluster: usize,
    pub replicas: usize,
}

/// What bounds are computed from.
pub(super) struct Bound {
    pub lengths: Lengths,
    model: Model,
    majority: usize,
    /// By client: how often a unit of the commit, and of the read, counts in nanoseconds.
    commits: Vec<u64>,
    reads: Vec<u64>,
    /// What every placement costs besides, in nanoseconds.
    constant: u64,
    /// The sums, and the coordinators' majorities, of the alternatives at hand.
    sums: Vec<u64>,
    quorums: Vec<Vec<f32>>,
}

impl Bound {
    /// For `problem`, whose objective is a sum in which clients count by `weights`.
    pub fn new(problem: &Problem, lengths: Lengths, weights: &[u64]) -> Bound {
        let model = problem.model();
        let unit = 1u64 << lengths.unit_bits;
        let asked = model.reads != Reads::Passive;
        let clients = || problem.clients().iter().zip(weights);
        let commits = clients().map(|(_, weight)| 1_000 * unit * weight).collect();
        let reads = clients().map(|(client, weight)| if asked { unit * client.reads_milli * weight } else { 0 }).collect();
        let processing = u64::from(model.read_processing_us);
        let constant = clients().map(|(client, weight)| if asked { client.reads_milli * processing * weight } else { 0 }).sum();
        Bound { lengths, model, majority: problem.replicas() / 2 + 1, commits, reads, constant, sums: Vec::new(), quorums: Vec::new() }
    }

    /// The bounds of placements that hold `rest` and besides each one of `alternatives`.
    pub fn of(&mut self, rest: &[Held], alternatives: &[Vec<Held>]) -> &[u64] {
        self.sums.clear();
        self.sums.resize(alternatives.len(), self.constant);
        if self.model.handoff {
            self.quorums.clear();
            for alternative in alternatives {
                let quorums = self.coordinators(rest, alternative);
                self.quorums.push(quorums);
            }
        }
        // Arrays of constant length stay in registers; those of most placements are short.
        match self.majority {
            1 | 2 => self.add_up::<2>(rest, alternatives),
            3 => self.add_up::<3>(rest, alternatives),
            4 => self.add_up::<4>(rest, alternatives),
            5..=8 => self.add_up::<8>(rest, alternatives),
            _ => self.add_up::<{ REPLICAS_MAX / 2 + 1 }>(rest, alternatives),
        }
        &self.sums
    }

    /// Adds what each client waits for to the sum of each alternative.
    fn add_up<const KEPT: usize>(&mut self, rest: &[Held], alternatives: &[Vec<Held>]) {
        let rounds = self.model.protocol.rounds() as f32;
        for block in 0..self.lengths.blocks {
            let mut kept_of_rest = [[f32::INFINITY; LANES]; KEPT];
            self.carry(&mut kept_of_rest, rest, block);
            let base = block * LANES;
            for (place, alternative) in alternatives.iter().enumerate() {
                let mut kept = kept_of_rest;
                self.carry(&mut kept, alternative, block);
                let majority = kept[self.majority - 1];
                let mut commit = majority.map(|length| rounds * length);
                let clusters = || rest.iter().chain(alternative).map(|held| &self.lengths.hops(held.cluster)[block]);
                if self.model.handoff {
                    for (hops, quorum) in clusters().zip(&self.quorums[place]) {
                        for (commit, hop) in commit.iter_mut().zip(hops) {
                            *commit = lesser(*commit, hop + quorum);
                        }
                    }
                }
                let read = match self.model.reads {
                    Reads::Passive => None,
                    Reads::Majority => Some(majority),
                    Reads::Optimistic => Some(clusters().fold([f32::INFINITY; LANES], |mut nearest, hops| {
                        nearest.iter_mut().zip(hops).for_each(|(nearest, &hop)| *nearest = lesser(*nearest, hop));
                        nearest
                    })),
                };
                let mut sum = self.sums[place];
                sum += weighted(&commit, &self.commits[base..]);
                if let Some(read) = read {
                    sum += weighted(&read, &self.reads[base..]);
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

    /// All rounds of a commit that the best site of each cluster in `rest` and `more` coordinates.
    fn coordinators(&self, rest: &[Held], more: &[Held]) -> Vec<f32> {
        let rounds = self.model.protocol.rounds() as f32;
        let all = || rest.iter().chain(more);
        let of_each = all().map(|from| {
            let mut lengths = [f32::INFINITY; REPLICAS_MAX];
            let mut count = 0;
            for to in all() {
                lengths[count..count + to.replicas].copy_from_slice(&self.lengths.between(from.cluster, to.cluster)[..to.replicas]);
                count += to.replicas;
            }
            rounds * smallest(&mut lengths[..count], self.majority)
        });
        of_each.collect()
    }
}

/// The `order`-th smallest of few lengths.
fn smallest(lengths: &mut [f32], order: usize) -> f32 {
    for place in 1..lengths.len() {
        let length = lengths[place];
        let mut at = place;
        while at > 0 && lengths[at - 1] > length {
            lengths[at] = lengths[at - 1];
            at -= 1;
        }
        lengths[at] = length;
    }
    lengths[order - 1]
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

/// The sum of whole numbers by weights; lanes beyond the last client have none.
#[inline(always)]
fn weighted(lengths: &Block, weights: &[u64]) -> u64 {
    lengths.iter().zip(weights).map(|(&length, weight)| u64::from(length as u32) * weight).sum()
}
