//! A queue to threads of their own. Who adds never waits: a step is not held up in its middle. Who steps asks before each step
//! whether there is [room](Way::has_room), so that what waits is bounded by that and by what one step adds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

struct Queue<T> {
    state: Mutex<State<T>>,
    /// How many wait, for those who only ask.
    waiting: AtomicUsize,
    room: usize,
    arrived: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    /// Threads that sleep until something comes and that nobody has woken: to wake one, or none, is a call of the system each time.
    asleep: usize,
    closed: bool,
}

/// The way to the threads. Dropped, it closes the queue: what was added before is still taken.
pub struct Way<T>(Arc<Queue<T>>);

/// The end at which a thread takes. Dropped, it closes the queue: what waits is lost, and who adds is told.
pub struct End<T>(Arc<Queue<T>>);

/// A queue with room for `room`: the way to it, and its end.
pub fn queue<T>(room: usize) -> (Way<T>, End<T>) {
    let state = Mutex::new(State { waiting: VecDeque::new(), asleep: 0, closed: false });
    let queue = Arc::new(Queue { state, waiting: AtomicUsize::new(0), room, arrived: Condvar::new() });
    (Way(Arc::clone(&queue)), End(queue))
}

impl<T> Queue<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("nothing panics while it holds a queue")
    }
}

impl<T> Way<T> {
    /// Adds one. False if nobody takes it any more.
    pub fn add(&self, one: T) -> bool {
        let mut state = self.0.lock();
        if state.closed {
            return false;
        }
        state.waiting.push_back(one);
        self.0.waiting.store(state.waiting.len(), Ordering::Relaxed);
        if state.asleep > 0 {
            state.asleep -= 1;
            drop(state);
            self.0.arrived.notify_one();
        }
        true
    }

    /// True if fewer wait than there is room for.
    pub fn has_room(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) < self.0.room
    }
}

impl<T> Drop for Way<T> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.arrived.notify_all();
    }
}

impl<T> End<T> {
    /// Waits for the first, until `due` at the latest if that is set, and takes up to `max`. None once the queue is closed and nothing
    /// waits.
    pub fn take(&self, max: usize, due: Option<Instant>) -> Option<VecDeque<T>> {
        let mut state = self.0.lock();
        while state.waiting.is_empty() && !state.closed {
            state.asleep += 1;
            let woken = match due {
                None => self.0.arrived.wait(state).ok(),
                Some(due) => {
                    let longest = due.saturating_duration_since(Instant::now());
                    self.0.arrived.wait_timeout(state, longest).ok().map(|(state, _)| state)
                }
            };
            state = woken.expect("nothing panics while it holds a queue");
            if due.is_some_and(|due| due <= Instant::now()) {
                // Who was woken at the same moment is not counted any more.
                state.asleep = state.asleep.saturating_sub(1);
                break;
            }
        }
        if state.closed && state.waiting.is_empty() {
            return None;
        }
        let taken = if state.waiting.len() <= max { std::mem::take(&mut state.waiting) } else { state.waiting.drain(..max).collect() };
        self.0.waiting.store(state.waiting.len(), Ordering::Relaxed);
        Some(taken)
    }
}

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        let lost = std::mem::take(&mut state.waiting);
        self.0.waiting.store(0, Ordering::Relaxed);
        drop(state);
        drop(lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn who_adds_never_waits_and_knows_when_there_is_no_room() {
        let (way, end) = queue(2);
        assert!(way.has_room());
        assert!(way.add(1) && way.has_room());
        assert!(way.add(2) && way.add(3));
        assert!(!way.has_room(), "what a step adds is added all the same");
        assert_eq!(end.take(2, None), Some(VecDeque::from([1, 2])));
        assert!(way.has_room());
        drop(way);
        assert_eq!(end.take(2, None), Some(VecDeque::from([3])), "what was added before the queue is closed is served");
        assert_eq!(end.take(2, None), None);
    }

    #[test]
    fn who_takes_waits_no_longer_than_it_must() {
        let (way, end) = queue::<u32>(1);
        assert_eq!(end.take(1, Some(Instant::now() + Duration::from_millis(2))), Some(VecDeque::new()));
        drop(way);
        assert_eq!(end.take(1, Some(Instant::now() + Duration::from_secs(3_600))), None);
    }

    #[test]
    fn what_nobody_takes_any_more_is_not_kept_and_who_adds_is_told() {
        let (way, end) = queue(1);
        assert!(way.add(1));
        assert!(!way.has_room());
        drop(end);
        assert!(way.has_room(), "who waits for room would wait for ever");
        assert!(!way.add(2));
    }
}
