//! `rhumb chaos`: harm to a running demo, and its undoing.
//!
//! Processes are killed and started by the demo, which owns them. Links are cut and slowed by the sites at both ends, so
//! that a cut survives the restart of one of them.

use super::demo::control::{Action, Order, give};
use super::demo::why_not_ready;
use super::{fail, runtime};
use crate::http;
use crate::running::{self, Running, RunningError, RunningSite};
use clap::{Args as ClapArgs, Subcommand};
use rhumb_api::chaos::{Chaos, Direction};
use rhumb_display::parse_duration;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long a site that was started again may take until it is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Kill sites of the running demo, cut and slow its links, keep sites busy, and undo all that.
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  rhumb chaos kill virginia                          kill -9 of the region's sites
  rhumb chaos restart virginia                       start them again, and wait until they are ready
  rhumb chaos kill virginia.1                        only the site of shard 1
  rhumb chaos cut california singapore               no message passes between the two
  rhumb chaos cut ireland --one-way                  nothing that Ireland sends arrives anywhere
  rhumb chaos slow california oregon --by 200ms      every message takes so much longer, each way
  rhumb chaos heal                                   all links are as they were
  rhumb chaos load virginia --percent 300 --for 60s  three times what it can work for, and each transaction waits 15 ms:
                                                     quorums of databases of protocol quad move away (`rhumb quorum explain`)
  rhumb chaos load virginia --percent 0              no more"
)]
pub struct Args {
    #[command(subcommand)]
    harm: Harm,
    /// The state file of the demo [default: rhumb-demo.json in $XDG_RUNTIME_DIR or the temporary folder].
    #[arg(long, value_name = "FILE", global = true)]
    demo: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Harm {
    /// Kill the processes of a region, or of one of its sites, as `kill -9` does.
    Kill {
        /// The region, or one site of it.
        #[arg(value_name = "REGION[.SHARD]")]
        at: String,
    },
    /// Start killed processes again.
    Restart {
        /// The region, or one site of it.
        #[arg(value_name = "REGION[.SHARD]")]
        at: String,
    },
    /// Drop every message between two regions, or between one and all others.
    Cut {
        #[command(flatten)]
        link: Link,
        /// Only the messages from the first to the second.
        #[arg(long)]
        one_way: bool,
    },
    /// Delay every message between two regions, or between one and all others.
    Slow {
        #[command(flatten)]
        link: Link,
        /// By how much, in each direction; a round trip takes twice as much longer.
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        by: Duration,
        /// Only the messages from the first to the second.
        #[arg(long)]
        one_way: bool,
    },
    /// Keep the sites of a region, or one of them, busy with work for others.
    ///
    /// The load that a site measures for databases of protocol quad is greater by so much, and each transaction that it begins to work
    /// for waits 5 ms for each 100 %, half a second at the most, one after the other.
    Load {
        /// The region, or one site of it.
        #[arg(value_name = "REGION[.SHARD]")]
        at: String,
        /// Percent of what a site can work for; 0 ends it.
        #[arg(long, value_name = "N")]
        percent: u64,
        /// For how long [default: until told otherwise].
        #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
        span: Option<Duration>,
    },
    /// Undo cuts and delays: all of them, those of one region, or those between two.
    Heal {
        /// The region, or one site of it; all if absent.
        #[arg(value_name = "REGION[.SHARD]")]
        from: Option<String>,
        /// The other end; all others if absent.
        #[arg(value_name = "REGION[.SHARD]")]
        to: Option<String>,
    },
}

#[derive(ClapArgs)]
struct Link {
    /// The region, or one site of it.
    #[arg(value_name = "REGION[.SHARD]")]
    from: String,
    /// The other end; all others if absent.
    #[arg(value_name = "REGION[.SHARD]")]
    to: Option<String>,
}

#[derive(Debug, Error)]
enum ChaosError {
    #[error(transparent)]
    Demo(#[from] RunningError),
    #[error("{0}")]
    Refused(String),
    #[error("{at} is dead already; `rhumb chaos restart {at}` starts it again")]
    DeadAlready { at: String },
    #[error("{at} is running already")]
    RunningAlready { at: String },
    #[error("there is no link between {from} and {to}: they are the same")]
    SameEnds { from: String, to: String },
    #[error("both ends of the link between {from} and {to} are dead; `rhumb chaos restart` starts them again")]
    BothDead { from: String, to: String },
    #[error("{site} died while it started; its log is {}", log.display())]
    Died { site: String, log: PathBuf },
    #[error("{site} is not ready after {} s: {reason}", READY_TIMEOUT.as_secs())]
    NotReady { site: String, reason: String },
    #[error(transparent)]
    Http(#[from] http::HttpError),
}

/// Does the harm.
pub fn run(args: &Args) -> ExitCode {
    let path = args.demo.clone().unwrap_or_else(running::default_path);
    let done = runtime().and_then(|runtime| runtime.block_on(harm(&args.harm, &path)).map_err(|error| (error.to_string(), 1)));
    match done {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err((error, code)) => fail(error, code),
    }
}

async fn harm(harm: &Harm, path: &Path) -> Result<String, ChaosError> {
    let running = Running::find(path)?;
    match harm {
        Harm::Kill { at } => kill(&running, at),
        Harm::Restart { at } => restart(&running, path, at).await,
        Harm::Cut { link, one_way } => {
            let cut = |peer: &RunningSite, direction| {
                let (region, shard) = end(peer);
                Some(Chaos::Cut { region, shard, direction })
            };
            let (from, to) = on_links(&running, &link.from, link.to.as_deref(), *one_way, cut).await?;
            Ok(format!("{from} {} {to} is cut", arrow(*one_way)))
        }
        Harm::Slow { link, by, one_way } => {
            let extra_ms = by.as_secs_f64() * 1_000.0;
            let slow = |peer: &RunningSite, direction| {
                let (region, shard) = end(peer);
                // A site can delay only what it sends.
                (direction != Direction::In).then_some(Chaos::Slow { region, shard, extra_ms })
            };
            let (from, to) = on_links(&running, &link.from, link.to.as_deref(), *one_way, slow).await?;
            Ok(format!("{from} {} {to} is slower by {extra_ms} ms each way", arrow(*one_way)))
        }
        Harm::Load { at, percent, span } => load(&running, at, *percent, *span).await,
        Harm::Heal { from: None, .. } => {
            for site in running.sites.iter().filter(|site| site.pid.is_some()) {
                tell(site, &Chaos::Heal { region: None, shard: None }).await?;
            }
            Ok("all links are healed".to_owned())
        }
        Harm::Heal { from: Some(from), to } => {
            let heal = |peer: &RunningSite, _| {
                let (region, shard) = end(peer);
                Some(Chaos::Heal { region, shard })
            };
            let (from, to) = on_links(&running, from, to.as_deref(), false, heal).await?;
            Ok(format!("{from} {} {to} is healed", arrow(false)))
        }
    }
}

async fn load(running: &Running, at: &str, percent: u64, span: Option<Duration>) -> Result<String, ChaosError> {
    let alive: Vec<_> = running.select(at)?.into_iter().filter(|site| site.pid.is_some()).collect();
    if alive.is_empty() {
        return Err(ChaosError::DeadAlready { at: at.to_owned() });
    }
    let for_s = span.map(|span| span.as_secs_f64());
    for site in alive {
        tell(site, &Chaos::Load { percent, for_s }).await?;
    }
    let until = for_s.map_or(String::new(), |seconds| format!(" for {seconds} s"));
    Ok(if percent == 0 { format!("{at} is loaded no more") } else { format!("{at} is loaded with {percent} %{until}") })
}

fn arrow(one_way: bool) -> &'static str {
    if one_way { "→" } else { "↔" }
}

fn end(site: &RunningSite) -> (Option<String>, Option<u16>) {
    (Some(site.region.clone()), Some(site.shard))
}

fn order(running: &Running, site: &RunningSite, action: Action) -> Result<(), ChaosError> {
    give(running, &Order { action, region: site.region.clone(), shard: site.shard }).map_err(ChaosError::Refused)
}

fn kill(running: &Running, at: &str) -> Result<String, ChaosError> {
    let alive: Vec<_> = running.select(at)?.into_iter().filter(|site| site.pid.is_some()).collect();
    if alive.is_empty() {
        return Err(ChaosError::DeadAlready { at: at.to_owned() });
    }
    alive.iter().try_for_each(|site| order(running, site, Action::Kill))?;
    Ok(format!("{at} is dead; `rhumb chaos restart {at}` starts it again"))
}

async fn restart(running: &Running, path: &Path, at: &str) -> Result<String, ChaosError> {
    let begun = Instant::now();
    let dead: Vec<_> = running.select(at)?.into_iter().filter(|site| site.pid.is_none()).collect();
    if dead.is_empty() {
        return Err(ChaosError::RunningAlready { at: at.to_owned() });
    }
    dead.iter().try_for_each(|site| order(running, site, Action::Restart))?;
    for site in dead {
        while let Some(reason) = why_not_ready(&site.http).await {
            let now = Running::find(path)?;
            if now.sites.iter().any(|other| (&other.region, other.shard, other.pid) == (&site.region, site.shard, None)) {
                return Err(ChaosError::Died { site: site.to_string(), log: site.log.clone() });
            }
            if begun.elapsed() > READY_TIMEOUT {
                return Err(ChaosError::NotReady { site: site.to_string(), reason });
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
    Ok(format!("{at} is back, ready after {:.1} s", begun.elapsed().as_secs_f64()))
}

/// Does something to every link between two places, at both its ends as far as they live. `what` says what a site is to
/// do to its link with a peer, given the direction of the harm as that site sees it. Returns the names of both places.
async fn on_links(
    running: &Running,
    from: &str,
    to: Option<&str>,
    one_way: bool,
    what: impl Fn(&RunningSite, Direction) -> Option<Chaos>,
) -> Result<(String, String), ChaosError> {
    let near = running.select(from)?;
    let far: Vec<&RunningSite> = match to {
        Some(to) => running.select(to)?,
        None => running.sites.iter().filter(|site| !near.contains(site)).collect(),
    };
    let (from, to) = (from.to_owned(), to.unwrap_or("all others").to_owned());
    if far.iter().any(|site| near.contains(site)) {
        return Err(ChaosError::SameEnds { from, to });
    }
    let (at_near, at_far) = if one_way { (Direction::Out, Direction::In) } else { (Direction::Both, Direction::Both) };
    let pairs = near.iter().flat_map(|near| far.iter().map(move |far| (near, far)));
    let told = pairs.flat_map(|(near, far)| [(near, far, at_near), (far, near, at_far)]).filter(|(site, _, _)| site.pid.is_some());
    let mut changed = false;
    for (site, peer, direction) in told {
        if let Some(chaos) = what(peer, direction) {
            tell(site, &chaos).await?;
            changed = true;
        }
    }
    if changed { Ok((from, to)) } else { Err(ChaosError::BothDead { from, to }) }
}

async fn tell(site: &RunningSite, chaos: &Chaos) -> Result<(), ChaosError> {
    let answer = http::post(&site.http, "/chaos", chaos).await?;
    if answer.status == 200 { Ok(()) } else { Err(ChaosError::Refused(format!("{site} refuses: {}", answer.reason()))) }
}
