//! One client of transactions: it draws one, attempts it until it is decided, and counts what happened.
//!
//! ```text
//! due ─▶ draw ─▶ (key) ─▶ attempt ─▶ committed │ rolled back │ unknown │ refused ─▶ (think) ─▶ due …
//!                            ▲                    │
//!                            └─ wait ◀─ conflict or unavailable, while attempts last
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use rhumb_core::Rng;

use super::violations::Violations;
use super::workload::{Terminal, Verdict};
use crate::client::postgres::{Failure, RetryPolicy, Session};
use crate::driver::{Client, Turn};
use crate::error::BenchError;
use crate::report::Meter;

/// Refused transactions in a row after which a client takes the server, or the workload, to be broken.
const REFUSALS_MAX: u32 = 100;

/// One connection and the terminal at it.
pub(super) struct TransactionClient<T> {
    /// The workload's name.
    pub(super) workload: &'static str,
    pub(super) retry: RetryPolicy,
    pub(super) violations: Arc<Violations>,
    pub(super) session: Session,
    pub(super) terminal: T,
    pub(super) rng: Rng,
    /// Refused transactions since the last that was not.
    pub(super) refusals: u32,
}

impl<T: Terminal> Client for TransactionClient<T> {
    type Meter = Meter;

    async fn work(&mut self, turn: Turn<'_, Meter>) -> Result<(), BenchError> {
        let drawn = self.terminal.draw();
        turn.pause(drawn.keying).await;
        let begun = if turn.closed { Instant::now() } else { turn.due[0] };
        self.transact(drawn.kind, begun, &turn).await?;
        turn.pause(drawn.thinking).await;
        Ok(())
    }
}

impl<T: Terminal> TransactionClient<T> {
    /// Tries the drawn transaction until it commits, is known to be lost, or may not be tried again.
    async fn transact(&mut self, kind: usize, begun: Instant, turn: &Turn<'_, Meter>) -> Result<(), BenchError> {
        let mut commits = Vec::new();
        for attempt in 1.. {
            let outcome = self.terminal.attempt(&mut self.session).await;
            let ended = Instant::now();
            commits.append(&mut self.session.take_commit_latencies());
            let failure = match outcome {
                Ok(verdict) => {
                    self.refusals = 0;
                    if let Verdict::Violated(what) = &verdict {
                        self.violations.add(what);
                    }
                    turn.count(kind, begun, ended, |meter| conclude(meter, &verdict, ended.saturating_duration_since(begun), &commits));
                    return Ok(());
                }
                Err(failure) => failure,
            };
            self.session.settle(&failure).await;
            let again = failure.is_retryable() && attempt < self.retry.attempts_max && !turn.window.is_over(ended);
            turn.count(kind, begun, ended, |meter| fail(meter, &failure, again));
            self.give_up_if_broken(&failure)?;
            if !again {
                return Ok(());
            }
            turn.window.wait_until(ended + self.retry.wait(attempt, &mut self.rng)).await;
        }
        Ok(())
    }

    /// A missing table ends the run, and so does a server that refuses everything.
    fn give_up_if_broken(&mut self, failure: &Failure) -> Result<(), BenchError> {
        if !matches!(failure, Failure::Refused { .. }) {
            return Ok(());
        }
        self.refusals += 1;
        if failure.is_missing_table() {
            return Err(BenchError::NotLoaded { workload: self.workload, reason: failure.cause().to_owned() });
        }
        if self.refusals >= REFUSALS_MAX {
            let doing = format!("running transactions at {}", self.session.endpoint().display_url());
            return Err(BenchError::Statement { doing, reason: failure.cause().to_owned() });
        }
        Ok(())
    }
}

/// Counts a transaction that ended.
fn conclude(meter: &mut Meter, verdict: &Verdict, latency: Duration, commits: &[Duration]) {
    match verdict {
        Verdict::Committed | Verdict::Violated(_) => meter.commit(latency, commits),
        Verdict::RolledBack => meter.rolled_back += 1,
    }
}

/// Counts an attempt that failed.
fn fail(meter: &mut Meter, failure: &Failure, again: bool) {
    match failure {
        Failure::Conflict { cause } => meter.abort(cause, again),
        Failure::Unavailable { cause } => meter.unavailable(cause, again),
        Failure::Unknown { .. } => meter.unknown += 1,
        Failure::Refused { reason, .. } => meter.error(reason),
    }
}
