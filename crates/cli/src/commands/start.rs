//! `rhumb start`: one site of a cluster, in the foreground.

use super::fail;
use clap::Args as ClapArgs;
use rhumb_config::{Cluster, Config, Setup};
use rhumb_node::site::descriptors;
use rustix::process::{Signal, getpid, kill_process};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Start one site of a cluster.
#[derive(ClapArgs)]
#[command(
    after_help = "Examples:\n  rhumb start --config /etc/rhumb/california-0.toml\n  rhumb start --config cluster.toml --region virginia\n  RHUMB_LOG=debug rhumb start --config site.toml\n\nStops gracefully on Ctrl-C or SIGTERM. docs/configuration.md describes the file."
)]
pub struct Args {
    /// The configuration of the site, a TOML file; with --region, that of a whole cluster.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The region of the site, if the file is that of a whole cluster.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// The shard of the site [default: 0].
    #[arg(long, value_name = "N", requires = "region")]
    shard: Option<u16>,
    /// Stop when standard input ends, which it does with the process that started this one.
    #[arg(long, hide = true)]
    exit_with_stdin: bool,
}

/// Runs the site until it is told to stop.
pub fn run(args: &Args) -> ExitCode {
    log();
    if args.exit_with_stdin {
        std::thread::spawn(stop_with_stdin);
    }
    let setup = match &args.region {
        Some(region) => Cluster::load_site(&args.config, region, args.shard.unwrap_or(0)),
        None => Config::load(&args.config),
    };
    match setup {
        Ok(setup) => serve(setup),
        Err(error) => fail(error, 2),
    }
}

/// Has the log of this process go to standard error.
pub fn log() {
    let filter = EnvFilter::try_from_env("RHUMB_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// Runs the site that `setup` describes until it is told to stop.
pub fn serve(setup: Setup) -> ExitCode {
    if let Err(error) = descriptors::secure(&setup, rhumb_server::clients_max()) {
        return fail(error, 1);
    }
    match rhumb_server::run(setup) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = error.exit_code();
            fail(error, code)
        }
    }
}

/// Asks this process to stop, as SIGTERM does, once its standard input has ended.
fn stop_with_stdin() {
    // An input that cannot be read has ended too.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    if let Err(error) = kill_process(getpid(), Signal::TERM) {
        tracing::error!(%error, "standard input ended, but this process cannot be told to stop");
    }
}
