//! Round trips from every client region to one replica, side by side: many clients are worked on at a time.
//!
//! For the protocols without leaders, the latency of a client is a majority of few numbers and a minimum over few sums. A
//! block of clients goes through the same comparisons in step, which compilers turn into vector instructions; the same
//! numbers come out as from [`evaluate`](crate::evaluate()), which works on one client after another.

use crate::problem::{Problem, REPLICAS_MAX};

/// How many clients are worked on in step.
const LANES: usize = 8;

/// One number per client of a block.
type Lanes = [u32; LANES];

/// The round trips, a column per region, in blocks of clients.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    blocks: usize,
    /// By region, then by block. Lanes beyond the last client hold zeros.
    trips_us: Vec<Lanes>,
}

/// What the clients wait for, in the order of the problem, in microseconds; the last block may go on beyond them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    /// The round trip to the client's own majority.
    pub majority_us: Vec<u32>,
    /// The round trip to the nearest replica.
    pub nearest_us: Vec<u32>,
    /// The commit, by the best coordinator.
    pub commit_us: Vec<u32>,
}

impl Columns {
    /// The columns of `problem`.
    pub fn new(problem: &Problem) -> Columns {
        let blocks = problem.clients().len().div_ceil(LANES);
        let mut trips_us = vec![[0; LANES]; blocks * problem.matrix().regions()];
        for (place, client) in problem.clients().iter().enumerate() {
            for (region, &trip) in problem.matrix().from(client.region).iter().enumerate() {
                trips_us[region * blocks + place / LANES][place % LANES] = trip;
            }
        }
        Columns { blocks, trips_us }
    }

    /// Fills in what clients wait for at `replicas`, whose own majorities answer after `quorum_us`. A commit takes so many
    /// `rounds`, and may be handed to a replica if `handoff`.
    pub fn wait(&self, replicas: &[usize], quorum_us: &[u32], rounds: u32, handoff: bool, waits: &mut Waits) {
        waits.majority_us.clear();
        waits.nearest_us.clear();
        waits.commit_us.clear();
        let majority = replicas.len() / 2 + 1;
        for block in 0..self.blocks {
            let column = |replica: usize| &self.trips_us[replica * self.blocks + block];
            // Arrays of constant length stay in registers; those of most placements are short.
            let (nearest, own) = match majority {
                1 | 2 => majority_of::<2>(replicas, majority, column),
                3 => majority_of::<3>(replicas, majority, column),
                4 => majority_of::<4>(replicas, majority, column),
                5..=8 => majority_of::<8>(replicas, majority, column),
                _ => majority_of::<{ REPLICAS_MAX / 2 + 1 }>(replicas, majority, column),
            };
            let mut commit = own.map(|own| rounds * own);
            if handoff {
                for (&replica, quorum_us) in replicas.iter().zip(quorum_us) {
                    for (commit, trip) in commit.iter_mut().zip(column(replica)) {
                        *commit = (*commit).min(trip + rounds * quorum_us);
                    }
                }
            }
            waits.majority_us.extend(own);
            waits.nearest_us.extend(nearest);
            waits.commit_us.extend(commit);
        }
    }
}

/// The nearest of `replicas` and the one that completes a majority, for a block of clients: every replica is carried through
/// the sorted nearest so far, of which `KEPT`, at least a majority, are kept.
#[inline(always)]
fn majority_of<'c, const KEPT: usize>(replicas: &[usize], majority: usize, column: impl Fn(usize) -> &'c Lanes) -> (Lanes, Lanes) {
    let mut kept = [[u32::MAX; LANES]; KEPT];
    for &replica in replicas {
        let mut carried = *column(replica);
        for slot in &mut kept {
            for (carried, slot) in carried.iter_mut().zip(slot) {
                let lower = (*carried).min(*slot);
                *carried = (*carried).max(*slot);
                *slot = lower;
            }
        }
    }
    (kept[0], kept[majority - 1])
}
