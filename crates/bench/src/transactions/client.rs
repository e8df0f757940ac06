//! One client of a run: it waits for its turn, draws a transaction, attempts it until it is decided, and counts what happened.
//!
//! ```text
//! due ─▶ draw ─▶ (key) ─▶ attempt ─▶ committed │ rolled back │ unknown │ refused ─▶ (think) ─▶ due …
//!                            ▲                    │
//!                            └─ wait ◀─ conflict or unavailable, while attempts last
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rhumb_core::Rng;

use super::workload::{Terminal, Verdict};
use crate::client::postgres::{Failure, RetryPolicy, Session};
use crate::driver::{Arrivals, Window};
use crate::error::BenchError;
use crate::report::Meter;

/// Refused transactions in a row after which a client takes the server, or the workload, to be broken.
const REFUSALS_MAX: u32 = 100;

/// Broken invariants told in the report; more of them say nothing new.
const VIOLATIONS_MAX: usize = 16;

/// A region's servers and what is measured there.
pub(super) struct Region {
    pub(super) name: String,
    pub(super) floor_ms: Option<f64>,
    pub(super) arrivals: Option<Mutex<Arrivals>>,
    pub(super) meters: Vec<Mutex<Meter>>,
}

/// What the clients of a run share.
pub(super) struct Course {
    pub(super) workload: &'static str,
    pub(super) window: Window,
    pub(super) retry: RetryPolicy,
    pub(super) regions: Vec<Region>,
    pub(super) violations: Mutex<Vec<String>>,
}

impl Course {
    /// `None` when the run is over; inside, the moment that a transaction of the open loop was due.
    async fn next_due(&self, region: usize) -> Option<Option<Instant>> {
        let window = &self.window;
        let due = match &self.regions[region].arrivals {
            None => None,
            Some(arrivals) => {
                let end = window.deadline();
                let due = arrivals.lock().unwrap_or_else(PoisonError::into_inner).next_before(end)?;
                window.wait_until(due).await;
                Some(due)
            }
        };
        window.admit(Instant::now()).then_some(due)
    }
}

/// One connection and the terminal at it.
pub(super) struct Client<T> {
    pub(super) course: Arc<Course>,
    pub(super) region: usize,
    pub(super) session: Session,
    pub(super) terminal: T,
    pub(super) rng: Rng,
    pub(super) refusals: u32,
}

impl<T: Terminal> Client<T> {
    /// Works until the run is over.
    pub(super) async fn work(mut self) -> Result<(), BenchError> {
        let course = self.course.clone();
        while let Some(due) = course.next_due(self.region).await {
            let drawn = self.terminal.draw();
            let paced = course.regions[self.region].arrivals.is_none();
            if paced && !drawn.keying.is_zero() {
                course.window.wait_until(Instant::now() + drawn.keying).await;
            }
            self.transact(drawn.kind, due.unwrap_or_else(Instant::now)).await?;
            if paced && !drawn.thinking.is_zero() {
                course.window.wait_until(Instant::now() + drawn.thinking).await;
            }
        }
        Ok(())
    }

    /// Tries the drawn transaction until it commits, is known to be lost, or may not be tried again.
    async fn transact(&mut self, kind: usize, begun: Instant) -> Result<(), BenchError> {
        let course = self.course.clone();
        let mut commits = Vec::new();
        for attempt in 1.. {
            let outcome = self.terminal.attempt(&mut self.session).await;
            let ended = Instant::now();
            commits.append(&mut self.session.take_commit_latencies());
            let meter = course.window.measures(begun, ended).then(|| &course.regions[self.region].meters[kind]);
            let failure = match outcome {
                Ok(verdict) => {
                    self.refusals = 0;
                    self.conclude(verdict, meter, ended.saturating_duration_since(begun), &commits);
                    return Ok(());
                }
                Err(failure) => failure,
            };
            self.session.settle(&failure).await;
            let again = failure.is_retryable() && attempt < course.retry.attempts_max && !course.window.is_over(ended);
            count_failure(meter, &failure, again);
            self.give_up_if_broken(&failure)?;
            if !again {
                return Ok(());
            }
            course.window.wait_until(ended + course.retry.wait(attempt, &mut self.rng)).await;
        }
        Ok(())
    }

    fn conclude(&self, verdict: Verdict, meter: Option<&Mutex<Meter>>, latency: Duration, commits: &[Duration]) {
        if let Verdict::Violated(what) = &verdict {
            let mut violations = self.course.violations.lock().unwrap_or_else(PoisonError::into_inner);
            if violations.len() < VIOLATIONS_MAX {
                violations.push(what.clone());
            }
        }
        let Some(meter) = meter else { return };
        let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
        match verdict {
            Verdict::Committed | Verdict::Violated(_) => meter.commit(latency, commits),
            Verdict::RolledBack => meter.rolled_back += 1,
        }
    }

    /// A missing table ends the run, and so does a server that refuses everything.
    fn give_up_if_broken(&mut self, failure: &Failure) -> Result<(), BenchError> {
        if !matches!(failure, Failure::Refused { .. }) {
            return Ok(());
        }
        self.refusals += 1;
        if failure.is_missing_table() {
            return Err(BenchError::NotLoaded { workload: self.course.workload, reason: failure.cause().to_owned() });
        }
        if self.refusals >= REFUSALS_MAX {
            let doing = format!("running transactions at {}", self.session.endpoint().display_url());
            return Err(BenchError::Statement { doing, reason: failure.cause().to_owned() });
        }
        Ok(())
    }
}

fn count_failure(meter: Option<&Mutex<Meter>>, failure: &Failure, again: bool) {
    let Some(meter) = meter else { return };
    let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
    match failure {
        Failure::Conflict { cause } => meter.abort(cause, again),
        Failure::Unavailable { cause } => meter.unavailable(cause, again),
        Failure::Unknown { .. } => meter.unknown += 1,
        Failure::Refused { reason, .. } => meter.error(reason),
    }
}
