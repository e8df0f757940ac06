//! A run: clients are connected and set to work, and whoever watches is told how it goes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rhumb_alarm::Alarm;
use rhumb_core::Rng;
use tokio::task::JoinSet;

use super::client_slot::ClientSlot;
use super::course::Course;
use super::meter::Meter;
use super::options::DriverOptions;
use super::results::Results;
use super::window::{Until, Window};
use super::workload::{Client, Workload};
use crate::error::BenchError;
use crate::progress::{Progress, Unit};

/// How often the watcher is told.
const PULSE_EVERY: Duration = Duration::from_millis(250);

/// Runs `workload` to its end.
pub async fn run<W: Workload>(
    workload: &W,
    options: &DriverOptions,
    progress: &dyn Progress,
) -> Result<Results<<W::Client as Client>::Meter>, BenchError> {
    options.check()?;
    let mut rng = Rng::seeded(options.seed);
    let mut clients = Vec::new();
    for region in 0..workload.regions() {
        for index in 0..options.clients_per_region {
            let slot = ClientSlot { region, regions: workload.regions(), index, clients: options.clients_per_region };
            clients.push((region, workload.client(slot, rng.fork()).await?));
        }
    }
    let start = Instant::now();
    let window = Window::new(start, options.warmup, options.until, Alarm::start().map_err(BenchError::Thread)?);
    let course = Arc::new(Course::new(workload, options.pace, start, window, &mut rng));
    let mut tasks = JoinSet::new();
    for (region, client) in clients {
        tasks.spawn(work(course.clone(), region, client));
    }
    let ended = supervise(&mut tasks, &course, options, progress).await?;
    Ok(course.results(ended))
}

/// Lets a client work until the run is over.
async fn work<C: Client>(course: Arc<Course<C::Meter>>, region: usize, mut client: C) -> Result<(), BenchError> {
    loop {
        client.ready(&course.window).await;
        let Some(turn) = course.next_turn(region).await else { return Ok(()) };
        client.work(turn).await?;
    }
}

/// Waits for the clients, tells the watcher, and returns when the measured window ended.
async fn supervise<M: Meter>(
    tasks: &mut JoinSet<Result<(), BenchError>>,
    course: &Course<M>,
    options: &DriverOptions,
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

fn begin_stage(warming: bool, options: &DriverOptions, progress: &dyn Progress) {
    match options.until {
        _ if warming => progress.stage("warming up", millis(options.warmup), Unit::Milliseconds),
        Until::Elapsed(length) => progress.stage("measuring", millis(length), Unit::Milliseconds),
        Until::Transactions(count) => progress.stage("measuring", count, Unit::Transactions),
    }
}

fn tell<M: Meter>(course: &Course<M>, options: &DriverOptions, warming: bool, now: Instant, progress: &dyn Progress) {
    let window = &course.window;
    let begun = if warming { window.warm() - options.warmup } else { window.warm() };
    let elapsed = now.saturating_duration_since(begun);
    match options.until {
        Until::Transactions(count) if !warming => progress.position(count - window.left().min(count)),
        _ => progress.position(millis(elapsed)),
    }
    if !warming {
        progress.pulse(&course.total().pulse(elapsed.max(PULSE_EVERY)));
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
