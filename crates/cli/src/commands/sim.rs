//! `rhumb sim`: a protocol under faults in virtual time, decided by a seed.

use clap::{Args as ClapArgs, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use rhumb_catenae as catenae;
use rhumb_quad as quad;
use rhumb_replicated_commit as replicated_commit;
use rhumb_sim::catenae::Catenae;
use rhumb_sim::paxos_commit::PaxosCommit;
use rhumb_sim::quad::{CoresLost, Quad};
use rhumb_sim::replicated_commit::{Replicas, ReplicatedCommit};
use rhumb_sim::replicated_log::ReplicatedLog;
use rhumb_sim::samya::Samya;
use rhumb_sim::{Report, Scenario, all_cores, run_seed, run_seeds, trace_seed};
use rhumb_sqlsim::Sql;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

/// Failures that are printed in full.
const SHOWN_MAX: usize = 3;

/// Run a protocol in the deterministic simulator, with crashes, cuts, loss, reordering and skew.
#[derive(ClapArgs)]
#[command(
    after_help = "Examples:\n  rhumb sim replicated-commit --seed 7            one run; a failure prints its trace\n  rhumb sim replicated-commit --seed 7 --trace    every message of it\n  rhumb sim replicated-commit --seeds 1000        seeds 0 to 999 on all cores\n  rhumb sim samya --seeds 1000                    quotas: no token is minted, lost or acquired twice\n\nExit code 0: no violation; 1: a violation, with the command that replays it."
)]
pub struct Args {
    /// What to run.
    scenario: ScenarioName,
    /// Run this seed only.
    #[arg(long, default_value_t = 0, conflicts_with = "seeds")]
    seed: u64,
    /// Run so many seeds, from --from on.
    #[arg(long, value_name = "COUNT")]
    seeds: Option<u64>,
    /// The first seed of --seeds.
    #[arg(long, default_value_t = 0, requires = "seeds")]
    from: u64,
    /// Print every event of the run.
    #[arg(long, conflicts_with = "seeds")]
    trace: bool,
    /// Without faults.
    #[arg(long)]
    calm: bool,
    /// Print how often each rare branch ran.
    #[arg(long)]
    probes: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ScenarioName {
    /// Transactions: what clients read and committed is strictly serializable, and nothing is lost.
    ReplicatedCommit,
    /// The same with some regions active, some passive, and some without a copy.
    PlacedReplicas,
    /// The same while replicas move, again and again.
    MovingReplicas,
    /// The same at a cluster of one site, which commits in one phase.
    OneSite,
    /// Epochs and transaction chains: the same promises, and replicas identical at every settled epoch.
    Catenae,
    /// The same with two sites in every region, and transaction chains across them.
    CrossingChains,
    /// The same with two coordinators in every region, each for a part of the namespaces.
    CatenaeNamespaces,
    /// Two-phase locking and optimistic concurrency control, which Catenae is measured against: the same promises.
    PaxosCommit,
    /// A replicated log per shard and two-phase commit, which Replicated Commit is measured against: the same promises.
    ReplicatedLog,
    /// Two rounds over quorums by load and distance, or over other quorum systems: strictly serializable, nothing lost.
    Quad,
    /// The same with all cores but one lost for good, and declared lost.
    QuadCoresLost,
    /// Quotas: clients never hold more than the limit, and no token is minted, lost or acquired twice.
    Samya,
    /// SQL in a database of Replicated Commit: statements on tables and indexes that come and go; each index holds the rows of its table.
    SqlReplicatedCommit,
    /// The same in a database of Catenae.
    SqlCatenae,
    /// The same in a database of QuAD.
    SqlQuad,
}

/// Runs the scenario.
pub fn run(args: &Args) -> ExitCode {
    let transactions = |replicas| ReplicatedCommit::default().with_replicas(replicas).with_calm(args.calm);
    match args.scenario {
        ScenarioName::ReplicatedCommit => simulate(&transactions(Replicas::Everywhere), args),
        ScenarioName::PlacedReplicas => simulate(&transactions(Replicas::Placed), args),
        ScenarioName::MovingReplicas => simulate(&transactions(Replicas::Moving), args),
        ScenarioName::OneSite => simulate(&transactions(Replicas::Alone), args),
        ScenarioName::Catenae => simulate(&Catenae::default().with_calm(args.calm), args),
        ScenarioName::CrossingChains => simulate(&Catenae::default().with_crossing().with_calm(args.calm), args),
        ScenarioName::CatenaeNamespaces => simulate(&Catenae::default().with_namespaces().with_calm(args.calm), args),
        ScenarioName::PaxosCommit => simulate(&PaxosCommit::default().with_calm(args.calm), args),
        ScenarioName::ReplicatedLog => simulate(&ReplicatedLog::default().with_calm(args.calm), args),
        ScenarioName::Quad => simulate(&Quad::default().with_calm(args.calm), args),
        ScenarioName::QuadCoresLost => simulate(&CoresLost::default(), args),
        ScenarioName::Samya => simulate(&Samya::default().with_calm(args.calm), args),
        ScenarioName::SqlReplicatedCommit => simulate(&Sql::<replicated_commit::Site>::default().with_calm(args.calm), args),
        ScenarioName::SqlCatenae => simulate(&Sql::<catenae::Site>::default().with_calm(args.calm), args),
        ScenarioName::SqlQuad => simulate(&Sql::<quad::Site>::default().with_calm(args.calm), args),
    }
}

fn simulate(scenario: &impl Scenario, args: &Args) -> ExitCode {
    let reports = match args.seeds {
        Some(seeds) => many(scenario, args.from, seeds),
        None => vec![one(scenario, args.seed, args.trace)],
    };
    if args.probes {
        print_probes(&reports);
    }
    if reports.iter().any(|report| report.violation.is_some()) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn one(scenario: &impl Scenario, seed: u64, trace: bool) -> Report {
    let report = if trace { trace_seed(scenario, seed) } else { run_seed(scenario, seed) };
    if trace {
        print!("{}", report.trace);
    }
    println!("{report}");
    report
}

fn many(scenario: &impl Scenario, from: u64, seeds: u64) -> Vec<Report> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {msg}, {eta} left").expect("the template is well-formed");
    let bar = ProgressBar::new(seeds).with_style(style).with_message("no violation");
    let started = Instant::now();
    let reports = run_seeds(scenario, from..from.saturating_add(seeds), all_cores(), |progress| {
        bar.set_position(progress.done);
        if progress.failed > 0 {
            bar.set_message(format!("{} violated", progress.failed));
        }
    });
    bar.finish_and_clear();
    let failed: Vec<&Report> = reports.iter().filter(|report| report.violation.is_some()).collect();
    for report in failed.iter().take(SHOWN_MAX) {
        println!("{report}\n");
    }
    let sum = |count: fn(&Report) -> u64| reports.iter().map(count).sum::<u64>();
    println!(
        "{}: {seeds} seeds, {} violated; {} committed, {} aborted, {} unknown; {} events in {:.1} s",
        scenario.name(),
        failed.len(),
        sum(|report| report.committed),
        sum(|report| report.aborted),
        sum(|report| report.unknown),
        sum(|report| report.events),
        started.elapsed().as_secs_f64(),
    );
    if failed.len() > SHOWN_MAX {
        let seeds: Vec<String> = failed.iter().map(|report| report.seed.to_string()).collect();
        println!("violated by seeds {}", seeds.join(" "));
    }
    reports
}

fn print_probes(reports: &[Report]) {
    let mut probes: BTreeMap<&str, u64> = BTreeMap::new();
    for (probe, count) in reports.iter().flat_map(|report| &report.probes) {
        *probes.entry(probe).or_default() += count;
    }
    for (probe, count) in probes {
        println!("{count:>12}  {probe}");
    }
}
