//! The three stages of a benchmark of SQL: load a workload, run it, check what it left behind.

use std::collections::BTreeMap;

use crate::client::postgres::{Endpoint, Session};
use crate::error::BenchError;
use crate::progress::{Progress, Silent};
use crate::report::Report;
use crate::tables::{self, CheckReport, InitOptions, LoadReport};
use crate::transactions::{self, RunOptions};
use crate::workloads::{bank, statements, tpcc, ycsb};

/// A workload by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Multi-record transactions on one table.
    Ycsb,
    /// An order-entry business of nine tables.
    Tpcc,
    /// Transfers between accounts.
    Bank,
    /// Single statements.
    Statements,
}

/// What to load.
#[derive(Clone, Debug)]
pub enum Load {
    /// See [`ycsb`].
    Ycsb(ycsb::Load),
    /// See [`tpcc`].
    Tpcc(tpcc::Load),
    /// See [`bank`].
    Bank(bank::Load),
    /// See [`statements`].
    Statements(statements::Load),
}

/// What to run.
#[derive(Clone, Debug)]
pub enum Run {
    /// See [`ycsb`].
    Ycsb(ycsb::Options),
    /// See [`tpcc`].
    Tpcc(tpcc::Options),
    /// See [`bank`].
    Bank(bank::Options),
    /// See [`statements`].
    Statements,
}

/// Creates and fills the tables of a workload.
pub async fn init(load: &Load, endpoints: &[Endpoint], options: &InitOptions, progress: &dyn Progress) -> Result<LoadReport, BenchError> {
    let dataset = match load {
        Load::Ycsb(load) => load.dataset()?,
        Load::Tpcc(load) => load.dataset()?,
        Load::Bank(load) => load.dataset()?,
        Load::Statements(load) => load.dataset()?,
    };
    tables::load(dataset, endpoints, options, progress).await
}

/// Runs a loaded workload and reports what was measured.
pub async fn run(run: &Run, endpoints: &[Endpoint], options: &RunOptions, progress: &dyn Progress) -> Result<Report, BenchError> {
    let mut session = first_session(endpoints, &options.settings).await?;
    match run {
        Run::Ycsb(settings) => transactions::run(ycsb::Ycsb::open(&mut session, settings).await?, endpoints, options, progress).await,
        Run::Tpcc(settings) => {
            transactions::run(tpcc::Tpcc::open(&mut session, settings, options.driver.seed).await?, endpoints, options, progress).await
        }
        Run::Statements => transactions::run(statements::Statements::open(&mut session).await?, endpoints, options, progress).await,
        Run::Bank(settings) => {
            let mut report = transactions::run(bank::Bank::open(&mut session, settings).await?, endpoints, options, progress).await?;
            // A server that is down by now must not cost the reader what was measured before.
            match bank::check(&mut session, &Silent).await {
                Ok(after) => report.violations.extend(after.offences()),
                Err(error) => report.warnings.push(format!("the accounts could not be checked after the run: {error}")),
            }
            Ok(report)
        }
    }
}

/// Checks the consistency conditions of a workload. Run it when no transactions are in flight: conditions are evaluated one by one.
pub async fn check(
    kind: Kind,
    endpoints: &[Endpoint],
    settings: &BTreeMap<String, String>,
    progress: &dyn Progress,
) -> Result<CheckReport, BenchError> {
    let mut session = first_session(endpoints, settings).await?;
    match kind {
        Kind::Ycsb => ycsb::check(&mut session, progress).await,
        Kind::Tpcc => tpcc::check(&mut session, progress).await,
        Kind::Bank => bank::check(&mut session, progress).await,
        Kind::Statements => statements::check(&mut session, progress).await,
    }
}

async fn first_session(endpoints: &[Endpoint], settings: &BTreeMap<String, String>) -> Result<Session, BenchError> {
    let first = endpoints.first().ok_or_else(|| BenchError::Options("no address was given: pass --url postgres://…".to_owned()))?;
    Session::connect(first, settings).await
}
