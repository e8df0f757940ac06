//! `rhumb bench run`: a loaded workload, measured.

use super::error::Error;
use super::progress::Bar;
use super::quota;
use super::target::Target;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use rhumb_bench::client::postgres::RetryPolicy;
use rhumb_bench::driver::{DriverOptions, Pace, Until};
use rhumb_bench::report::Prediction;
use rhumb_bench::transactions::RunOptions;
use rhumb_bench::workloads::ycsb::distribution::Distribution;
use rhumb_bench::workloads::ycsb::mix::{Mix, Preset, THETA};
use rhumb_bench::workloads::{bank, tpcc, ycsb};
use rhumb_bench::{BenchError, Run};
use rhumb_display::parse_duration;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Connections at work in every region, unless told otherwise.
const CLIENTS: usize = 8;

/// Run a loaded workload and report throughput, latencies, aborts and the floor, region by region.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb bench run ycsb --demo --workload b --operations 5
  rhumb bench run ycsb --demo --ratio 1:1 --distribution uniform --operations 1
  rhumb bench run tpcc --demo --clients 4 --duration 2m
  rhumb bench run bank --demo --rate 200              an open loop of 200 transactions a second over all regions
  rhumb bench run bank --demo --transactions 10000 --json
  rhumb bench run ycsb --demo --ratio 0:1 --distribution uniform --operations 2 --clients 1 --plan plan.json
                                                      two reads and a commit, against what the plan foretold
  rhumb bench run statements --demo --duration 60s    what single statements cost beside the floor
  rhumb bench run quota --demo --rate 5000 --mix 50:50

Ctrl-C ends a run early; what was measured until then is reported.
Exit code 0: done; 1: it failed, or an invariant of the workload was found broken; 2: the options do not go together.")]
pub struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// Transactions of several operations on records of one table.
    Ycsb {
        #[command(flatten)]
        what: Records,
        #[command(flatten)]
        how: How,
    },
    /// The five transactions of TPC-C in their mix.
    Tpcc {
        /// Keying and think times as a multiple of those specified: 1 conforms, 0 leaves no pauses.
        #[arg(long, value_name = "FACTOR", default_value_t = 0.0)]
        pause: f64,
        #[command(flatten)]
        how: How,
    },
    /// Transfers between accounts, and audits of all of them.
    Bank {
        /// The share of audits.
        #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
        audits: f64,
        #[command(flatten)]
        how: How,
    },
    /// Single statements on rows that nobody else touches, each held against the floor.
    Statements {
        #[command(flatten)]
        how: How,
    },
    /// Tokens of a quota, acquired and released over the Redis protocol.
    Quota(quota::Run),
}

#[derive(ClapArgs)]
struct Records {
    /// A core workload: a half updates, b 5 % updates, c reads, d reads of the latest, e scans, f read-modify-writes.
    #[arg(long, value_enum, default_value_t = Core::A)]
    workload: Core,
    /// Reads to updates, instead of a core workload.
    #[arg(long, value_name = "READS:UPDATES", conflicts_with = "workload", value_parser = ratio)]
    ratio: Option<(u32, u32)>,
    /// Which records are popular [default: that of the core workload].
    #[arg(long, value_enum)]
    distribution: Option<Popularity>,
    /// The skew of a Zipfian distribution.
    #[arg(long, default_value_t = THETA)]
    theta: f64,
    /// Operations of a transaction.
    #[arg(long, value_name = "N", default_value_t = 5)]
    operations: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Core {
    A,
    B,
    C,
    D,
    E,
    F,
}

#[derive(Clone, Copy, ValueEnum)]
enum Popularity {
    /// All alike.
    Uniform,
    /// A few are very popular.
    Zipfian,
    /// The newest are.
    Latest,
}

#[derive(ClapArgs)]
struct How {
    /// Connections at work in every region [default: 8; for single statements 1].
    #[arg(long, value_name = "N")]
    clients: Option<usize>,
    /// How long to measure.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    duration: Duration,
    /// Measure so many transactions, however long they take.
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    transactions: Option<u64>,
    /// How long to run before measuring.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    warmup: Duration,
    /// Begin so many transactions a second over all regions, whatever the servers do, instead of one after the other.
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// How often a transaction that was aborted is tried, the first time included.
    #[arg(long, value_name = "N", default_value_t = RetryPolicy::default().attempts_max)]
    attempts: u32,
    /// Where all randomness comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Hold the median of every region against this plan, a file that `rhumb plan --json` printed.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

impl How {
    fn options(&self, clients: usize) -> RunOptions {
        RunOptions {
            driver: DriverOptions {
                seed: self.seed,
                clients_per_region: self.clients.unwrap_or(clients),
                pace: self.rate.map_or(Pace::Closed, |rate_per_s| Pace::Open { rate_per_s }),
                warmup: self.warmup,
                until: self.transactions.map_or(Until::Elapsed(self.duration), Until::Transactions),
            },
            retry: RetryPolicy { attempts_max: self.attempts, ..RetryPolicy::default() },
            settings: self.target.settings(),
        }
    }

    fn prediction(&self) -> Result<Option<Prediction>, BenchError> {
        let Some(path) = &self.plan else { return Ok(None) };
        let wrong = |why: String| BenchError::Options(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Prediction::parse(&text).map(Some).map_err(|error| wrong(error.to_string()))
    }
}

impl Records {
    fn options(&self) -> Result<ycsb::Options, BenchError> {
        let preset = match self.workload {
            Core::A => Preset::A,
            Core::B => Preset::B,
            Core::C => Preset::C,
            Core::D => Preset::D,
            Core::E => Preset::E,
            Core::F => Preset::F,
        };
        let (mix, usual) = preset.parts();
        let mix = self.ratio.map_or(Ok(mix), |(reads, updates)| Mix::ratio(reads, updates))?;
        let theta = self.theta;
        let distribution = match (self.distribution, usual) {
            (Some(Popularity::Uniform), _) | (None, Distribution::Uniform) => Distribution::Uniform,
            (Some(Popularity::Latest), _) | (None, Distribution::Latest { .. }) => Distribution::Latest { theta },
            (Some(Popularity::Zipfian), _) | (None, Distribution::Zipfian { .. }) => Distribution::Zipfian { theta, scrambled: true },
        };
        Ok(ycsb::Options { mix, distribution, operations: self.operations })
    }
}

/// Runs and measures.
pub async fn run(args: &Args) -> Result<ExitCode, Error> {
    let (run, how, clients) = match &args.workload {
        Workload::Ycsb { what, how } => (Run::Ycsb(what.options()?), how, CLIENTS),
        Workload::Tpcc { pause, how } => (Run::Tpcc(tpcc::Options { pause: *pause }), how, CLIENTS),
        Workload::Bank { audits, how } => (Run::Bank(bank::Options { audits: *audits }), how, CLIENTS),
        // Alone, so that no statement waits for another.
        Workload::Statements { how } => (Run::Statements, how, 1),
        Workload::Quota(load) => return quota::run(load).await,
    };
    let prediction = how.prediction()?;
    let bar = Bar::stoppable();
    let mut report = rhumb_bench::run(&run, &how.target.endpoints()?, &how.options(clients), &bar).await?;
    bar.clear();
    if let Some(prediction) = &prediction {
        report.hold_against(prediction);
    }
    if how.target.json {
        println!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ratio(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once(':').and_then(|(reads, updates)| Some((reads.parse().ok()?, updates.parse().ok()?)));
    parts.ok_or_else(|| "expected READS:UPDATES, such as 1:1 or 95:5".to_owned())
}
