//! `rhumb bench check`: whether what a workload left behind is consistent.

use super::error::Error;
use super::progress::Bar;
use super::quota;
use super::target::Target;
use clap::{Args as ClapArgs, Subcommand};
use rhumb_bench::Kind;
use std::process::ExitCode;

/// Check the consistency conditions of a workload, once nothing runs any more.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb bench check tpcc --demo
  rhumb bench check bank --ready-file ready.json --json
  rhumb bench check quota --demo

Exit code 0: all conditions hold; 1: one does not, or could not be checked.")]
pub struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// No record that was loaded is missing.
    Ycsb(Target),
    /// The conditions of clause 3.3.2.
    Tpcc(Target),
    /// The sum of all balances.
    Bank(Target),
    /// Loaded rows, and transactions of several rows.
    Statements(Target),
    /// The sum of all tokens, at one moment.
    Quota(quota::At),
}

/// Checks.
pub async fn run(args: &Args) -> Result<ExitCode, Error> {
    let (kind, target) = match &args.workload {
        Workload::Ycsb(target) => (Kind::Ycsb, target),
        Workload::Tpcc(target) => (Kind::Tpcc, target),
        Workload::Bank(target) => (Kind::Bank, target),
        Workload::Statements(target) => (Kind::Statements, target),
        Workload::Quota(at) => return quota::check(at).await,
    };
    let bar = Bar::new();
    let report = rhumb_bench::check(kind, &target.endpoints()?, &target.settings(), &bar).await?;
    bar.clear();
    if target.json {
        println!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
