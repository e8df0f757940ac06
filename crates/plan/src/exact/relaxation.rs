//! What the latency of a client is bounded below by: a sum of order statistics over the sites chosen.
//!
//! Every bound of the search speaks of one thing, a *family*: for client c, a row of lengths `x(c, s)` by site and an
//! order q such that the q-th smallest of `x(c, s)` over the sites s of a placement, times a scale, bounds a part of the
//! latency of c from below. The parts of a client's families and its constant add up to no more than its latency.
//!
//! | part of the latency | order | `x(c, s)` |
//! |---|---|---|
//! | rounds to the own majority, majority reads | f + 1 | round trip c → s |
//! | commit by the best coordinator g, or by a leader g | f + 1 | least over g of hop c → g + rounds · max(trip g → s, ρ(g)) |
//! | reads at the nearest replica, or at a leader | 1 | hop c → s |
//! | two-phase commit with the farthest leader | 2f + 1 | least over g of what follows if g coordinates and s is a leader |
//!
//! Soundness of the second row: whoever coordinates, g, waits for a majority of the placement, every member s of which is
//! within q(g) of it. So the commit takes at least hop + rounds · trip(g, s) for each of f + 1 sites s, and no less than
//! with the radius ρ(g), the (f+1)-th shortest trip from g to any site at all. Each of these lengths is at least `x(c, s)`,
//! where the least is taken over all g. The fourth row holds for every member s, so it is of order 2f + 1. Where no
//! coordinator is chosen, the families are the latency itself and the relaxation is exact.

use super::relayed::relayed;
use crate::model::{Protocol, Reads, TwoPhase};
use crate::problem::Problem;

/// One order statistic per client.
pub(super) struct Family {
    /// Which: 1 is the smallest.
    pub order: usize,
    /// Whether the lengths of one client are those to the members of a majority: the majorities of two clients meet.
    pub of_majority: bool,
    /// Nanoseconds per unit of length, by client.
    pub scale: Vec<u64>,
    /// Whether lengths are in halves of a microsecond.
    pub halves: bool,
    /// The lengths: a row per client, by site.
    pub rows: Vec<u32>,
}

/// The families of a problem. Sites are places in its list of candidates, clients places in its list of clients.
pub(super) struct Relaxation {
    pub sites: usize,
    pub clients: usize,
    pub families: Vec<Family>,
    /// What adds to the latency of each client whatever is chosen, in nanoseconds.
    pub constant_ns: Vec<u64>,
}

impl Family {
    /// The lengths of `client`, by site.
    pub fn row(&self, client: usize) -> &[u32] {
        let sites = self.rows.len() / self.scale.len();
        &self.rows[client * sites..][..sites]
    }

    /// What a length of `client` comes to, in nanoseconds.
    pub fn value_ns(&self, client: usize, length: u32) -> u64 {
        let value = self.scale[client] * u64::from(length);
        if self.halves { value / 2 } else { value }
    }
}

impl Relaxation {
    pub fn new(problem: &Problem) -> Relaxation {
        let model = problem.model();
        let clients = problem.clients();
        let majority = problem.replicas() / 2 + 1;
        let rounds = model.protocol.rounds();
        let handed = matches!(model.protocol, Protocol::ReplicatedCommit | Protocol::TwoRounds) && model.handoff;
        let trips = |client: usize, site: usize| problem.matrix().rtt_us(clients[client].region, problem.candidates()[site]);
        let hops = |client: usize, site: usize| problem.matrix().hop_us(clients[client].region, problem.candidates()[site]);
        let reads = |client: &crate::request::Client| client.reads_milli;
        let mut relaxation = Relaxation {
            sites: problem.candidates().len(),
            clients: clients.len(),
            families: Vec::new(),
            constant_ns: vec![0; clients.len()],
        };
        let own_majority = !model.protocol.has_leaders() && !handed;
        if own_majority {
            let with_reads = |client| 1_000 * rounds + if model.reads == Reads::Majority { reads(client) } else { 0 };
            relaxation.add(majority, true, false, clients.iter().map(with_reads).collect(), trips);
        }
        if handed {
            let relayed = relayed(problem, 1, |trip, radius| rounds as u32 * trip.max(radius));
            let row = |client: usize, site: usize| (rounds as u32 * trips(client, site)).min(relayed[client * relaxation.sites + site]);
            let rows: Vec<u32> =
                (0..clients.len() * relaxation.sites).map(|at| row(at / relaxation.sites, at % relaxation.sites)).collect();
            relaxation.add_rows(majority, true, false, vec![1_000; clients.len()], rows);
            if model.reads == Reads::Majority {
                relaxation.add(majority, true, false, clients.iter().map(reads).collect(), trips);
            }
        }
        if model.protocol.has_leaders() {
            relaxation.add_led(problem, majority);
        }
        if model.reads == Reads::Optimistic || (model.reads == Reads::Majority && model.protocol.has_leaders()) {
            relaxation.add(1, false, false, clients.iter().map(reads).collect(), hops);
        }
        if model.reads != Reads::Passive {
            let processing = |client: &crate::request::Client| client.reads_milli * u64::from(model.read_processing_us);
            relaxation.constant_ns = clients.iter().map(processing).collect();
        }
        relaxation
    }

    /// The families of commits by leaders.
    fn add_led(&mut self, problem: &Problem, majority: usize) {
        let (milli, two_phase) = match problem.model().protocol {
            Protocol::SpreadLeaders { multi_partition_milli, two_phase } => (u64::from(multi_partition_milli), Some(two_phase)),
            _ => (0, None),
        };
        let single = relayed(problem, 1, |trip, radius| trip.max(radius));
        self.add_rows(majority, true, false, vec![1_000 - milli; self.clients], single);
        if let Some(two_phase) = two_phase {
            // In halves of a microsecond: both hops and all rounds, or, told at home, no less than half of the hop.
            let spanning = match two_phase {
                TwoPhase::OwnLeader | TwoPhase::BestLeader => relayed(problem, 2, |trip, radius| 4 * trip + 2 * radius),
                TwoPhase::LocalParticipantTells => relayed(problem, 1, |trip, radius| 2 * trip + 2 * radius),
            };
            self.add_rows(problem.replicas(), false, true, vec![milli; self.clients], spanning);
        }
    }

    fn add(&mut self, order: usize, of_majority: bool, halves: bool, scale: Vec<u64>, length: impl Fn(usize, usize) -> u32) {
        let rows = (0..self.clients * self.sites).map(|at| length(at / self.sites, at % self.sites)).collect();
        self.add_rows(order, of_majority, halves, scale, rows);
    }

    fn add_rows(&mut self, order: usize, of_majority: bool, halves: bool, scale: Vec<u64>, rows: Vec<u32>) {
        if scale.iter().any(|&scale| scale > 0) {
            self.families.push(Family { order, of_majority, scale, halves, rows });
        }
    }
}
