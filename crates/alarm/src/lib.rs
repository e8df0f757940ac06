//! Sleeping with a precision that tokio's timer does not have.
//!
//! That timer counts whole milliseconds and rounds up, which would add up to a millisecond to every emulated hop of the
//! wide area, and to every latency that a benchmark counts from the instant at which a request was due. Here one thread
//! waits on a condition variable for the earliest instant asked for; the kernel wakes it some 60 microseconds late, and it
//! costs nothing while nobody sleeps.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;
use tokio::sync::oneshot;

/// Wakes tasks at instants. Clones share one thread, which ends with the last of them.
#[derive(Clone)]
pub struct Alarm {
    owner: Arc<Owner>,
}

struct Owner {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By instant, then in the order asked. One entry per sleeping task, so bounded by the number of links or clients.
    sleepers: BTreeMap<(Instant, u64), oneshot::Sender<()>>,
    next: u64,
    stopped: bool,
}

impl Alarm {
    /// Starts the thread.
    pub fn start() -> io::Result<Alarm> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new().name("alarm".into()).spawn(move || of_thread.run())?;
        Ok(Alarm { owner: Arc::new(Owner { shared }) })
    }

    /// Waits until `instant`, never less.
    pub async fn sleep_until(&self, instant: Instant) {
        if instant <= Instant::now() {
            return;
        }
        let (wake, woken) = oneshot::channel();
        let asleep = self.owner.shared.enter(instant, wake);
        // The sender goes only by firing or with the thread: either way there is nothing left to wait for.
        let _ = woken.await;
        drop(asleep);
    }
}

/// A place among the sleepers, given up when the sleep ends or is cancelled.
struct Asleep<'a> {
    shared: &'a Shared,
    key: (Instant, u64),
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.shared.lock().sleepers.remove(&self.key);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the sleepers")
    }

    fn enter(&self, instant: Instant, wake: oneshot::Sender<()>) -> Asleep<'_> {
        let mut state = self.lock();
        let key = (instant, state.next);
        state.next += 1;
        let earliest = state.sleepers.first_key_value().is_none_or(|(first, _)| key < *first);
        state.sleepers.insert(key, wake);
        drop(state);
        if earliest {
            self.changed.notify_one();
        }
        Asleep { shared: self, key }
    }

    fn run(&self) {
        let mut state = self.lock();
        while !state.stopped {
            let Some((&(instant, _), _)) = state.sleepers.first_key_value() else {
                state = self.changed.wait(state).expect("nothing panics while it holds the sleepers");
                continue;
            };
            let now = Instant::now();
            if instant > now {
                state = self.changed.wait_timeout(state, instant - now).expect("nothing panics while it holds the sleepers").0;
            } else if let Some((_, wake)) = state.sleepers.pop_first() {
                // A sleeper that was cancelled in this very moment no longer listens.
                let _ = wake.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn sleepers_wake_in_the_order_of_their_instants_and_never_early() {
        let alarm = Alarm::start().expect("a thread");
        let begin = Instant::now();
        let (done, mut order) = tokio::sync::mpsc::unbounded_channel();
        for millis in [30_u64, 10, 20] {
            let (alarm, done) = (alarm.clone(), done.clone());
            tokio::spawn(async move {
                alarm.sleep_until(begin + Duration::from_millis(millis)).await;
                done.send((millis, begin.elapsed())).expect("the test listens");
            });
        }
        for expected in [10, 20, 30] {
            let (millis, slept) = order.recv().await.expect("three sleepers");
            assert_eq!(millis, expected);
            assert!(slept >= Duration::from_millis(millis), "{slept:?}");
        }
    }

    #[tokio::test]
    async fn a_cancelled_sleep_leaves_nothing_behind() {
        let alarm = Alarm::start().expect("a thread");
        let far = Instant::now() + Duration::from_secs(3_600);
        let cancelled = tokio::time::timeout(Duration::from_millis(5), alarm.sleep_until(far)).await;
        assert!(cancelled.is_err());
        assert!(alarm.owner.shared.lock().sleepers.is_empty());
    }
}
