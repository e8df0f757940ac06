//! Runs scenarios: one seed, or many on all cores, and reports what it takes to see a failure again.
//!
//! Runs are untraced for speed. One that fails is run again with the trace on, which shows the same failure or else a
//! second one: that the run is not decided by its seed.

use crate::error::SimError;
use crate::history::{History, Outcome};
use crate::world::World;
use crate::world::panic_message;
use rhumb_core::Time;
use rhumb_core::actor::Actor;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// The lines of a trace that a failure report shows.
const REPORT_TRACE_LINES: usize = 60;

/// A workload, its faults and its checks, decided by a seed.
pub trait Scenario: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// Nothing goes wrong in it.
    fn is_calm(&self) -> bool {
        false
    }

    /// Options that the command line needs beside name and seed to repeat this very run.
    fn options(&self) -> String {
        if self.is_calm() { " --calm".into() } else { String::new() }
    }

    /// Runs it. `tracing` says whether the report needs the trace; it must change nothing else.
    fn run(&self, seed: u64, tracing: bool) -> Report;
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Its seed; the runner fills it in.
    pub seed: u64,
    /// Events that happened.
    pub events: u64,
    /// True time that passed.
    pub virtual_time: Time,
    /// Transactions known to be committed.
    pub committed: u64,
    /// Transactions known to be aborted.
    pub aborted: u64,
    /// Transactions whose outcome their client could not learn.
    pub unknown: u64,
    /// How often each event was counted.
    pub probes: BTreeMap<&'static str, u64>,
    /// What went wrong, if anything did.
    pub violation: Option<String>,
    /// The trace, if asked for.
    pub trace: String,
    /// The command that repeats the run; the runner fills it in.
    pub replay: String,
}

impl Report {
    /// Counts how the transactions of `history` ended.
    pub fn count(&mut self, history: &History) {
        for txn in history.txns() {
            match txn.ended {
                Some((_, Outcome::Committed { .. })) => self.committed += 1,
                Some((_, Outcome::Aborted)) => self.aborted += 1,
                Some((_, Outcome::Unknown)) | None => self.unknown += 1,
            }
        }
    }

    /// The report of a run of `world` that came to this end; the outcomes of transactions are left to fill in.
    pub fn of<A: Actor>(world: &World<A>, end: Result<(), SimError>) -> Report {
        Report {
            events: world.events(),
            virtual_time: world.now(),
            probes: world.probes().clone(),
            violation: end.err().map(|error| error.to_string()),
            trace: world.trace().to_owned(),
            ..Report::default()
        }
    }
}

impl fmt::Display for Report {
    /// One line if all is well; else what went wrong, the end of the trace and the command that repeats it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { seed, events, virtual_time, committed, aborted, unknown, .. } = self;
        let outcomes = format!("{committed} committed, {aborted} aborted, {unknown} unknown");
        let Some(violation) = &self.violation else {
            return write!(f, "seed {seed}: {outcomes}; {events} events in {virtual_time} s");
        };
        writeln!(f, "seed {seed} FAILED: {violation}")?;
        writeln!(f, "  {outcomes}; {events} events in {virtual_time} s")?;
        let lines: Vec<&str> = self.trace.lines().collect();
        let left_out = lines.len().saturating_sub(REPORT_TRACE_LINES);
        if left_out > 0 {
            writeln!(f, "  … {left_out} lines before")?;
        }
        for line in &lines[left_out..] {
            writeln!(f, "  {line}")?;
        }
        write!(f, "replay: {}", self.replay)
    }
}

/// How far [`run_seeds`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs done.
    pub done: u64,
    /// Runs in all.
    pub total: u64,
    /// Runs that failed so far.
    pub failed: u64,
}

/// Runs one seed. A panic of the scenario is a violation, too.
pub fn run_seed(scenario: &impl Scenario, seed: u64) -> Report {
    let report = run_caught(scenario, seed, false);
    let Some(violation) = &report.violation else { return report };
    let mut traced = run_caught(scenario, seed, true);
    if traced.violation.as_ref() != Some(violation) {
        let second = traced.violation.as_deref().unwrap_or("nothing went wrong");
        traced.violation = Some(format!("{violation}; but run again: {second}: the seed alone does not decide this run"));
    }
    traced
}

/// Runs one seed with the trace on, whatever comes of it.
pub fn trace_seed(scenario: &impl Scenario, seed: u64) -> Report {
    run_caught(scenario, seed, true)
}

/// Runs `seeds` on `threads` threads, at least one. `progress` is called on this thread after each run. The reports come
/// in the order of the seeds.
pub fn run_seeds(scenario: &impl Scenario, seeds: Range<u64>, threads: usize, mut progress: impl FnMut(Progress)) -> Vec<Report> {
    let total = seeds.end.saturating_sub(seeds.start);
    let next = AtomicU64::new(seeds.start);
    let (reports, finished) = mpsc::channel();
    let mut done = BTreeMap::new();
    let mut failed = 0;
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let (reports, next, end) = (reports.clone(), &next, seeds.end);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || reports.send(run_seed(scenario, seed)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(reports);
        for report in finished {
            failed += u64::from(report.violation.is_some());
            done.insert(report.seed, report);
            progress(Progress { done: done.len() as u64, total, failed });
        }
    });
    done.into_values().collect()
}

/// The number of threads that [`run_seeds`] can use here.
pub fn all_cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn run_caught(scenario: &impl Scenario, seed: u64, tracing: bool) -> Report {
    let run = catch_unwind(AssertUnwindSafe(|| scenario.run(seed, tracing)));
    let mut report = run.unwrap_or_else(|panic| Report {
        violation: Some(format!("the scenario panicked: {}", panic_message(&*panic))),
        ..Report::default()
    });
    report.seed = seed;
    report.replay = format!("rhumb sim {}{} --seed {seed}", scenario.name(), scenario.options());
    report
}
