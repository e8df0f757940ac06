//! How often a transaction that left no trace is tried again, and how long to wait in between.

use std::time::Duration;

use rhumb_core::Rng;

use super::failure::Failure;
use super::session::Session;
use crate::error::BenchError;

/// Attempts in all, the first included.
const ATTEMPTS_MAX: u32 = 10;
/// The longest first wait.
const WAIT_FIRST: Duration = Duration::from_millis(10);
/// The longest wait of all.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// A bound on the attempts and the range of the waits.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub attempts_max: u32,
    /// The longest first wait.
    pub wait_first: Duration,
    /// The longest wait of all.
    pub wait_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy { attempts_max: ATTEMPTS_MAX, wait_first: WAIT_FIRST, wait_max: WAIT_MAX }
    }
}

impl RetryPolicy {
    /// The wait after attempt number `attempt` (from 1) failed: anything up to a ceiling that doubles with every attempt, so that two transactions that
    /// collided are unlikely to collide again.
    pub fn wait(&self, attempt: u32, rng: &mut Rng) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let ceiling = self.wait_first.saturating_mul(1 << doublings).min(self.wait_max);
        ceiling.mul_f64(rng.unit())
    }
}

/// Runs `work` until it succeeds, retrying what left no trace within the bounds of the default [`RetryPolicy`].
pub async fn retrying<T>(
    session: &mut Session,
    doing: &str,
    mut work: impl AsyncFnMut(&mut Session) -> Result<T, Failure>,
) -> Result<T, BenchError> {
    let policy = RetryPolicy::default();
    let mut rng = Rng::seeded(doing.len() as u64);
    let mut attempt = 1;
    loop {
        let failure = match work(session).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        session.settle(&failure).await;
        let (doing, reason) = (doing.to_owned(), failure.cause().to_owned());
        match failure {
            _ if !failure.is_retryable() => return Err(BenchError::Statement { doing, reason }),
            _ if attempt >= policy.attempts_max => return Err(BenchError::GaveUp { doing, attempts: attempt, reason }),
            _ => tokio::time::sleep(policy.wait(attempt, &mut rng)).await,
        }
        attempt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_below_their_ceiling() {
        let policy = RetryPolicy::default();
        let mut rng = Rng::seeded(1);
        for attempt in 1..200 {
            let ceiling = Duration::from_millis(10 << (attempt - 1).min(6)).min(policy.wait_max).max(Duration::from_millis(10));
            let ceiling = if attempt > 7 { policy.wait_max } else { ceiling };
            assert!(policy.wait(attempt, &mut rng) <= ceiling, "attempt {attempt}");
        }
    }

    #[test]
    fn two_clients_that_collided_wait_for_different_times() {
        let policy = RetryPolicy::default();
        assert_ne!(policy.wait(1, &mut Rng::seeded(1)), policy.wait(1, &mut Rng::seeded(2)));
    }
}
