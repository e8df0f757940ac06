//! `rhumb init`: the first site of a cluster of several machines.

use super::place::Options;
use super::{fail, runtime, start};
use clap::Args as ClapArgs;
use rhumb_config::Config;
use rhumb_node::forming::{First, FormingError, Founding, Invitation};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How long the tokens hold that are printed here.
const TOKENS_HOLD: Duration = Duration::from_hours(24);

/// Make a cluster: its CA, its administrator and its first site, which waits for the others and then serves.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb init --region california --listen 10.0.0.1
                                   a cluster of one region
  rhumb init --regions california,virginia,oregon --region california --listen db1.example.com --cluster shop
                                   the first of three; it prints what to run on the machines of the others, and keeps their
                                   tokens in DIR/tokens

All sites of a cluster join before it opens: regions stay what they were then, since majorities are counted among them. Should it be
interrupted before, run the same command again; once `site.toml` is there, `rhumb start --config DIR/site.toml` goes on.
Ports are 26257 for PostgreSQL, 6380 for clients of Redis, 8080 for HTTP and 27257 for the other sites, all encrypted.")]
pub struct Args {
    #[command(flatten)]
    place: Options,
    /// The name of the cluster.
    #[arg(long, value_name = "NAME", default_value = "rhumb")]
    cluster: String,
    /// All regions that the cluster is to have, in order [default: the one of this site].
    #[arg(long, value_name = "REGION,…", value_delimiter = ',')]
    regions: Vec<String>,
    /// Sites in each region, which is the number of shards.
    #[arg(long, value_name = "N", default_value_t = 1)]
    sites_per_region: u16,
}

/// Makes it, lets the others in, and runs the site until it is told to stop.
pub fn run(args: &Args) -> ExitCode {
    start::log();
    let place = match args.place.place() {
        Ok(place) => place,
        Err(error) => return fail(error, 2),
    };
    let regions = if args.regions.is_empty() { vec![place.region.clone()] } else { args.regions.clone() };
    let founding = Founding { cluster: args.cluster.clone(), regions, sites_per_region: args.sites_per_region };
    let formed = First::found(place, &founding).and_then(|first| {
        announce(&first)?;
        let runtime = runtime().map_err(|(error, _)| FormingError::Refused(error))?;
        runtime.block_on(first.form(|name| println!("{name} has joined")))
    });
    go_on(formed, args.place.dir.clone())
}

/// Starts the site whose configuration was written.
pub fn go_on(formed: Result<PathBuf, FormingError>, dir: PathBuf) -> ExitCode {
    match formed.and_then(|config| Ok(Config::load(&config)?)) {
        Ok(setup) => {
            println!("all sites have joined; try `rhumb connect --dir {0}`, and later `rhumb start --config {0}/site.toml`", dir.display());
            start::serve(setup)
        }
        Err(error) => {
            let code = error.exit_code();
            fail(error, code)
        }
    }
}

/// Says what is to be run on the machines of the other sites. Tokens are shown to a person alone: what goes elsewhere may be kept in a log.
fn announce(first: &First) -> Result<(), FormingError> {
    for Invitation { site, token, file } in first.tokens(TOKENS_HOLD)? {
        let (region, shard) = site.rsplit_once('-').unwrap_or((&site, "0"));
        let shard = if shard == "0" { String::new() } else { format!(" --shard {shard}") };
        println!("on the machine of {site}, within {} hours:", TOKENS_HOLD.as_secs() / 3_600);
        if io::stdout().is_terminal() {
            println!("  rhumb join {token} --region {region}{shard} --listen HOST");
        } else {
            println!("  rhumb join - --region {region}{shard} --listen HOST < TOKEN, which is in {}", file.display());
        }
    }
    Ok(())
}
