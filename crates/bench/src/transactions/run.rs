//! Runs a workload of transactions, and reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use rhumb_core::Rng;

use super::client::TransactionClient;
use super::places::{Place, group_by_region};
use super::violations::Violations;
use super::workload::Transactions;
use crate::client::postgres::{Endpoint, RetryPolicy, Session};
use crate::driver::{self, ClientSlot, DriverOptions, Results, Workload};
use crate::error::BenchError;
use crate::progress::Progress;
use crate::report::{Conditions, KindReport, Meter, RegionReport, Report, StatementReport};

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// How much load, how, and for how long.
    pub driver: DriverOptions,
    /// What is tried again, and how often.
    pub retry: RetryPolicy,
    /// Settings of every session, as in `SET name = value`.
    pub settings: BTreeMap<String, String>,
}

/// Runs `transactions` against `endpoints` and reports.
pub async fn run<T: Transactions>(
    transactions: T,
    endpoints: &[Endpoint],
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<Report, BenchError> {
    options.driver.check()?;
    let places = group_by_region(endpoints, &options.settings).await?;
    let run = Run { transactions, places, options, violations: Arc::default() };
    let results = driver::run(&run, &options.driver, progress).await?;
    Ok(run.report(&results))
}

/// Transactions on their way to the servers.
struct Run<'a, T> {
    transactions: T,
    places: Vec<Place>,
    options: &'a RunOptions,
    violations: Arc<Violations>,
}

impl<T: Transactions> Workload for Run<'_, T> {
    type Client = TransactionClient<T::Terminal>;

    fn regions(&self) -> usize {
        self.places.len()
    }

    fn kinds(&self) -> usize {
        self.transactions.kinds().len()
    }

    async fn client(&self, slot: ClientSlot, mut rng: Rng) -> Result<TransactionClient<T::Terminal>, BenchError> {
        let endpoints = &self.places[slot.region].endpoints;
        Ok(TransactionClient {
            workload: self.transactions.name(),
            retry: self.options.retry,
            violations: self.violations.clone(),
            session: Session::connect(&endpoints[slot.index % endpoints.len()], &self.options.settings).await?,
            terminal: self.transactions.terminal(slot, rng.fork()),
            rng,
            refusals: 0,
        })
    }
}

impl<T: Transactions> Run<'_, T> {
    fn report(&self, results: &Results<Meter>) -> Report {
        let (driver, measured_s) = (&self.options.driver, results.measured_s);
        let clients = driver.clients_per_region;
        let regions: Vec<RegionReport> = self
            .places
            .iter()
            .zip(&results.regions)
            .map(|(place, measured)| {
                let (region, floor_ms, overdue) = (place.name.clone(), place.floor_ms, measured.overdue);
                RegionReport { region, clients, floor_ms, overdue, ..RegionReport::default() }.filled(&measured.total(), measured_s)
            })
            .collect();
        let total = results.total();
        let overdue = regions.iter().map(|region| region.overdue).sum();
        let all = RegionReport { region: "all".to_owned(), clients: clients * regions.len(), overdue, ..RegionReport::default() };
        let finished = total.committed + total.rolled_back;
        let kinds = self.transactions.kinds().iter().enumerate();
        Report {
            workload: self.transactions.title(),
            conditions: Conditions::new(driver.pace.describe(clients), driver, measured_s),
            total: all.filled(&total, measured_s),
            regions,
            kinds: kinds.map(|(index, kind)| KindReport::new(kind, &results.kind(index), finished, measured_s)).collect(),
            statements: self.statements(results),
            predictions: Vec::new(),
            warnings: Vec::new(),
            violations: self.violations.take(),
        }
    }

    /// Every statement in every region, if the workload says what they ought to cost.
    fn statements(&self, results: &Results<Meter>) -> Vec<StatementReport> {
        let mut statements = Vec::new();
        for (index, (kind, yardstick)) in self.transactions.kinds().iter().zip(self.transactions.yardsticks()).enumerate() {
            for (place, measured) in self.places.iter().zip(&results.regions) {
                statements.push(StatementReport::new(kind, &place.name, *yardstick, place.floor_ms, &measured.meters[index]));
            }
        }
        statements
    }
}
