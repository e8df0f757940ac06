//! `rhumb bench check`: whether what a workload left behind is consistent.

use super::error::Error;
use super::progress::Bar;
use super::target::Target;
use clap::{Args as ClapArgs, ValueEnum};
use rhumb_lab::bench::{self, Kind};
use std::process::ExitCode;

/// Check the consistency conditions of a workload, once nothing runs any more.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb bench check tpcc --demo
  rhumb bench check bank --ready-file ready.json --json

Exit code 0: all conditions hold; 1: one does not, or could not be checked.")]
pub struct Args {
    /// The workload.
    workload: Workload,
    #[command(flatten)]
    target: Target,
}

#[derive(Clone, Copy, ValueEnum)]
enum Workload {
    /// No record that was loaded is missing.
    Ycsb,
    /// The conditions of clause 3.3.2.
    Tpcc,
    /// The sum of all balances.
    Bank,
    /// Loaded rows, and transactions of several rows.
    Statements,
}

/// Checks.
pub async fn run(args: &Args) -> Result<ExitCode, Error> {
    let kind = match args.workload {
        Workload::Ycsb => Kind::Ycsb,
        Workload::Tpcc => Kind::Tpcc,
        Workload::Bank => Kind::Bank,
        Workload::Statements => Kind::Statements,
    };
    let bar = Bar::new();
    let report = bench::check(kind, &args.target.endpoints()?, &args.target.settings(), &bar).await?;
    bar.clear();
    if args.target.json {
        println!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
