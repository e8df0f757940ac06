//! The driver of a run: clients in every region, a closed or an open loop, and whoever watches.
//!
//! In the open loop operations fall due at random moments at a given rate, and their latency counts from those moments:
//! a stall shows in full. Free clients pull the next due moment, so no queue grows.

use super::client::{Client, Course, Region, lock};
use super::meter::Meter;
use super::mix::{Mix, Wants};
use super::redistributions;
use super::report::{RegionReport, Report};
use super::stages::{known, unreachable_at};
use crate::client::redis::{Connection, Endpoint, Reply};
use crate::driver::{Arrivals, Pace, Until, Window};
use crate::error::BenchError;
use crate::progress::{Progress, Pulse, Unit};
use rhumb_alarm::Alarm;
use rhumb_core::Rng;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

/// How often the watcher is told.
const PULSE_EVERY: Duration = Duration::from_millis(250);
/// Operations that a client sends together at the most: as many as a site takes of one connection.
pub const PIPELINE_MAX: usize = 1_024;

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The quota.
    pub quota: String,
    /// What clients ask for.
    pub mix: Mix,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Connections at work in every region.
    pub clients_per_region: usize,
    /// Operations that a client sends together.
    pub pipeline: usize,
    /// Closed or open loop.
    pub pace: Pace,
    /// How long to run before measuring.
    pub warmup: Duration,
    /// What ends the run.
    pub until: Until,
    /// Give every operation an id.
    pub ids: bool,
}

/// Runs and reports.
pub async fn run(endpoints: &[Endpoint], options: &RunOptions, progress: &dyn Progress) -> Result<Report, BenchError> {
    check(options)?;
    let mut limit = 0;
    for endpoint in endpoints {
        limit = known(endpoint, &options.quota).await?;
    }
    let before = moved(endpoints).await;
    let mut rng = Rng::seeded(options.seed);
    let start = Instant::now();
    let regions = regions(endpoints, options, start, &mut rng)?;
    let window = Window::new(start, options.warmup, options.until, Alarm::start().map_err(BenchError::Thread)?);
    let course =
        Arc::new(Course { quota: options.quota.clone(), window, pipeline: options.pipeline, ids: options.ids.then(run_id), regions });
    let mut tasks = JoinSet::new();
    for (region, Region { addresses, .. }) in course.regions.iter().enumerate() {
        for (index, address) in addresses.iter().cycle().take(options.clients_per_region).enumerate() {
            let address = address.clone();
            let connection = Some(Connection::open(&address).await.map_err(|error| unreachable_at(&address, &error))?);
            let number = region * options.clients_per_region + index;
            tasks.spawn(Client { course: Arc::clone(&course), region, address, number, connection, sent: 0 }.work());
        }
    }
    let ended = supervise(&mut tasks, &course, options, progress).await;
    let after = moved(endpoints).await;
    let kept = give_back(&course).await;
    Ok(report(options, limit, &course, ended, difference(before, after), kept))
}

fn check(options: &RunOptions) -> Result<(), BenchError> {
    let wrong = |why: String| Err(BenchError::Options(why));
    if options.clients_per_region == 0 {
        return wrong("a run needs at least one client per region".to_owned());
    }
    if !(1..=PIPELINE_MAX).contains(&options.pipeline) {
        return wrong(format!("a pipeline of {} operations; allowed are 1 to {PIPELINE_MAX}", options.pipeline));
    }
    if matches!(options.pace, Pace::Open { rate_per_s } if !(rate_per_s.is_finite() && rate_per_s > 0.0)) {
        return wrong("the rate of an open loop must be above zero".to_owned());
    }
    Ok(())
}

/// Gathers the addresses by region.
fn regions(endpoints: &[Endpoint], options: &RunOptions, start: Instant, rng: &mut Rng) -> Result<Vec<Region>, BenchError> {
    let mut places: Vec<(String, Vec<String>)> = Vec::new();
    for Endpoint { region, address, .. } in endpoints {
        match places.iter_mut().find(|(name, _)| name == region) {
            Some((_, addresses)) => addresses.push(address.clone()),
            None => places.push((region.clone(), vec![address.clone()])),
        }
    }
    if places.is_empty() {
        return Err(BenchError::Options("no address was given".to_owned()));
    }
    let rate = options.pace.rate_per_s().map(|rate| rate / places.len() as f64);
    let region = |(number, (name, addresses))| Region {
        name,
        addresses,
        arrivals: rate.map(|rate| Mutex::new(Arrivals::new(start, rate, rng.fork()))),
        wants: Mutex::new(Wants::new(options.mix, number, rng.fork())),
        acquire: Mutex::default(),
        release: Mutex::default(),
    };
    Ok(places.into_iter().enumerate().map(region).collect())
}

/// What ids of this run begin with, unlike those of runs before.
fn run_id() -> String {
    format!("bench-{:x}", SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros()))
}

/// Redistributions of all sites so far, by kind; none if one does not tell.
async fn moved(endpoints: &[Endpoint]) -> Option<BTreeMap<String, u64>> {
    let mut sum: BTreeMap<String, u64> = BTreeMap::new();
    for endpoint in endpoints {
        for (kind, count) in redistributions::counts(endpoint.http.as_deref()?).await? {
            *sum.entry(kind).or_default() += count;
        }
    }
    Some(sum)
}

fn difference(before: Option<BTreeMap<String, u64>>, after: Option<BTreeMap<String, u64>>) -> Option<BTreeMap<String, u64>> {
    let before = before?;
    let since = |(kind, count): (String, u64)| {
        let count = count.saturating_sub(before.get(&kind).copied().unwrap_or(0));
        (kind, count)
    };
    Some(after?.into_iter().map(since).collect())
}

/// Waits for the clients, tells the watcher, and returns when the measured window ended.
async fn supervise(tasks: &mut JoinSet<()>, course: &Course, options: &RunOptions, progress: &dyn Progress) -> Instant {
    let window = &course.window;
    let mut warming = !options.warmup.is_zero();
    let mut stopped = None;
    begin_stage(warming, options, progress);
    let mut ticks = tokio::time::interval(PULSE_EVERY);
    loop {
        tokio::select! {
            joined = tasks.join_next() => match joined {
                None => break,
                Some(joined) => joined.expect("a client does not panic"),
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
    stopped.or(window.deadline()).unwrap_or(now).min(now)
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn begin_stage(warming: bool, options: &RunOptions, progress: &dyn Progress) {
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
        _ => progress.position(millis(elapsed)),
    }
    if !warming {
        let mut sum = Meter::default();
        course.regions.iter().flat_map(|region| [&region.acquire, &region.release]).for_each(|meter| sum.add(&lock(meter)));
        let per_second = sum.done as f64 / elapsed.as_secs_f64().max(PULSE_EVERY.as_secs_f64());
        let p50_ms = sum.latency().map_or(0.0, |latency| latency.p50_ms);
        progress.pulse(&Pulse { committed: sum.done, per_second, p50_ms, aborted: sum.refusals(), unknown: sum.unknown });
    }
}

/// Releases what clients hold, each region at one of its own sites. Returns how many tokens could not be given back.
async fn give_back(course: &Course) -> u64 {
    let mut kept = 0;
    for region in &course.regions {
        let held = lock(&region.wants).take_held();
        let release = async {
            let mut connection = Connection::open(&region.addresses[0]).await?;
            connection.ask(&["RELEASE", &course.quota, &held.to_string()]).await
        };
        if held > 0 && !matches!(release.await, Ok(Reply::Integer(_))) {
            kept += held;
        }
    }
    kept
}

fn report(
    options: &RunOptions,
    limit: u64,
    course: &Course,
    ended: Instant,
    redistributions: Option<BTreeMap<String, u64>>,
    kept: u64,
) -> Report {
    let measured_s = ended.saturating_duration_since(course.window.warm()).as_secs_f64();
    let clients = options.clients_per_region;
    let (mut acquire, mut release) = (Meter::default(), Meter::default());
    let region = |region: &Region| {
        let overdue = region.arrivals.as_ref().map_or(0, |arrivals| lock(arrivals).due_by(ended));
        acquire.add(&lock(&region.acquire));
        release.add(&lock(&region.release));
        RegionReport::new(&region.name, clients, &lock(&region.acquire), &lock(&region.release), overdue, measured_s)
    };
    let regions: Vec<RegionReport> = course.regions.iter().map(region).collect();
    let overdue = regions.iter().map(|region| region.overdue).sum();
    let mut warnings = Vec::new();
    if kept > 0 {
        warnings.push(format!("{kept} tokens could not be given back after the run and stay held"));
    }
    Report {
        quota: options.quota.clone(),
        limit,
        load: format!("{}, pipeline {}, {}", options.pace.describe(clients), options.pipeline, options.mix),
        seed: options.seed,
        warmup_s: options.warmup.as_secs_f64(),
        measured_s,
        total: RegionReport::new("all", clients * regions.len(), &acquire, &release, overdue, measured_s),
        regions,
        redistributions,
        warnings,
    }
}
