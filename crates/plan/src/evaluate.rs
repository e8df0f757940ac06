//! What a placement is worth: the latency of every client region, and the objective.
//!
//! [`Evaluator::cost`] is the inner loop of every search and allocates nothing. For protocols without leaders it works on
//! many clients at a time; [`evaluate`] works on one after another, and says besides who coordinates.
//!
//! Source: GPlacer, 2.1 and 3.1 (`evalLat`), 4.1.

use crate::columns::{Columns, Waits};
use crate::floor::floors_ns;
use crate::matrix::Matrix;
use crate::model::{Protocol, Reads};
use crate::problem::{Problem, REPLICAS_MAX};
use crate::request::Client;
use crate::two_phase::{Leaders, farthest_us};

/// What a placement is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The replicas, ascending.
    pub replicas: Vec<usize>,
    /// The objective's integer: the less, the better.
    pub cost: u64,
    /// The mean latency over all clients, in nanoseconds, rounded down.
    pub mean_ns: u64,
    /// What the replicas cost per month, in millionths of a dollar.
    pub price: u64,
    /// Every client region, ascending.
    pub clients: Vec<ClientPlan>,
}

/// What a placement means for the clients of one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientPlan {
    /// The region.
    pub region: usize,
    /// How many clients are there.
    pub clients: u64,
    /// Who serves their reads: themselves, if they ask a majority or a passive replica of their own.
    pub read_coordinator: usize,
    /// Who coordinates their commits; with leaders, the leader of their partition.
    pub commit_coordinator: usize,
    /// How long an average transaction takes, in nanoseconds.
    pub latency_ns: u64,
    /// What no placement of as many replicas can go below for these clients, whatever the constraints, in nanoseconds.
    pub floor_ns: u64,
}

/// Evaluates placements of one problem, with what that takes beyond the problem itself: a copy of the round trips in
/// another order, and scratch space.
#[derive(Clone, Debug)]
pub struct Evaluator<'p> {
    problem: &'p Problem,
    /// For protocols without leaders.
    columns: Option<Columns>,
    waits: Waits,
    latencies_ns: Vec<u64>,
    order: Vec<(u64, u64)>,
}

/// The members of a placement with what depends on them alone.
struct Members<'s> {
    replicas: &'s [usize],
    /// The round trip to each member's majority.
    quorum_us: [u32; REPLICAS_MAX],
    /// The round trip to the other member farthest from each, where transactions span leaders.
    farthest_us: [u32; REPLICAS_MAX],
}

/// Who serves the clients of one region, and how long that takes.
#[derive(Clone, Copy, Debug)]
struct Choice {
    read_coordinator: usize,
    commit_coordinator: usize,
    latency_ns: u64,
}

/// The round trip that completes a majority of `replicas`, given the round trips from a region to all regions.
pub fn quorum_us(from: &[u32], replicas: &[usize]) -> u32 {
    let majority = replicas.len() / 2 + 1;
    match majority {
        1 | 2 => nearest_us::<2>(from, replicas)[majority - 1],
        3 => nearest_us::<3>(from, replicas)[majority - 1],
        4 => nearest_us::<4>(from, replicas)[majority - 1],
        5..=8 => nearest_us::<8>(from, replicas)[majority - 1],
        _ => nearest_us::<{ REPLICAS_MAX / 2 + 1 }>(from, replicas)[majority - 1],
    }
}

/// The round trips to the nearest of `replicas`, in ascending order: each is carried through the sorted nearest so far,
/// without a branch. An array of constant length stays in registers.
#[inline(always)]
fn nearest_us<const KEPT: usize>(from: &[u32], replicas: &[usize]) -> [u32; KEPT] {
    let mut nearest = [u32::MAX; KEPT];
    for &replica in replicas {
        let mut carried = from[replica];
        for slot in &mut nearest {
            let lower = carried.min(*slot);
            carried = carried.max(*slot);
            *slot = lower;
        }
    }
    nearest
}

impl<'s> Members<'s> {
    fn new(problem: &Problem, replicas: &'s [usize]) -> Members<'s> {
        let matrix = problem.matrix();
        let across_leaders = matches!(problem.model().protocol, Protocol::SpreadLeaders { .. });
        let mut members = Members { replicas, quorum_us: [0; REPLICAS_MAX], farthest_us: [0; REPLICAS_MAX] };
        for (index, &replica) in replicas.iter().enumerate() {
            let from = matrix.from(replica);
            members.quorum_us[index] = quorum_us(from, replicas);
            if across_leaders {
                members.farthest_us[index] = farthest_us(matrix, replica, replicas);
            }
        }
        members
    }
}

impl<'p> Evaluator<'p> {
    /// An evaluator of placements for `problem`.
    pub fn new(problem: &'p Problem) -> Evaluator<'p> {
        let clients = problem.clients().len();
        Evaluator {
            problem,
            columns: (!problem.model().protocol.has_leaders()).then(|| Columns::new(problem)),
            waits: Waits::default(),
            latencies_ns: vec![0; clients],
            order: Vec::with_capacity(clients),
        }
    }

    /// The objective at `replicas` (ascending, each once), or nothing if they violate a constraint.
    pub fn cost(&mut self, replicas: &[usize]) -> Option<u64> {
        self.problem.admits(replicas).then(|| self.latency_cost(replicas))
    }

    /// The objective at `replicas`, whatever the constraints say; one to [`REPLICAS_MAX`] of them. A majority is one of these.
    pub fn latency_cost(&mut self, replicas: &[usize]) -> u64 {
        let members = Members::new(self.problem, replicas);
        if let Some(columns) = &self.columns {
            let model = self.problem.model();
            columns.wait(replicas, &members.quorum_us, model.protocol.rounds() as u32, model.handoff, &mut self.waits);
            self.add_up(replicas);
            return self.problem.objective().value(&self.latencies_ns, self.problem.weights(), &mut self.order);
        }
        let leaders = 0..if self.problem.model().protocol == Protocol::OneLeader { replicas.len() } else { 1 };
        leaders.map(|leader| self.cost_led_by(&members, leader)).min().expect("a placement has a replica")
    }

    /// The latency of every client from what it waits for.
    fn add_up(&mut self, replicas: &[usize]) {
        let model = self.problem.model();
        let read_us = match model.reads {
            Reads::Passive => None,
            Reads::Majority => Some(&self.waits.majority_us),
            Reads::Optimistic => {
                // A replica in the client's own region is no hop away.
                for replica in replicas {
                    if let Ok(place) = self.problem.clients().binary_search_by_key(replica, |client| client.region) {
                        self.waits.nearest_us[place] = 0;
                    }
                }
                Some(&self.waits.nearest_us)
            }
        };
        for (latency_ns, commit_us) in self.latencies_ns.iter_mut().zip(&self.waits.commit_us) {
            *latency_ns = 1_000 * u64::from(*commit_us);
        }
        if let Some(read_us) = read_us {
            for ((latency_ns, client), read_us) in self.latencies_ns.iter_mut().zip(self.problem.clients()).zip(read_us) {
                *latency_ns += client.reads_milli * (u64::from(*read_us) + u64::from(model.read_processing_us));
            }
        }
    }

    /// The objective if `leader` leads all partitions, which matters to [`Protocol::OneLeader`] alone.
    fn cost_led_by(&mut self, members: &Members<'_>, leader: usize) -> u64 {
        for (latency_ns, client) in self.latencies_ns.iter_mut().zip(self.problem.clients()) {
            *latency_ns = choose(self.problem, members, client, leader).latency_ns;
        }
        self.problem.objective().value(&self.latencies_ns, self.problem.weights(), &mut self.order)
    }
}

/// Evaluates `replicas` (ascending, each once), whatever the constraints say.
pub fn evaluate(problem: &Problem, replicas: &[usize]) -> Evaluation {
    let members = Members::new(problem, replicas);
    let led_by = |leader: usize| {
        let choices: Vec<Choice> = problem.clients().iter().map(|client| choose(problem, &members, client, leader)).collect();
        let latencies_ns: Vec<u64> = choices.iter().map(|choice| choice.latency_ns).collect();
        (problem.objective().value(&latencies_ns, problem.weights(), &mut Vec::new()), choices)
    };
    let leaders = 0..if problem.model().protocol == Protocol::OneLeader { replicas.len() } else { 1 };
    let (cost, choices) = leaders.map(led_by).min_by_key(|(cost, _)| *cost).expect("a placement has a replica");
    let plan = |((client, choice), floor_ns): ((&Client, Choice), u64)| ClientPlan {
        region: client.region,
        clients: client.clients,
        read_coordinator: choice.read_coordinator,
        commit_coordinator: choice.commit_coordinator,
        latency_ns: choice.latency_ns,
        floor_ns,
    };
    let clients: Vec<ClientPlan> = problem.clients().iter().zip(choices).zip(floors_ns(problem)).map(plan).collect();
    let total: u64 = problem.weights().iter().sum();
    Evaluation {
        replicas: replicas.to_vec(),
        cost,
        mean_ns: clients.iter().map(|plan| plan.latency_ns * plan.clients).sum::<u64>() / total,
        price: problem.price_of(replicas),
        clients,
    }
}

/// Who serves `client`. A coordinator in the client's own region wins a tie, then the first of the members.
fn choose(problem: &Problem, members: &Members<'_>, client: &Client, leader: usize) -> Choice {
    let matrix = problem.matrix();
    let model = problem.model();
    let here = client.region;
    let from = matrix.from(here);
    // The client's own quorum, where the protocol lets a region coordinate for itself or reads ask a majority.
    let own_quorum = || u64::from(quorum_us(from, members.replicas));
    let (commit_coordinator, commit_ns, leader_hop_us) = match model.protocol {
        Protocol::ReplicatedCommit | Protocol::TwoRounds => {
            let rounds = model.protocol.rounds();
            let mut best = (here, rounds * own_quorum());
            if model.handoff {
                for (index, &replica) in members.replicas.iter().enumerate() {
                    let handed = u64::from(matrix.hop_us(here, replica)) + rounds * u64::from(members.quorum_us[index]);
                    best = if handed < best.1 { (replica, handed) } else { best };
                }
            }
            (best.0, 1_000 * best.1, None)
        }
        Protocol::OneLeader => {
            let hop = u64::from(matrix.hop_us(here, members.replicas[leader]));
            (members.replicas[leader], 1_000 * (hop + u64::from(members.quorum_us[leader])), Some(hop))
        }
        Protocol::SpreadLeaders { multi_partition_milli, two_phase } => {
            let leader = own_leader(matrix, members, here, model.handoff);
            let hop = u64::from(matrix.hop_us(here, members.replicas[leader]));
            let single_us = hop + u64::from(members.quorum_us[leader]);
            let leaders = Leaders {
                places: members.replicas,
                quorum_us: &members.quorum_us[..members.replicas.len()],
                farthest_us: &members.farthest_us[..members.replicas.len()],
            };
            let (_, multi_half_us) = leaders.commit_half_us(matrix, here, leader, two_phase);
            let milli = u64::from(multi_partition_milli);
            (members.replicas[leader], (1_000 - milli) * single_us + milli * multi_half_us / 2, Some(hop))
        }
    };
    let (read_coordinator, read_us) = match model.reads {
        Reads::Majority => match leader_hop_us {
            Some(hop_us) => (commit_coordinator, hop_us),
            None => (here, own_quorum()),
        },
        Reads::Optimistic => nearest(matrix, members.replicas, here),
        Reads::Passive => (here, 0),
    };
    let read_ns = match model.reads {
        Reads::Passive => 0,
        Reads::Majority | Reads::Optimistic => client.reads_milli * (read_us + u64::from(model.read_processing_us)),
    };
    Choice { read_coordinator, commit_coordinator, latency_ns: read_ns + commit_ns }
}

/// The member nearest to `here`, and the hop to it. The region's own replica wins a tie, then the first.
fn nearest(matrix: &Matrix, replicas: &[usize], here: usize) -> (usize, u64) {
    let mut best = (here, u64::MAX);
    for &replica in replicas {
        if replica == here {
            return (here, 0);
        }
        let hop = u64::from(matrix.rtt_us(here, replica));
        best = if hop < best.1 { (replica, hop) } else { best };
    }
    best
}

/// Which member (by its place among them) leads the partition of the clients `here`: the nearest, or the one that commits
/// soonest for them.
fn own_leader(matrix: &Matrix, members: &Members<'_>, here: usize, soonest: bool) -> usize {
    let length = |index: usize| {
        let hop = u64::from(matrix.hop_us(here, members.replicas[index]));
        (hop + if soonest { u64::from(members.quorum_us[index]) } else { 0 }, members.replicas[index] != here)
    };
    (0..members.replicas.len()).min_by_key(|&index| length(index)).expect("a placement has a replica")
}
