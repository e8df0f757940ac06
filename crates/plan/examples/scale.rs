//! How far exact search goes, on one core: each instance with the time of a full proof or the gap proven by then, and the
//! nodes.
//!
//! ```text
//! cargo run --release -p rhumb-plan --example scale -- 7of60 [seeds] [RTT.csv]   against exhaustive search, timed on a part of it
//! cargo run --release -p rhumb-plan --example scale -- file RTT.csv [f] [s]      any matrix, with f faults, for at most s seconds
//! cargo run --release -p rhumb-plan --example scale -- 5of4000 [s]               many regions, for at most s seconds each
//! cargo run --release -p rhumb-plan --example scale -- bounds [seeds] [s]        7 of 60 with bounds left out, s seconds each
//! ```
//!
//! A matrix is CSV in milliseconds, with or without a line and a column of names; `7of60` draws 60 of its regions as well.
//! Times are those that the thread ran, where the system tells; so other work on the machine counts less.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a measurement reads the clock")]

use rhumb_core::Rng;
use rhumb_plan::{
    Bounds, Client, Matrix, Model, Objective, Problem, Proof, Protocol, Reads, Request, branch_and_bound, exact, exhaustive_until,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Placements on which exhaustive search is timed.
const TIMED_PLACEMENTS: u64 = 1_000_000;
/// A proof that takes longer, in seconds, is given up, with the gap by then.
const PATIENCE: f64 = 60.0;
/// Exact search is repeated for so many seconds where it takes less.
const REPEATED_FOR: f64 = 0.2;

/// A stopwatch of the time that this thread runs, if the system tells, else of all time.
struct Stopwatch {
    start: Instant,
    ran_at_start: Option<f64>,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch { start: Instant::now(), ran_at_start: Stopwatch::ran() }
    }

    /// Seconds that the thread has run.
    fn ran() -> Option<f64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
    }

    fn seconds(&self) -> f64 {
        match (self.ran_at_start, Stopwatch::ran()) {
            (Some(start), Some(now)) => now - start,
            _ => self.start.elapsed().as_secs_f64(),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| arguments.get(index).map_or(default, |text| text.parse().expect("a number"));
    match arguments.first().map(String::as_str) {
        Some("7of60") => seven_of_sixty(number(1, 3), arguments.get(2).map(|path| read(path))),
        Some("file") => of_matrix(&read(&arguments[1]), number(2, 2) as usize, number(3, 60) as f64),
        Some("5of4000") => five_of_four_thousand(number(1, 10) as f64),
        Some("bounds") => bounds(number(1, 1), number(2, 10) as f64),
        _ => eprintln!("say which: 7of60, file, 5of4000 or bounds"),
    }
}

/// Replicated Commit and the protocol that the paper models, with each kind of reads; one read per transaction, if any.
fn models() -> [(&'static str, Model); 8] {
    let model = |protocol, reads, handoff| Model { protocol, reads, handoff, read_processing_us: 0 };
    let (one, two) = (Protocol::ReplicatedCommit, Protocol::TwoRounds);
    [
        ("one round", model(one, Reads::Passive, false)),
        ("one round, majority read", model(one, Reads::Majority, false)),
        ("one round, optimistic read", model(one, Reads::Optimistic, false)),
        ("two rounds, majority read", model(two, Reads::Majority, false)),
        ("two rounds, optimistic read", model(two, Reads::Optimistic, false)),
        ("two rounds, handoff", model(two, Reads::Passive, true)),
        ("two rounds, handoff, majority read", model(two, Reads::Majority, true)),
        ("two rounds, handoff, optimistic read", model(two, Reads::Optimistic, true)),
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

fn read(path: &str) -> Matrix {
    let text = std::fs::read_to_string(path).expect("a matrix to read");
    let rows: Vec<Vec<&str>> = text.lines().filter(|line| !line.trim().is_empty()).map(|line| line.split(',').collect()).collect();
    let named = rows[0].iter().any(|cell| cell.trim().parse::<f64>().is_err());
    let cells: Vec<&[&str]> = rows[usize::from(named)..].iter().map(|row| &row[usize::from(named)..]).collect();
    let trip = |from: usize, to: usize| (cells[from][to].trim().parse::<f64>().expect("milliseconds") * 1_000.0).round() as u32;
    matrix(cells.len(), trip)
}

/// So many regions of `all`.
fn drawn(all: &Matrix, count: usize, rng: &mut Rng) -> Matrix {
    let mut regions: Vec<usize> = (0..all.regions()).collect();
    for place in 0..count {
        let other = place + rng.below((regions.len() - place) as u64) as usize;
        regions.swap(place, other);
    }
    matrix(count, |from, to| all.rtt_us(regions[from], regions[to]))
}

/// A search for at most so many seconds, and how long it took.
fn prove(problem: &Problem, bounds: Bounds, patience: f64) -> (Proof, f64) {
    let stopwatch = Stopwatch::start();
    let mut looked = Instant::now();
    let proof = branch_and_bound(problem, bounds, |_| {
        // To read the time that the thread ran takes longer than a node.
        if looked.elapsed() < Duration::from_millis(2) {
            return true;
        }
        looked = Instant::now();
        stopwatch.seconds() < patience
    });
    (proof, stopwatch.seconds())
}

/// How long exact search takes on average, repeated for long enough to be measured.
fn repeated(problem: &Problem) -> f64 {
    let stopwatch = Stopwatch::start();
    let mut times = 0;
    while times == 0 || stopwatch.seconds() < REPEATED_FOR {
        std::hint::black_box(exact(problem));
        times += 1;
    }
    stopwatch.seconds() / f64::from(times)
}

fn report(name: &str, problem: &Problem, proof: &Proof, seconds: f64) {
    let state = if proof.complete { "proven".to_owned() } else { format!("gap {:.2} %", 100.0 * proof.gap()) };
    let weight: u64 = problem.weights().iter().sum();
    let mean_ms = proof.best.cost as f64 / weight as f64 / 1e6;
    print!("{name:<56} {state:>11} {seconds:>8.3} s {:>9} nodes {mean_ms:>7.2} ms", proof.counters.all_nodes());
}

fn seven_of_sixty(seeds: u64, measured: Option<Matrix>) {
    for seed in 0..seeds {
        let mut rng = Rng::seeded(seed);
        let made = [("random", shortened(60, &mut rng)), ("plane", planar(60, 0, &mut rng)), ("clustered plane", planar(60, 12, &mut rng))];
        let measured = measured.iter().map(|all| ("measured", drawn(all, 60, &mut rng)));
        for (kind, matrix) in made.into_iter().chain(measured.collect::<Vec<_>>()) {
            let matrix = Arc::new(matrix);
            let weights = clients(60, true, &mut rng);
            for (name, model) in models() {
                versus_exhaustive(&format!("{kind} {seed}, {name}"), &problem(&matrix, weights.clone(), model, 3));
            }
        }
    }
}

/// Exact search against exhaustive search, whose time is that of a part in proportion.
fn versus_exhaustive(name: &str, problem: &Problem) {
    let (proof, _) = prove(problem, Bounds::ALL, PATIENCE);
    let seconds = repeated(problem);
    let stopwatch = Stopwatch::start();
    let part = exhaustive_until(problem, TIMED_PLACEMENTS);
    let each = stopwatch.seconds() / part.placements as f64;
    let (n, m) = (problem.candidates().len() as u64, problem.replicas() as u64);
    let all = (0..m).fold(1.0, |all, k| all * (n - k) as f64 / (k + 1) as f64) * each;
    report(name, problem, &proof, seconds);
    println!("  exhaustive {:>4.0} ns each, {all:>4.0} s: {:>6.0} times", each * 1e9, all / seconds);
}

fn of_matrix(matrix: &Matrix, faults: usize, patience: f64) {
    let matrix = Arc::new(matrix.clone());
    for (weighted, random) in [("equal", false), ("random", true)] {
        let weights = clients(matrix.regions(), random, &mut Rng::seeded(1));
        for (name, model) in models() {
            let problem = problem(&matrix, weights.clone(), model, faults);
            let (proof, seconds) = prove(&problem, Bounds::ALL, patience);
            report(&format!("{name}, {weighted} weights"), &problem, &proof, seconds);
            println!();
        }
    }
}

fn five_of_four_thousand(patience: f64) {
    let mut rng = Rng::seeded(1);
    for (kind, matrix) in [("plane", planar(4_000, 0, &mut rng)), ("clustered plane", planar(4_000, 32, &mut rng))] {
        println!("{kind}");
        of_matrix(&matrix, 2, patience);
    }
}

/// What each bound buys: the search without it, and with it alone.
fn bounds(seeds: u64, patience: f64) {
    let (all, none) = (Bounds::ALL, Bounds::NONE);
    let prices = Bounds { clusters: false, ..all };
    let variants = [
        ("all", all),
        ("clusters alone", Bounds { clusters: true, ..none }),
        ("all but clusters", prices),
        ("all but clusters, order statistics", Bounds { order_statistic: false, ..prices }),
        ("all but clusters, intersection", Bounds { intersection: false, ..prices }),
        ("all but clusters, fixing", Bounds { fixing: false, ..prices }),
        ("order statistics alone", Bounds { order_statistic: true, ..none }),
    ];
    for seed in 0..seeds {
        let mut rng = Rng::seeded(seed);
        for (kind, matrix) in
            [("random", shortened(60, &mut rng)), ("plane", planar(60, 0, &mut rng)), ("clustered plane", planar(60, 12, &mut rng))]
        {
            let (matrix, weights) = (Arc::new(matrix), clients(60, true, &mut rng));
            for (model_name, model) in [models()[0], models()[5], models()[7]] {
                println!("{kind} {seed}, {model_name}");
                let problem = problem(&matrix, weights.clone(), model, 3);
                for (name, bounds) in variants {
                    let (proof, seconds) = prove(&problem, bounds, patience);
                    report(&format!("    {name}"), &problem, &proof, seconds);
                    println!();
                }
            }
        }
    }
}
