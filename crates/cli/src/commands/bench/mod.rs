//! `rhumb bench`: loads a workload, runs it against the physical floor, checks what it left behind.

mod check;
mod error;
mod init;
mod progress;
mod quota;
mod run;
mod target;

use super::fail;
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

/// Put a cluster under load and measure it: YCSB, TPC-C, transfers between bank accounts, single statements, and quotas.
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  rhumb bench init bank --demo                             load into the running demo
  rhumb bench run bank --demo --duration 60s               8 clients in every region for a minute
  rhumb bench check bank --demo                            is all the money still there?
  rhumb bench init tpcc --demo --warehouses 5 --scale 0.01
  rhumb bench run tpcc --demo --clients 4 --json > tpcc.json
  rhumb bench init quota --demo --limit 5000 && rhumb bench quota --demo --rate 5000
  rhumb bench run ycsb --url oregon=postgres://rhumb@127.0.0.1:26258/rhumb --rate 500

Every latency is shown beside the floor of its region: the round trip to the nearest majority of regions."
)]
pub struct Args {
    #[command(subcommand)]
    stage: Stage,
}

#[derive(Subcommand)]
enum Stage {
    Init(init::Args),
    Run(run::Args),
    Check(check::Args),
    /// The same as `run quota`.
    Quota(quota::Run),
}

/// Runs a stage of a benchmark.
pub fn run(args: &Args) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(format!("the system gives no event loop: {error}"), 1),
    };
    let outcome = runtime.block_on(async {
        match &args.stage {
            Stage::Init(args) => init::run(args).await,
            Stage::Run(args) => run::run(args).await,
            Stage::Check(args) => check::run(args).await,
            Stage::Quota(load) => quota::run(load).await,
        }
    });
    // What a load or a run left behind in the runtime is of no more use.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            let code = error.exit_code();
            fail(error, code)
        }
    }
}
