//! `rhumb demo`: a whole cluster on this machine, one process per site, over an emulated wide-area network.
//!
//! ```text
//!   network ▶ folder (ports, a configuration per site) ▶ cluster: start ▶ ready ▶ banner, ready file, state file
//!                                                          ▲ orders of `rhumb chaos` by control
//!   Ctrl-C ▶ all sites stop ▶ a temporary folder goes
//! ```

mod banner;
mod cluster;
pub mod control;
mod error;
mod folder;
mod network;
mod ports;
mod ready_file;
mod secure;
mod site;
mod stop;

pub use cluster::why_not_ready;
pub use folder::plural;

use super::{fail, runtime};
use crate::running::{self, Running};
use banner::Banner;
use clap::Args as ClapArgs;
use cluster::{Cluster, Waited};
use error::{DemoError, file};
use folder::Prepared;
use indicatif::{ProgressBar, ProgressStyle};
use network::Network;
use rhumb_commit::placement;
use rhumb_config::Placement;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use stop::Stop;
use tempfile::TempDir;

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Start a cluster of several regions on this machine, with the round trips of a real wide-area network.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb demo                                  five regions from California to Singapore
  rhumb demo --wan none --regions 3           three regions without delays
  rhumb demo --wan aws_32 --regions 7         seven regions of AWS
  rhumb demo --wan rtt.csv --data ~/cluster   round trips of your own; the data stays
  rhumb demo --cluster cluster.toml           what `rhumb plan -o cluster.toml` chose
  rhumb demo --active california,oregon,virginia --passive ireland
                                              three regions vote, Ireland holds a copy, Singapore reads elsewhere
  rhumb demo --sites-per-region 2             two shards, each at a site of its own in every region
  rhumb demo --secure                         certificates and TLS on every port
  rhumb demo --ports-from 20000 --state other.json
                                              another demo beside the first

Shipped profiles: paper_replicated_commit_5, paper_samya_5, paper_gplacer_9, aws_32, azure_48, gcp_39, aws_azure_42.
While it runs, `rhumb chaos` kills sites and cuts links, `rhumb status` looks at them, and `rhumb bench` puts them under
load; `rhumb quota` and any client of Redis keep quotas. Ports are 26257 and on for PostgreSQL, 6380 and on for clients of
Redis and 8080 and on for HTTP, or the next that are free.")]
pub struct Args {
    /// The wide-area network: a shipped profile, `none`, or a CSV file of round-trip times in milliseconds.
    #[arg(long, value_name = "PROFILE|none|FILE", default_value = "paper_replicated_commit_5")]
    wan: String,
    /// Only the first N regions; with `--wan none` as many as this [default there: 5].
    #[arg(long, value_name = "N")]
    regions: Option<usize>,
    /// Sites in each region, which is the number of shards.
    #[arg(long, value_name = "N", default_value_t = 1)]
    sites_per_region: u16,
    /// The regions, the wide-area network, and ports, if these are free, of a file such as `rhumb plan -o` writes.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["wan", "regions", "sites_per_region", "active"])]
    cluster: Option<PathBuf>,
    /// The regions that hold a copy of all rows and vote [default: all of them].
    #[arg(long, value_name = "REGION,…", value_delimiter = ',')]
    active: Vec<String>,
    /// Regions that hold a copy and do not vote.
    #[arg(long, value_name = "REGION,…", value_delimiter = ',', requires = "active")]
    passive: Vec<String>,
    /// Encrypt everything, with certificates by a CA of this cluster, as clusters of several machines do.
    #[arg(long)]
    secure: bool,
    /// Keep data, configurations and logs in this folder, and go on with what is there. Otherwise they go at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Look for free ports from this one on, so that two demos stay out of each other's way; a folder's own are kept
    /// [default: the documented ones and on].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1_024..=i64::from(ports::LAST)))]
    ports_from: Option<u16>,
    /// Once the cluster serves, write {"regions":[{"name","pg","resp","http"}…]} to this file.
    #[arg(long, value_name = "PATH")]
    ready_file: Option<PathBuf>,
    /// The state file by which other commands find this demo [default: rhumb-demo.json in $XDG_RUNTIME_DIR or the
    /// temporary folder].
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

/// Runs the demo until it is told to stop.
pub fn run(args: &Args) -> ExitCode {
    match runtime().and_then(|runtime| runtime.block_on(demo(args)).map_err(|error| (error.to_string(), error.exit_code()))) {
        Ok(()) => ExitCode::SUCCESS,
        Err((error, code)) => fail(error, code),
    }
}

async fn demo(args: &Args) -> Result<(), DemoError> {
    let begun = Instant::now();
    let mut stop = Stop::listen()?;
    let network = match &args.cluster {
        Some(path) => Network::of_cluster(path)?,
        None => Network::choose(&args.wan, args.regions, args.sites_per_region)?,
    };
    let state = args.state.clone().unwrap_or_else(running::default_path);
    if let Ok(running) = Running::find(&state) {
        return Err(DemoError::AlreadyRunning { pid: running.pid });
    }
    if let Some(path) = &args.ready_file {
        ready_file::clear(path).map_err(file("cannot remove the old ready file", path))?;
    }
    let data = Data::open(args.data.as_deref())?;
    let asked = (!args.active.is_empty()).then(|| Placement {
        active: args.active.clone(),
        passive: args.passive.clone(),
        coordinators: BTreeMap::new(),
    });
    let placement = asked.or_else(|| network.placement.clone());
    let Prepared { sites, placement } = folder::prepare(data.path(), &network, placement, args.ports_from, args.secure)?;
    let data_folder = data.path().canonicalize().map_err(file("cannot find the folder", data.path()))?;
    let control = state.with_extension("sock");
    let mut orders = control::listen(&control).map_err(file("cannot listen at", &control))?;
    let _left_behind = LeftBehind([Some(state.clone()), Some(control.clone()), args.ready_file.clone()].into_iter().flatten().collect());
    let mut cluster = Cluster::new(sites, (state, control), data_folder, args.secure)?;
    let outcome = live(args, (&network, &placement), &mut cluster, &mut stop, &mut orders, begun).await;
    cluster.stop(&mut stop).await;
    data.close()?;
    outcome
}

/// From the start of the processes to the wish to stop.
async fn live(
    args: &Args,
    (network, placement): (&Network, &placement::Placement),
    cluster: &mut Cluster,
    stop: &mut Stop,
    orders: &mut tokio::sync::mpsc::Receiver<control::Received>,
    begun: Instant,
) -> Result<(), DemoError> {
    cluster.start()?;
    let style = ProgressStyle::with_template("{spinner} starting {bar:20} {pos}/{len} sites ready  {wide_msg}").expect("well-formed");
    let bar = ProgressBar::new(cluster.plans().count() as u64).with_style(style);
    bar.enable_steady_tick(TICK);
    let waited = cluster.ready(stop, &bar).await;
    bar.finish_and_clear();
    if let Waited::Stopped = waited? {
        return Ok(());
    }
    cluster.write_state()?;
    if let Some(path) = &args.ready_file {
        ready_file::write(path, cluster.plans()).map_err(file("cannot write the ready file", path))?;
    }
    let data = cluster.data().to_owned();
    let banner = Banner {
        network,
        placement,
        sites: cluster.plans().collect(),
        took: begun.elapsed(),
        data: &data,
        kept: args.data.is_some(),
        state: args.state.as_deref(),
    };
    say(&banner.text());
    cluster.supervise(stop, orders).await?;
    say("stopping");
    Ok(())
}

/// Tells the user. Whether anybody listens is not the demo's business.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Where a demo keeps its data.
enum Data {
    Kept(PathBuf),
    Temporary(TempDir),
}

impl Data {
    fn open(kept: Option<&Path>) -> Result<Data, DemoError> {
        match kept {
            Some(folder) => Ok(Data::Kept(folder.to_owned())),
            None => {
                let made = tempfile::Builder::new().prefix("rhumb-demo-").tempdir();
                made.map(Data::Temporary).map_err(file("cannot make a folder in", std::env::temp_dir()))
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            Data::Kept(folder) => folder,
            Data::Temporary(folder) => folder.path(),
        }
    }

    fn close(self) -> Result<(), DemoError> {
        match self {
            Data::Kept(_) => Ok(()),
            Data::Temporary(folder) => {
                let path = folder.path().to_owned();
                folder.close().map_err(file("cannot remove", path))
            }
        }
    }
}

/// Files that go with the demo, however it ends.
struct LeftBehind(Vec<PathBuf>);

impl Drop for LeftBehind {
    fn drop(&mut self) {
        for path in &self.0 {
            // One that was never written is gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}
