//! Virtual time and seeded randomness, as sessions wait by the one and draw from the other.

use futures::future::BoxFuture;
use rhumb_core::{Rng, Span, Time};
use rhumb_sql::environment::Environment;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The time of a run: that of its world. Clones share it.
#[derive(Clone, Debug)]
pub struct VirtualTime(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: Time,
    rng: Rng,
    /// Who waits, by when it is due and then by the order in which they began.
    sleepers: BTreeMap<(Time, u64), Waker>,
    begun: u64,
}

impl VirtualTime {
    /// Time zero; sessions draw from `rng`.
    pub fn new(rng: Rng) -> VirtualTime {
        VirtualTime(Arc::new(Mutex::new(State { now: Time::ZERO, rng, sleepers: BTreeMap::new(), begun: 0 })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it holds the time")
    }

    /// The true time.
    pub fn now(&self) -> Time {
        self.lock().now
    }

    /// Goes on to `now`, and wakes whoever was to sleep until then.
    pub fn advance(&self, now: Time) {
        let due: Vec<Waker> = {
            let mut state = self.lock();
            state.now = now;
            let later = state.sleepers.split_off(&(now + Span::from_micros(1), 0));
            std::mem::replace(&mut state.sleepers, later).into_values().collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// Waits until `until`.
    pub fn sleep_until(&self, until: Time) -> Sleep {
        Sleep { time: self.clone(), until, place: None }
    }

    /// Waits for so long.
    pub fn sleep(&self, span: Span) -> Sleep {
        self.sleep_until(self.now() + span)
    }
}

/// A wait.
pub struct Sleep {
    time: VirtualTime,
    until: Time,
    /// Its key among the sleepers, once it is there.
    place: Option<(Time, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let sleep = &mut *self;
        let mut state = sleep.time.lock();
        if state.now >= sleep.until {
            return Poll::Ready(());
        }
        state.begun += 1;
        let place = *sleep.place.get_or_insert((sleep.until, state.begun));
        state.sleepers.insert(place, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.time.lock().sleepers.remove(&place);
        }
    }
}

impl Environment for VirtualTime {
    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.now().as_micros())
    }

    fn sleep_until(&self, elapsed: Duration) -> BoxFuture<'static, ()> {
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        Box::pin(VirtualTime::sleep_until(self, Time::from_micros(micros)))
    }

    fn draw(&self, bound: u64) -> u64 {
        self.lock().rng.below(bound)
    }
}
