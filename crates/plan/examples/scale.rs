//! How far exact search goes, on one core: each instance with the time of a full proof or the gap proven by then, the nodes,
//! and what each bound cut off.
//!
//! ```text
//! cargo run --release -p rhumb-plan --example scale -- 7of60 [seeds]       against exhaustive search, timed on a part of it
//! cargo run --release -p rhumb-plan --example scale -- file RTT.csv f s    any matrix, with f faults, for at most s seconds
//! cargo run --release -p rhumb-plan --example scale -- 5of4000 s           many regions, for at most s seconds each
//! cargo run --release -p rhumb-plan --example scale -- ablation [seeds]    7 of 60 with each bound left out
//! ```
//!
//! A matrix is CSV in milliseconds, with or without a line and a column of names.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a measurement reads the clock")]

use rhumb_core::Rng;
use rhumb_plan::{Bounds, Client, Matrix, Model, Objective, Problem, Proof, Protocol, Reads, Request, branch_and_bound, exhaustive_until};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Placements on which exhaustive search is timed.
const TIMED_PLACEMENTS: u64 = 2_000_000;
/// A proof that takes longer is given up, with the gap by then.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| arguments.get(index).map_or(default, |text| text.parse().expect("a number"));
    match arguments.first().map(String::as_str) {
        Some("7of60") => seven_of_sixty(number(1, 3)),
        Some("file") => {
            let text = std::fs::read_to_string(&arguments[1]).expect("a matrix to read");
            of_matrix(&parse(&text), number(2, 2) as usize, Duration::from_secs(number(3, 60)));
        }
        Some("5of4000") => five_of_four_thousand(Duration::from_secs(number(1, 10))),
        Some("ablation") => ablation(number(1, 3)),
        _ => eprintln!("say which: 7of60, file, 5of4000 or ablation"),
    }
}

/// Commits alone, or the harder variant with reads.
fn models() -> [(&'static str, Model); 4] {
    let model = |protocol, reads, handoff| Model { protocol, reads, handoff, read_processing_us: 0 };
    [
        ("one round", model(Protocol::ReplicatedCommit, Reads::Passive, false)),
        ("two rounds, handoff", model(Protocol::TwoRounds, Reads::Passive, true)),
        ("one round, 1 optimistic read", model(Protocol::ReplicatedCommit, Reads::Optimistic, false)),
        ("two rounds, handoff, 1 optimistic read", model(Protocol::TwoRounds, Reads::Optimistic, true)),
    ]
}

/// Clients everywhere: one each, or 0 to 10.
fn clients(regions: usize, random: bool, rng: &mut Rng) -> Vec<Client> {
    let count = |rng: &mut Rng| if random { rng.below(11) } else { 1 };
    let all = (0..regions).map(|region| Client { region, clients: count(rng), reads_milli: 1_000 });
    all.filter(|client| client.clients > 0).collect()
}

fn problem(matrix: &Arc<Matrix>, clients: Vec<Client>, model: Model, faults: usize) -> Problem {
    let (matrix, objective) = (Arc::clone(matrix), Objective::Mean);
    Problem::new(Request { matrix, clients, model, faults, objective, constraints: Vec::new(), prices: Vec::new() }).expect("feasible")
}

/// Random round trips of 0 to 500 ms, shortened until the triangle inequality holds.
fn shortened(regions: usize, rng: &mut Rng) -> Matrix {
    let mut trips = vec![0u32; regions * regions];
    for a in 0..regions {
        for b in 0..a {
            let trip = rng.below(500_001) as u32;
            (trips[a * regions + b], trips[b * regions + a]) = (trip, trip);
        }
    }
    for by in 0..regions {
        for from in 0..regions {
            for to in 0..regions {
                let detour = trips[from * regions + by] + trips[by * regions + to];
                trips[from * regions + to] = trips[from * regions + to].min(detour);
            }
        }
    }
    matrix(regions, |from, to| trips[from * regions + to])
}

/// Points in a square of 350 ms, or in clusters there, so that no round trip exceeds 500 ms.
fn planar(regions: usize, clusters: usize, rng: &mut Rng) -> Matrix {
    let mut anywhere = |width: f64| [rng.unit() * width, rng.unit() * width];
    let centres: Vec<[f64; 2]> = (0..clusters).map(|_| anywhere(330_000.0)).collect();
    let mut points: Vec<[f64; 2]> = (0..regions).map(|_| anywhere(if clusters == 0 { 350_000.0 } else { 20_000.0 })).collect();
    for (index, point) in points.iter_mut().enumerate().filter(|_| clusters > 0) {
        let centre = centres[index % clusters];
        *point = [point[0] + centre[0], point[1] + centre[1]];
    }
    matrix(regions, |from, to| (points[from][0] - points[to][0]).hypot(points[from][1] - points[to][1]) as u32)
}

fn matrix(regions: usize, trip: impl Fn(usize, usize) -> u32) -> Matrix {
    Matrix::new((0..regions).map(|region| format!("r{region}")).collect(), trip).expect("few enough regions")
}

fn parse(text: &str) -> Matrix {
    let rows: Vec<Vec<&str>> = text.lines().filter(|line| !line.trim().is_empty()).map(|line| line.split(',').collect()).collect();
    let named = rows[0].iter().any(|cell| cell.trim().parse::<f64>().is_err());
    let cells: Vec<&[&str]> = rows[usize::from(named)..].iter().map(|row| &row[usize::from(named)..]).collect();
    let trip = |from: usize, to: usize| (cells[from][to].trim().parse::<f64>().expect("milliseconds") * 1_000.0).round() as u32;
    let names = (0..cells.len()).map(|index| if named { rows[index + 1][0].to_owned() } else { format!("r{index}") }).collect();
    Matrix::new(names, trip).expect("few enough regions")
}

fn prove(problem: &Problem, bounds: Bounds, patience: Duration) -> (Proof, f64) {
    let start = Instant::now();
    let proof = branch_and_bound(problem, bounds, |_| start.elapsed() < patience);
    (proof, start.elapsed().as_secs_f64())
}

fn report(name: &str, problem: &Problem, proof: &Proof, seconds: f64) {
    let state = if proof.complete { "proven".to_owned() } else { format!("gap {:.2} %", 100.0 * proof.gap()) };
    let weight: u64 = problem.weights().iter().sum();
    println!(
        "{name:<52} {state:>10} {seconds:>9.3} s  {:>9} nodes  {:.2} ms",
        proof.counters.all_nodes(),
        proof.best.cost as f64 / weight as f64 / 1e6
    );
}

fn seven_of_sixty(seeds: u64) {
    for seed in 0..seeds {
        let mut rng = Rng::seeded(seed);
        for (kind, matrix) in
            [("random", shortened(60, &mut rng)), ("plane", planar(60, 0, &mut rng)), ("clustered plane", planar(60, 12, &mut rng))]
        {
            let matrix = Arc::new(matrix);
            let weights = clients(60, true, &mut rng);
            for (name, model) in models() {
                let problem = problem(&matrix, weights.clone(), model, 3);
                versus_exhaustive(&format!("{kind} {seed}, {name}"), &problem);
            }
        }
    }
}

/// Exact search against exhaustive search, whose time is that of a part in proportion.
fn versus_exhaustive(name: &str, problem: &Problem) {
    let (proof, seconds) = prove(problem, Bounds::ALL, PATIENCE);
    let start = Instant::now();
    let part = exhaustive_until(problem, TIMED_PLACEMENTS);
    let each = start.elapsed().as_secs_f64() / part.placements as f64;
    let (n, m) = (problem.candidates().len() as u64, problem.replicas() as u64);
    let all = (0..m).fold(1.0, |all, k| all * (n - k) as f64 / (k + 1) as f64) * each;
    report(name, problem, &proof, seconds);
    println!("{:>62} {all:>9.1} s  ({:.0} ns a placement): {:.0} times", "exhaustive", each * 1e9, all / seconds);
}

fn of_matrix(matrix: &Matrix, faults: usize, patience: Duration) {
    let matrix = Arc::new(matrix.clone());
    for random in [false, true] {
        let weights = clients(matrix.regions(), random, &mut Rng::seeded(1));
        for (name, model) in models() {
            let problem = problem(&matrix, weights.clone(), model, faults);
            let (proof, seconds) = prove(&problem, Bounds::ALL, patience);
            report(&format!("{name}, {} weights", if random { "random" } else { "equal" }), &problem, &proof, seconds);
            println!("    {:?}", proof.counters);
        }
    }
}

fn five_of_four_thousand(patience: Duration) {
    let mut rng = Rng::seeded(1);
    for (kind, matrix) in [("plane", planar(4_000, 0, &mut rng)), ("clustered plane", planar(4_000, 32, &mut rng))] {
        let matrix = Arc::new(matrix);
        for random in [false, true] {
            let weights = clients(4_000, random, &mut rng);
            for (name, model) in models() {
                let problem = problem(&matrix, weights.clone(), model, 2);
                let (proof, seconds) = prove(&problem, Bounds::ALL, patience);
                report(&format!("{kind}, {name}, {} weights", if random { "random" } else { "equal" }), &problem, &proof, seconds);
            }
        }
    }
}

fn ablation(seeds: u64) {
    let all = Bounds::ALL;
    let variants = [
        ("all bounds", all),
        ("without order statistics", Bounds { order_statistic: false, ..all }),
        ("without intersection", Bounds { intersection: false, ..all }),
        ("without fixing", Bounds { fixing: false, ..all }),
        ("without prices", Bounds { site_prices: false, ..all }),
    ];
    for seed in 0..seeds {
        let mut rng = Rng::seeded(seed);
        let matrix = Arc::new(planar(60, 0, &mut rng));
        let problem = problem(&matrix, clients(60, true, &mut rng), models()[0].1, 3);
        for (name, bounds) in variants {
            let (proof, seconds) = prove(&problem, bounds, PATIENCE);
            report(&format!("plane {seed}, {name}"), &problem, &proof, seconds);
            println!("    {:?}", proof.counters);
        }
    }
}
