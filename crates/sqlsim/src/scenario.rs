//! The scenario: clients in every region run random statements on a few tables, some of which come and go with their indexes, while
//! everything goes wrong that a [`FaultPlan`] can draw; then the network heals and progress is demanded; then the checkers judge.
//!
//! ```text
//!   tables made ──── faults, 8 s ──── healed, clients go on, 8 s ──── quiet, 10 s ──── final audits of every site, checks
//! ```
//!
//! The seed also decides the shape: three regions or five, one site in each or two, how long a sync takes, whether versions are collected
//! soon, a storm of all kinds of faults or many short crashes, whether rows are large now and then.

use crate::cluster::Cluster;
use crate::link::Dialer;
use crate::protocol::Protocol;
use crate::shape::Shape;
use crate::shared::Shared;
use crate::work::{self, Client, audit};
use rhumb_core::{Rng, Rules, SiteId, Span, Time};
use rhumb_sim::checkers::{bounded_clocks, no_lost_write, no_phantom, progress, strict_serializability};
use rhumb_sim::history::TxnNo;
use rhumb_sim::{Config, FaultPlan, FaultRates, Report, Scenario, SimError, World};
use rhumb_sql::planted::Planted;
use std::marker::PhantomData;
use std::thread;

/// The stack that statements run on: what SQL wants to have left, and some more.
const STACK_BYTES: usize = 320 << 20;
/// Clients of a site.
const CLIENTS: u32 = 2;
const SETUP_MAX: Time = Time::from_micros(60_000_000);
const FAULTS: Span = Span::from_secs(8);
const CLIENTS_AFTER: Span = Span::from_secs(8);
const QUIET: Span = Span::from_secs(10);
/// The final audits, one after another, end within so long for each site: some 25 statements, of two trips at the most, and a second try.
const FINALS_OF_SITE_MAX: Span = Span::from_secs(15);
/// After the heal, this long until commits must go through.
const GRACE: Span = Span::from_secs(4);

/// Statements of SQL under faults, in a database of the protocol of `A`.
#[derive(Debug)]
pub struct Sql<A> {
    /// The rules that SQL goes by.
    rules: Rules<Planted>,
    /// Nothing goes wrong.
    calm: bool,
    protocol: PhantomData<fn() -> A>,
}

impl<A> Default for Sql<A> {
    fn default() -> Sql<A> {
        Sql { rules: Rules::HOLD, calm: false, protocol: PhantomData }
    }
}

impl<A: Protocol> Scenario for Sql<A> {
    fn name(&self) -> &'static str {
        match A::NAME {
            "catenae" => "sql-catenae",
            "quad" => "sql-quad",
            _ => "sql-replicated-commit",
        }
    }

    fn options(&self) -> String {
        if self.calm { " --calm".into() } else { String::new() }
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        // With a stack that statements need not enlarge.
        let run = || self.run_here(seed, tracing);
        thread::scope(|scope| {
            let running = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run).expect("the system has threads");
            running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl<A: Protocol> Sql<A> {
    /// The same with faults, or without.
    pub fn with_calm(mut self, calm: bool) -> Sql<A> {
        self.calm = calm;
        self
    }

    /// The same where SQL goes by other rules.
    pub fn with_rules(self, rules: Rules<Planted>) -> Sql<A> {
        Sql { rules, ..self }
    }

    fn run_here(&self, seed: u64, tracing: bool) -> Report {
        rhumb_sql::planted::set_rules(self.rules);
        let mut rng = Rng::seeded(seed);
        let shape = Shape::draw(&mut rng, seed);
        let mut config = Config { tracing, ..Config::of_regions(shape.regions, shape.shards) };
        config.local.sync = shape.sync;
        let names = Config { tracing: false, ..config.clone() };
        let world = A::world(config, &shape, seed, &mut rng);
        let rates = if self.calm { FaultRates::none() } else { A::rates(&shape) };
        let plan = FaultPlan::draw(&rates, world.topology(), FAULTS, &mut rng);
        let mut run = Run { cluster: Cluster::new(world, names, &shape, &mut rng), shared: Shared::new(tracing), shape, rng };
        let end = run.drive(&plan);
        run.report(end, tracing)
    }
}

/// A run under way.
struct Run<A: Protocol> {
    cluster: Cluster<A>,
    shared: Shared,
    shape: Shape,
    rng: Rng,
}

/// What the checkers need besides the record.
struct End {
    healed: Time,
    finals: Vec<TxnNo>,
}

impl<A: Protocol> Run<A> {
    fn world(&mut self) -> &mut World<A> {
        &mut self.cluster.lane.world
    }

    fn dialer(&self) -> Dialer {
        let (sites, time) = (self.cluster.sites.clone(), self.cluster.time.clone());
        Dialer { sites, time, shared: self.shared.clone(), database: work::setup::DATABASE.into(), reads: A::READS }
    }

    fn all_sites(&self) -> Vec<SiteId> {
        self.cluster.lane.world.topology().sites().collect()
    }

    /// Sites that hold databases of the protocol: of Catenae, the coordinators.
    fn serving_sites(&self) -> Vec<SiteId> {
        let sites = self.all_sites().into_iter();
        if A::NAME == "catenae" { sites.filter(|site| site.shard == 0).collect() } else { sites.collect() }
    }

    /// Tables, faults, heal, quiet, final audits. `Err(None)`: the record says what is wrong.
    fn drive(&mut self, plan: &FaultPlan) -> Result<End, Option<SimError>> {
        for (&site, &skew) in &plan.clocks {
            self.world().skew_clock(site, skew);
        }
        let made = self.cluster.spawn(work::setup::make(self.dialer(), SiteId::new(0, 0), A::NAME));
        let mut is_made = None;
        self.cluster.run_until(SETUP_MAX, || {
            is_made = made.take().or(is_made.take());
            is_made.is_some()
        })?;
        if is_made.is_none() {
            self.shared.wrong(|| "the tables were not made in time".into());
            return Err(None);
        }
        let begun = self.cluster.time.now();
        let (healed, clients_end) = (begun + FAULTS, begun + FAULTS + CLIENTS_AFTER);
        for (at, fault) in &plan.faults {
            self.world().strike_at(begun + at.since(Time::ZERO), fault.clone());
        }
        self.add_clients(clients_end);
        self.run_to(healed)?;
        self.world().heal();
        self.run_to(clients_end + QUIET)?;
        let finals_max = FINALS_OF_SITE_MAX * self.serving_sites().len() as u64;
        Ok(End { healed, finals: self.finals(clients_end + QUIET + finals_max)? })
    }

    /// Goes on until `end`, or until something is wrong.
    fn run_to(&mut self, end: Time) -> Result<(), Option<SimError>> {
        let shared = self.shared.clone();
        self.cluster.run_until(end, || shared.with(|record| record.wrong.is_some()))?;
        if self.shared.with(|record| record.wrong.is_some()) { Err(None) } else { Ok(()) }
    }

    fn add_clients(&mut self, until: Time) {
        let mut number = 0;
        for site in self.serving_sites() {
            for _ in 0..CLIENTS {
                let bulk = if self.shape.is_bulky { A::WRITES_BYTES_MAX } else { 0 };
                let client = Client::new(number, site, until, bulk, self.dialer(), self.rng.fork());
                self.cluster.spawn(client.run());
                number += 1;
            }
        }
    }

    /// Audits at every site, the last one with the final reads of single rows.
    fn finals(&mut self, end: Time) -> Result<Vec<TxnNo>, Option<SimError>> {
        let (dialer, sites) = (self.dialer(), self.serving_sites());
        let audits = self.cluster.spawn(audit::finals(dialer, sites));
        let mut finals = None;
        let shared = self.shared.clone();
        self.cluster.run_until(end, || {
            finals = audits.take().or(finals.take());
            finals.is_some() || shared.with(|record| record.wrong.is_some())
        })?;
        if finals.is_none() {
            self.shared.wrong(|| "the final audits have not ended".into());
        }
        finals.ok_or(None)
    }

    fn judge(&self, end: &End) -> Result<(), String> {
        let text = |violation: rhumb_sim::checkers::Violation| violation.to_string();
        self.shared.with(|record| {
            record.wrong.clone().map_or(Ok(()), Err)?;
            record.counters.check()?;
            record.items.check("items")?;
            record.scratch.check("scratch")?;
            let history = &record.history;
            strict_serializability::check(history).map_err(text)?;
            no_phantom::check(history).map_err(text)?;
            bounded_clocks::check(history).map_err(text)?;
            no_lost_write::check(history, &end.finals).map_err(text)?;
            // Only what clients do with registers counts: a part of it, and whoever audits does nothing else for seconds.
            let demand = progress::Demand { committed_min: self.serving_sites().len(), committed_percent_min: 20 };
            progress::check(history, end.healed, GRACE, demand).map_err(text)
        })?;
        A::at_rest(&self.cluster.lane.world)
    }

    fn report(&self, end: Result<End, Option<SimError>>, tracing: bool) -> Report {
        let world = &self.cluster.lane.world;
        let mut report = match &end {
            Err(Some(error)) => Report::of(world, Err(error.clone())),
            Ok(_) | Err(None) => Report::of(world, Ok(())),
        };
        match &end {
            Ok(end) => report.violation = self.judge(end).err(),
            Err(None) => report.violation = self.shared.with(|record| record.wrong.clone()),
            Err(Some(_)) => {}
        }
        self.shared.with(|record| {
            report.count(&record.history);
            report.probes.extend(record.counts.iter().map(|(what, count)| (*what, *count)));
            if tracing {
                report.trace.push_str(&record.history.to_string());
                report.trace.push_str(record.log.as_deref().unwrap_or_default());
            }
        });
        report
    }
}
