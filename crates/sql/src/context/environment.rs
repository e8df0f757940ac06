//! What sessions wait by and draw from: the system's timers and randomness, or others, where a run is to be repeated.

use futures::future::BoxFuture;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// Timers and randomness, as the sessions of a site share them.
pub trait Environment: fmt::Debug + Send + Sync + 'static {
    /// The time since some moment in the past.
    fn elapsed(&self) -> Duration;

    /// Waits until so much time has [elapsed](Environment::elapsed).
    fn sleep_until(&self, elapsed: Duration) -> BoxFuture<'static, ()>;

    /// A random number below `bound`, each as likely; 0 if `bound` is 0.
    fn draw(&self, bound: u64) -> u64;
}

impl dyn Environment {
    /// Waits for so long.
    pub async fn sleep(&self, span: Duration) {
        self.sleep_until(self.elapsed() + span).await;
    }
}

/// The timers of tokio and the randomness of the system.
#[derive(Debug)]
pub struct System {
    start: Instant,
}

impl Default for System {
    fn default() -> System {
        System { start: Instant::now() }
    }
}

impl Environment for System {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep_until(&self, elapsed: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep_until(self.start + elapsed))
    }

    fn draw(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { rand::random_range(0..bound) }
    }
}
