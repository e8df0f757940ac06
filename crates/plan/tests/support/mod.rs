//! Problems for the tests: the published matrix, and random instances.

#![allow(dead_code, reason = "every test binary uses a part")]

pub mod naive;

use proptest::prelude::*;
use rhumb_core::wan;
use rhumb_plan::{Client, Constraint, Groups, Matrix, Model, Objective, Problem, ProblemError, Protocol, Reads, Request, TwoPhase};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The nine regions of GPlacer's Table 1.
pub fn nine() -> Matrix {
    Matrix::try_from(&wan::profile("paper_gplacer_9").expect("shipped").matrix()).expect("nine regions")
}

/// The indices of `names`, ascending.
pub fn regions(matrix: &Matrix, names: &[&str]) -> Vec<usize> {
    let mut regions: Vec<usize> = names.iter().map(|name| matrix.region(name).expect("a known name")).collect();
    regions.sort_unstable();
    regions
}

/// A request without constraints or prices: the mean over one client in every region.
pub fn request(matrix: Matrix, model: Model, faults: usize) -> Request {
    let clients = rhumb_plan::workload::uniform(&matrix, 0);
    Request { matrix: Arc::new(matrix), clients, model, faults, objective: Objective::Mean, constraints: Vec::new(), prices: Vec::new() }
}

/// Commits alone, as the heuristics of the paper are compared.
pub const fn commits(protocol: Protocol, handoff: bool) -> Model {
    Model { protocol, reads: Reads::Passive, handoff, read_processing_us: 0 }
}

/// Two divisions of `n` regions into groups: by remainder, as providers, and by thirds, as continents.
pub fn divisions(n: usize) -> [Groups; 2] {
    let provider = (0..n).map(|region| ["x", "y", "z"][region % 3].to_owned());
    let continent = (0..n).map(|region| ["north", "middle", "south"][region * 3 / n].to_owned());
    [Groups::new("provider", provider), Groups::new("continent", continent)]
}

pub fn protocol() -> impl Strategy<Value = Protocol> {
    let two_phase = prop_oneof![Just(TwoPhase::OwnLeader), Just(TwoPhase::BestLeader), Just(TwoPhase::LocalParticipantTells)];
    prop_oneof![
        Just(Protocol::ReplicatedCommit),
        Just(Protocol::TwoRounds),
        Just(Protocol::OneLeader),
        (0..=1_000u32, two_phase)
            .prop_map(|(multi_partition_milli, two_phase)| Protocol::SpreadLeaders { multi_partition_milli, two_phase }),
    ]
}

pub fn model() -> impl Strategy<Value = Model> {
    let reads = prop_oneof![Just(Reads::Majority), Just(Reads::Optimistic), Just(Reads::Passive)];
    (protocol(), reads, any::<bool>(), 0..3_000u32).prop_map(|(protocol, reads, handoff, read_processing_us)| Model {
        protocol,
        reads,
        handoff,
        read_processing_us,
    })
}

pub fn objective() -> impl Strategy<Value = Objective> {
    prop_oneof![
        Just(Objective::Mean),
        Just(Objective::RegionMean),
        Just(Objective::Worst),
        prop_oneof![Just(950), 1..=1_000u32].prop_map(Objective::Percentile),
    ]
}

/// Up to three constraints over `n` regions, often ones that conflict.
pub fn constraints(n: usize) -> impl Strategy<Value = Vec<Constraint>> {
    let one = prop_oneof![
        proptest::collection::btree_set(0..n, 1..=n).prop_map(Constraint::Within),
        (0..n).prop_map(Constraint::Forbidden),
        (0..n).prop_map(Constraint::Required),
        (1..4u32).prop_map(move |limit| Constraint::AtMost { limit, groups: divisions(n)[0].clone() }),
        (1..4u32).prop_map(move |limit| Constraint::AtMost { limit, groups: divisions(n)[1].clone() }),
        proptest::collection::vec(0..80u64, n).prop_map(Constraint::Capacity),
        (0..6_000u64).prop_map(Constraint::Budget),
    ];
    proptest::collection::vec(one, 0..5)
}

/// Any request over few regions: asymmetric times that know no triangle inequality, many ties among them.
pub fn any_request(regions_max: usize) -> impl Strategy<Value = Request> {
    (1..=regions_max)
        .prop_flat_map(|n| {
            let cells = prop_oneof![proptest::collection::vec(0..300_000u32, n * n), proptest::collection::vec(0..4u32, n * n)];
            let clients = proptest::collection::btree_map(0..n, (1..12u64, 0..5_000u64), 1..=n);
            let prices = prop_oneof![Just(Vec::new()), proptest::collection::vec(0..2_000u64, n)];
            (Just(n), cells, clients, 0..=(n - 1) / 2, model(), objective(), constraints(n), prices)
        })
        .prop_map(|(n, cells, clients, faults, model, objective, constraints, prices)| {
            let names = (0..n).map(|region| format!("r{region}")).collect();
            let clients = clients.into_iter().map(|(region, (clients, reads_milli))| Client { region, clients, reads_milli }).collect();
            let matrix = Arc::new(Matrix::new(names, |from, to| cells[from * n + to]).expect("few regions"));
            Request { matrix, clients, model, faults, objective, constraints, prices }
        })
}

/// A problem of a random request.
pub fn any_problem(regions_max: usize) -> impl Strategy<Value = Problem> {
    any_request(regions_max).prop_map(feasible)
}

/// The problem of `request`, whose constraints are left out where they conflict.
fn feasible(mut request: Request) -> Problem {
    let limits = |constraint: &Constraint| matches!(constraint, Constraint::AtMost { .. });
    while request.constraints.iter().filter(|constraint| limits(constraint)).count() > 2 {
        request.constraints.pop();
    }
    match Problem::new(request.clone()) {
        Ok(problem) => problem,
        Err(ProblemError::Infeasible { .. }) => {
            request.constraints.clear();
            Problem::new(request).expect("nothing is constrained")
        }
        Err(error) => panic!("{error}"),
    }
}

/// A problem whose times are whole milliseconds and whose leaders, if any, stand in one place: what an integer program over
/// floats can tell apart.
pub fn coarse_problem(regions: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Problem> {
    let reads = prop_oneof![Just(Reads::Majority), Just(Reads::Optimistic), Just(Reads::Passive)];
    let protocol = prop_oneof![Just(Protocol::ReplicatedCommit), Just(Protocol::TwoRounds), Just(Protocol::OneLeader)];
    let model = (protocol, reads, any::<bool>()).prop_map(|(protocol, reads, handoff)| Model {
        protocol,
        reads,
        handoff,
        read_processing_us: 1_000,
    });
    regions
        .prop_flat_map(move |n| {
            let clients = proptest::collection::btree_map(0..n, (1..12u64, 0..6u64), 1..=n);
            let prices = proptest::collection::vec(0..2_000u64, n);
            let cells = proptest::collection::vec(0..300u32, n * n);
            (Just(n), cells, clients, 0..=(n - 1) / 2, model.clone(), objective(), constraints(n), prices)
        })
        .prop_map(|(n, cells, clients, faults, model, objective, constraints, prices)| {
            let names = (0..n).map(|region| format!("r{region}")).collect();
            let client = |(region, (clients, halves))| Client { region, clients, reads_milli: 500 * halves };
            let matrix = Arc::new(Matrix::new(names, |from, to| 1_000 * cells[from * n + to]).expect("few regions"));
            let clients = clients.into_iter().map(client).collect();
            feasible(Request { matrix, clients, model, faults, objective, constraints, prices })
        })
}

/// Every ascending choice of `size` of `0..n`.
pub fn choices(n: usize, size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let smaller = choices(n, size - 1);
    let larger = |set: Vec<usize>| (set.last().map_or(0, |last| last + 1)..n).map(move |next| [set.clone(), vec![next]].concat());
    smaller.into_iter().flat_map(larger).collect()
}

/// Whether `replicas` satisfies `constraint`, by its definition.
pub fn satisfies(request: &Request, replicas: &[usize], constraint: &Constraint) -> bool {
    let chosen: BTreeSet<usize> = replicas.iter().copied().collect();
    match constraint {
        Constraint::Within(regions) => chosen.is_subset(regions),
        Constraint::Forbidden(region) => !chosen.contains(region),
        Constraint::Required(region) => chosen.contains(region),
        Constraint::AtMost { limit, groups } => (0..groups.names.len() as u32)
            .all(|group| chosen.iter().filter(|&&region| groups.of[region] == group).count() <= *limit as usize),
        Constraint::Capacity(clients) => {
            chosen.iter().all(|&region| clients[region] >= request.clients.iter().map(|client| client.clients).sum())
        }
        Constraint::Budget(most) => chosen.iter().map(|&region| request.prices.get(region).copied().unwrap_or(0)).sum::<u64>() <= *most,
    }
}
