//! When a run warms up, measures and ends, as all its clients see it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rhumb_alarm::Alarm;
use tokio::sync::Notify;

/// What ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// This long after the warm-up.
    Elapsed(Duration),
    /// When this many transactions were begun after the warm-up, over all regions.
    Transactions(u64),
}

/// The course of one run.
pub struct Window {
    warm: Instant,
    deadline: Option<Instant>,
    left: AtomicU64,
    stopped: AtomicBool,
    stop: Notify,
    alarm: Alarm,
}

impl Window {
    /// A window that opens `warmup` after `start`. Its clients sleep by `alarm`: what an open loop measures begins at the
    /// instant at which a request is due, and a client that wakes late would be counted as a server that is slow.
    pub fn new(start: Instant, warmup: Duration, until: Until, alarm: Alarm) -> Window {
        let warm = start + warmup;
        let (deadline, left) = match until {
            Until::Elapsed(length) => (Some(warm + length), u64::MAX),
            Until::Transactions(count) => (None, count),
        };
        Window { warm, deadline, left: AtomicU64::new(left), stopped: AtomicBool::new(false), stop: Notify::new(), alarm }
    }

    /// True if a client may begin another transaction at `now`; counts it.
    pub fn admit(&self, now: Instant) -> bool {
        if self.is_over(now) {
            return false;
        }
        now < self.warm || self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// True if what began at `begun` and ended at `ended` belongs to the results. A run of a given length counts what ends in it, one of a given number of
    /// transactions what begins in it.
    pub fn measures(&self, begun: Instant, ended: Instant) -> bool {
        match self.deadline {
            Some(deadline) => !self.stopped() && ended >= self.warm && ended <= deadline,
            None => begun >= self.warm,
        }
    }

    /// True once no transaction may begin or be retried.
    pub fn is_over(&self, now: Instant) -> bool {
        self.stopped() || self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// When the warm-up ends.
    pub fn warm(&self) -> Instant {
        self.warm
    }

    /// When the run ends, if that is a matter of time.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Transactions left to begin.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Ends the run now.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.stop.notify_waiters();
    }

    /// Waits until `instant` or the end of the run, whichever is first.
    pub async fn wait_until(&self, instant: Instant) {
        let until = self.deadline.map_or(instant, |deadline| instant.min(deadline));
        let stopped = self.stop.notified();
        futures::pin_mut!(stopped);
        // Registered before the flag is read, so a stop in between is not missed.
        stopped.as_mut().enable();
        if !self.stopped() {
            tokio::select! {
                () = self.alarm.sleep_until(until) => {}
                () = stopped => {}
            }
        }
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn window(start: Instant, until: Until) -> Window {
        Window::new(start, SECOND, until, Alarm::start().expect("a thread"))
    }

    #[test]
    fn a_timed_run_measures_what_ends_between_warm_up_and_deadline() {
        let start = Instant::now();
        let window = window(start, Until::Elapsed(SECOND));
        assert!(window.admit(start) && !window.admit(start + 2 * SECOND));
        assert!(!window.measures(start, start + SECOND / 2));
        assert!(window.measures(start, start + SECOND));
        assert!(!window.measures(start + SECOND, start + 3 * SECOND));
        window.stop();
        assert!(!window.admit(start));
    }

    #[test]
    fn a_counted_run_admits_that_many_after_the_warm_up() {
        let start = Instant::now();
        let window = window(start, Until::Transactions(2));
        assert!((0..9).all(|_| window.admit(start)));
        assert_eq!((0..9).filter(|_| window.admit(start + SECOND)).count(), 2);
        assert!(window.measures(start + SECOND, start + 99 * SECOND) && !window.measures(start, start + SECOND));
    }

    #[tokio::test]
    async fn a_stop_wakes_those_who_wait() {
        let window = window(Instant::now(), Until::Transactions(1));
        let far = Instant::now() + 3_600 * SECOND;
        tokio::join!(window.wait_until(far), async { window.stop() });
        window.wait_until(far).await;
    }
}
