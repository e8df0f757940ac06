//! The load on quotas, over the Redis protocol: `rhumb bench init|run|check quota`.

use super::error::Error;
use super::progress::Bar;
use super::target::Servers;
use clap::Args;
use clap::builder::PossibleValuesParser;
use rhumb_bench::driver::{DriverOptions, Pace, Until};
use rhumb_bench::workloads::quota::{self, InitOptions, Mix, RunOptions};
use rhumb_display::parse_duration;
use rhumb_quota::operation::AMOUNT_MAX;
use rhumb_quota::spec::{OfferPolicy, ProtocolKind, Reallocation};
use std::process::ExitCode;
use std::time::Duration;

/// Which quota, and by way of which sites.
#[derive(Args)]
pub struct At {
    /// The quota.
    #[arg(long, value_name = "NAME", default_value = "bench")]
    quota: String,
    #[command(flatten)]
    servers: Servers,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// What the quota is to be.
#[derive(Args)]
pub struct Init {
    /// Tokens that clients together may hold.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(0..=AMOUNT_MAX))]
    limit: u64,
    /// How sites agree on moving tokens.
    #[arg(long, default_value = "majority", value_parser = PossibleValuesParser::new(ProtocolKind::NAMES))]
    protocol: String,
    /// What a site puts into a redistribution.
    #[arg(long, default_value = "spare", value_parser = PossibleValuesParser::new(OfferPolicy::NAMES))]
    offer: String,
    /// Who gets what if there is not enough for all.
    #[arg(long, default_value = "maximum-usage", value_parser = PossibleValuesParser::new(Reallocation::NAMES))]
    reallocation: String,
    /// Drop a quota of that name first.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    at: At,
}

/// The load.
#[derive(Args)]
pub struct Run {
    /// What clients ask for: `trace`, as virtual machines were created and deleted in a cloud, each region at another hour of
    /// the day; or shares.
    #[arg(long, value_name = "trace|ACQUIRE:RELEASE", default_value = "trace")]
    mix: Mix,
    /// Connections at work in every region.
    #[arg(long, value_name = "N", default_value_t = 8)]
    clients: usize,
    /// Operations that a client sends together.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pipeline: usize,
    /// Begin so many operations a second over all regions, whatever the sites do, instead of one after the other.
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// How long to measure.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    duration: Duration,
    /// Measure so many operations, however long they take.
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    operations: Option<u64>,
    /// How long to run before measuring.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    warmup: Duration,
    /// Give every operation an id, so that a retry would do nothing twice.
    #[arg(long)]
    ids: bool,
    /// Where all randomness comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    at: At,
}

/// Makes the quota.
pub async fn init(args: &Init) -> Result<ExitCode, Error> {
    let named = [("PROTOCOL", &args.protocol), ("OFFER", &args.offer), ("REALLOCATION", &args.reallocation)];
    let words = named.into_iter().flat_map(|(key, value)| [key.to_owned(), value.clone()]).collect();
    let options = InitOptions { quota: args.at.quota.clone(), limit: args.limit, words, replace: args.replace };
    quota::init(&args.at.servers.redis()?, &options).await?;
    if args.at.json {
        println!("{:#}", serde_json::json!({ "quota": args.at.quota, "limit": args.limit }));
    } else {
        println!("quota {} is made, with a limit of {}", args.at.quota, args.limit);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the load and measures.
pub async fn run(args: &Run) -> Result<ExitCode, Error> {
    let options = RunOptions {
        driver: DriverOptions {
            seed: args.seed,
            clients_per_region: args.clients,
            pace: args.rate.map_or(Pace::Closed, |rate_per_s| Pace::Open { rate_per_s }),
            warmup: args.warmup,
            until: args.operations.map_or(Until::Elapsed(args.duration), Until::Transactions),
        },
        quota: args.at.quota.clone(),
        mix: args.mix,
        pipeline: args.pipeline,
        ids: args.ids,
    };
    let bar = Bar::stoppable();
    let report = quota::run(&args.at.servers.redis()?, &options, &bar).await?;
    bar.clear();
    if args.at.json {
        println!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts the tokens.
pub async fn check(at: &At) -> Result<ExitCode, Error> {
    let report = quota::check(&at.servers.redis()?, &at.quota).await?;
    if at.json {
        println!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
