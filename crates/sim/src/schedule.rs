//! The events to come, in order of time; events of the same time in the order they were scheduled.

use rhumb_core::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The events to come.
#[derive(Debug)]
pub(crate) struct Schedule<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    scheduled: u64,
}

impl<E> Schedule<E> {
    pub(crate) fn new() -> Schedule<E> {
        Schedule { heap: BinaryHeap::new(), scheduled: 0 }
    }

    /// Lets `event` happen at `at`.
    pub(crate) fn push(&mut self, at: Time, event: E) {
        self.heap.push(Reverse(Entry { at, sequence: self.scheduled, event }));
        self.scheduled += 1;
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    sequence: u64,
    event: E,
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_scheduled() {
        let mut schedule = Schedule::new();
        for event in 0..100 {
            schedule.push(Time::from_micros(event % 2), event);
        }
        assert_eq!(schedule.next_at(), Some(Time::ZERO));
        let order: Vec<u64> = std::iter::from_fn(|| schedule.pop()).map(|(_, event)| event).collect();
        let expected: Vec<u64> = (0..100).step_by(2).chain((1..100).step_by(2)).collect();
        assert_eq!(order, expected);
    }
}
