//! The driver: N clients per region at work on one workload, in a closed or an open loop.
//!
//! In the closed loop a client begins its next transaction when the last one ended. In the open loop transactions fall due at random moments at a given rate,
//! whether or not the servers keep up; latency then counts from the moment a transaction was due, so a stall shows in full. Free clients pull the next due
//! moment, so no queue grows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rhumb_alarm::Alarm;
use rhumb_core::Rng;
use tokio::task::JoinSet;

use super::client::{Client, Course, Region};
use super::workload::{Seat, Workload};
use crate::client::postgres::{Endpoint, RetryPolicy, Session, Whereabouts, whereabouts};
use crate::driver::{Arrivals, Pace, Until, Window};
use crate::error::BenchError;
use crate::progress::{Progress, Pulse, Unit};
use crate::report::{KindReport, Meter, RegionReport, Report, StatementReport};

/// How often the watcher is told.
const PULSE_EVERY: Duration = Duration::from_millis(250);

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Connections at work in every region.
    pub clients_per_region: usize,
    /// Closed or open loop.
    pub pace: Pace,
    /// How long to run before measuring.
    pub warmup: Duration,
    /// What ends the run.
    pub until: Until,
    /// What is tried again, and how often.
    pub retry: RetryPolicy,
    /// Settings of every session, as in `SET name = value`.
    pub settings: BTreeMap<String, String>,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            seed: 1,
            clients_per_region: 8,
            pace: Pace::Closed,
            warmup: Duration::from_secs(5),
            until: Until::Elapsed(Duration::from_secs(30)),
            retry: RetryPolicy::default(),
            settings: BTreeMap::new(),
        }
    }
}

/// Runs `workload` against `endpoints` and reports.
pub async fn run<W: Workload>(
    workload: W,
    endpoints: &[Endpoint],
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<Report, BenchError> {
    if options.clients_per_region == 0 {
        return Err(BenchError::Options("a run needs at least one client per region".to_owned()));
    }
    if matches!(options.pace, Pace::Open { rate_per_s } if !(rate_per_s.is_finite() && rate_per_s > 0.0)) {
        return Err(BenchError::Options("the rate of an open loop must be above zero".to_owned()));
    }
    let places = group_by_region(endpoints, &options.settings).await?;
    let mut rng = Rng::seeded(options.seed);
    let mut clients = Vec::new();
    for (region, place) in places.iter().enumerate() {
        for index in 0..options.clients_per_region {
            let seat = Seat { region, regions: places.len(), index, clients: options.clients_per_region };
            let session = Session::connect(&place.endpoints[index % place.endpoints.len()], &options.settings).await?;
            clients.push((seat, session, workload.terminal(seat, rng.fork()), rng.fork()));
        }
    }
    let start = Instant::now();
    let rate_per_region = options.pace.rate_per_s().map(|rate| rate / places.len() as f64);
    let region = |place: Place| Region {
        name: place.name,
        floor_ms: place.floor_ms,
        arrivals: rate_per_region.map(|rate| Mutex::new(Arrivals::new(start, rate, rng.fork()))),
        meters: workload.kinds().iter().map(|_| Mutex::new(Meter::default())).collect(),
    };
    let regions = places.into_iter().map(region).collect();
    let window = Window::new(start, options.warmup, options.until, Alarm::start().map_err(BenchError::Thread)?);
    let course = Arc::new(Course { workload: workload.name(), window, retry: options.retry, regions, violations: Mutex::new(Vec::new()) });
    let mut tasks = JoinSet::new();
    for (seat, session, terminal, rng) in clients {
        tasks.spawn(Client { course: course.clone(), region: seat.region, session, terminal, rng, refusals: 0 }.work());
    }
    let ended = supervise(&mut tasks, &course, options, progress).await?;
    Ok(report(&workload, options, &course, ended))
}

struct Place {
    name: String,
    floor_ms: Option<f64>,
    endpoints: Vec<Endpoint>,
}

/// Gathers the addresses by region. An address without a region asks its server for the name.
async fn group_by_region(endpoints: &[Endpoint], settings: &BTreeMap<String, String>) -> Result<Vec<Place>, BenchError> {
    let mut places: Vec<Place> = Vec::new();
    for endpoint in endpoints {
        let mut session = Session::connect(endpoint, settings).await?;
        let Whereabouts { region, floor_ms } = whereabouts(&mut session)
            .await
            .map_err(|failure| BenchError::Connect { url: endpoint.display_url(), reason: failure.cause().to_owned() })?;
        let name = endpoint.region().map(str::to_owned).or(region).unwrap_or_else(|| endpoint.authority());
        match places.iter_mut().find(|place| place.name == name) {
            Some(place) => place.endpoints.push(endpoint.clone()),
            None => places.push(Place { name, floor_ms, endpoints: vec![endpoint.clone()] }),
        }
    }
    if places.is_empty() { Err(BenchError::Options("no address was given".to_owned())) } else { Ok(places) }
}

/// Waits for the clients, tells the watcher, and returns when the measured window ended.
async fn supervise(
    tasks: &mut JoinSet<Result<(), BenchError>>,
    course: &Course,
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<Instant, BenchError> {
    let window = &course.window;
    let mut warming = !options.warmup.is_zero();
    let mut stopped = None;
    begin_stage(warming, options, progress);
    let mut ticks = tokio::time::interval(PULSE_EVERY);
    loop {
        tokio::select! {
            joined = tasks.join_next() => match joined {
                None => break,
                Some(joined) => joined.expect("a client does not panic")?,
            },
            _ = ticks.tick() => {
                let now = Instant::now();
                if warming && now >= window.warm() {
                    warming = false;
                    begin_stage(warming, options, progress);
                }
                tell(course, options, warming, now, progress);
                if stopped.is_none() && progress.stop_requested() {
                    window.stop();
                    stopped = Some(now);
                }
            }
        }
    }
    let now = Instant::now();
    Ok(stopped.or(window.deadline()).unwrap_or(now).min(now))
}

fn begin_stage(warming: bool, options: &RunOptions, progress: &dyn Progress) {
    let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    match options.until {
        _ if warming => progress.stage("warming up", millis(options.warmup), Unit::Milliseconds),
        Until::Elapsed(length) => progress.stage("measuring", millis(length), Unit::Milliseconds),
        Until::Transactions(count) => progress.stage("measuring", count, Unit::Transactions),
    }
}

fn tell(course: &Course, options: &RunOptions, warming: bool, now: Instant, progress: &dyn Progress) {
    let window = &course.window;
    let begun = if warming { window.warm() - options.warmup } else { window.warm() };
    let elapsed = now.saturating_duration_since(begun);
    match options.until {
        Until::Transactions(count) if !warming => progress.position(count - window.left().min(count)),
        _ => progress.position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)),
    }
    if !warming {
        let sum = sum(course.regions.iter().flat_map(|region| &region.meters));
        let p50_ms = sum.latency().map_or(0.0, |latency| latency.p50_ms);
        let per_second = sum.committed as f64 / elapsed.as_secs_f64().max(PULSE_EVERY.as_secs_f64());
        progress.pulse(&Pulse { committed: sum.committed, per_second, p50_ms, aborted: sum.aborted(), unknown: sum.unknown });
    }
}

fn sum<'a>(meters: impl Iterator<Item = &'a Mutex<Meter>>) -> Meter {
    let mut total = Meter::default();
    for meter in meters {
        total.add(&meter.lock().unwrap_or_else(PoisonError::into_inner));
    }
    total
}

fn report<W: Workload>(workload: &W, options: &RunOptions, course: &Course, ended: Instant) -> Report {
    let measured_s = ended.saturating_duration_since(course.window.warm()).as_secs_f64();
    let clients = options.clients_per_region;
    let region = |region: &Region| {
        let overdue = region.arrivals.as_ref().map_or(0, |arrivals| arrivals.lock().unwrap_or_else(PoisonError::into_inner).due_by(ended));
        let of = RegionReport { region: region.name.clone(), clients, overdue, floor_ms: region.floor_ms, ..RegionReport::default() };
        of.filled(&sum(region.meters.iter()), measured_s)
    };
    let regions: Vec<RegionReport> = course.regions.iter().map(region).collect();
    let total = sum(course.regions.iter().flat_map(|region| &region.meters));
    let overdue = regions.iter().map(|region| region.overdue).sum();
    let all = RegionReport { region: "all".to_owned(), clients: clients * regions.len(), overdue, ..RegionReport::default() };
    let finished = total.committed + total.rolled_back;
    let kinds = workload.kinds().iter().enumerate();
    Report {
        workload: workload.title(),
        load: options.pace.describe(clients),
        seed: options.seed,
        warmup_s: options.warmup.as_secs_f64(),
        measured_s,
        total: all.filled(&total, measured_s),
        regions,
        kinds: kinds
            .map(|(i, kind)| KindReport::new(kind, &sum(course.regions.iter().map(|region| &region.meters[i])), finished, measured_s))
            .collect(),
        statements: statements(workload, course),
        predictions: Vec::new(),
        warnings: Vec::new(),
        violations: course.violations.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    }
}

/// Every statement in every region, if the workload says what they ought to cost.
fn statements<W: Workload>(workload: &W, course: &Course) -> Vec<StatementReport> {
    let mut statements = Vec::new();
    for (i, (kind, yardstick)) in workload.kinds().iter().zip(workload.yardsticks()).enumerate() {
        statements.extend(course.regions.iter().map(|region: &Region| {
            let meter = region.meters[i].lock().unwrap_or_else(PoisonError::into_inner);
            StatementReport::new(kind, &region.name, *yardstick, region.floor_ms, &meter)
        }));
    }
    statements
}
