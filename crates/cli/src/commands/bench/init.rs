//! `rhumb bench init`: the tables of a workload, created and filled.

use super::error::Error;
use super::progress::Bar;
use super::quota;
use super::target::Target;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use rhumb_bench::Load;
use rhumb_bench::tables::{InitOptions, LoadMethod};
use rhumb_bench::workloads::{bank, statements, tpcc, ycsb};
use std::process::ExitCode;

/// Create and fill the tables of a workload, or make its quota.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb bench init ycsb --demo --records 100000
  rhumb bench init tpcc --demo --warehouses 5 --scale 0.01    a hundredth of each warehouse's items and customers
  rhumb bench init bank --demo --replace
  rhumb bench init quota --demo --limit 5000 --protocol any")]
pub struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// One table of records of ten fields.
    Ycsb {
        /// Records.
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        records: u64,
        /// Where the contents come from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        how: How,
    },
    /// The nine tables of an order-entry business.
    Tpcc {
        /// Warehouses, of about 100 MB each at full scale.
        #[arg(long, value_name = "N", default_value_t = 5)]
        warehouses: u32,
        /// The share of a warehouse's items and customers to load; below 1 the database does not conform.
        #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
        scale: f64,
        /// Where the contents come from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        how: How,
    },
    /// Accounts between which money is moved.
    Bank {
        /// Accounts.
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        accounts: u32,
        /// What each holds at first.
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        balance: u32,
        #[command(flatten)]
        how: How,
    },
    /// A table for single statements.
    Statements {
        /// Rows that are only read.
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        rows: u32,
        #[command(flatten)]
        how: How,
    },
    /// A quota.
    Quota(quota::Init),
}

#[derive(ClapArgs)]
struct How {
    /// Drop the workload's tables first.
    #[arg(long)]
    replace: bool,
    /// How rows are sent.
    #[arg(long, value_enum, default_value_t = Method::Copy)]
    method: Method,
    /// Batches in flight at a time, over all servers.
    #[arg(long, value_name = "N", default_value_t = 8)]
    loaders: usize,
    #[command(flatten)]
    target: Target,
}

#[derive(Clone, Copy, ValueEnum)]
enum Method {
    /// COPY FROM STDIN.
    Copy,
    /// INSERT of many rows.
    Insert,
}

/// Loads.
pub async fn run(args: &Args) -> Result<ExitCode, Error> {
    let (load, how) = match &args.workload {
        Workload::Ycsb { records, seed, how } => (Load::Ycsb(ycsb::Load { records: *records, seed: *seed }), how),
        Workload::Tpcc { warehouses, scale, seed, how } => {
            (Load::Tpcc(tpcc::Load { scale: tpcc::Scale::shrunk(*warehouses, *scale)?, seed: *seed }), how)
        }
        Workload::Bank { accounts, balance, how } => (Load::Bank(bank::Load { accounts: *accounts, balance: *balance }), how),
        Workload::Statements { rows, how } => (Load::Statements(statements::Load { rows: *rows }), how),
        Workload::Quota(wanted) => return quota::init(wanted).await,
    };
    let method = match how.method {
        Method::Copy => LoadMethod::Copy,
        Method::Insert => LoadMethod::Insert,
    };
    let options = InitOptions { replace: how.replace, method, loaders: how.loaders, settings: how.target.settings() };
    let bar = Bar::new();
    let report = rhumb_bench::init(&load, &how.target.endpoints()?, &options, &bar).await?;
    bar.clear();
    if how.target.json {
        println!("{}", serde_json::to_string_pretty(&report).expect("a report holds nothing that JSON cannot"));
    } else {
        println!("{} · loaded in {:.1} s\n", report.workload, report.elapsed_s);
        let width = report.rows.keys().map(String::len).max().unwrap_or(0);
        for (table, rows) in &report.rows {
            println!("{table:<width$}  {rows:>10} rows");
        }
    }
    Ok(ExitCode::SUCCESS)
}
