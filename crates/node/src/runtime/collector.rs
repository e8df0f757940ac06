//! The thread that collects garbage: deletions when the actor asks for it, and what else the engine has not dropped, little by little.
//!
//! ```text
//!   Collect ──▶ deletions, in steps of COLLECT_STEP, working half of the time
//!   between ──▶ a pass over all versions, PASS_STEP of them every PASS_PAUSE, as long as something may have become garbage since the last one
//! ```

use crate::failure::Failure;
use rhumb_core::Timestamp;
use rhumb_core::actor::Collect;
use rhumb_store::{Engine, Pass, Passed, Store, StoreError};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// So many entries are collected at a time, so that writers get their turn in between.
const COLLECT_STEP: usize = 256;
/// A pass looks at so many versions at a time.
const PASS_STEP: usize = 1_024;
/// So long it rests after each step: 100,000 versions take half a minute, 100 million eight hours.
const PASS_PAUSE: Duration = Duration::from_millis(250);

/// Starts the thread. It ends with `queue`.
pub fn start<E: Engine>(store: Arc<Store<E>>, failure: Failure, queue: Receiver<Collect>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("collect".into()).spawn(move || {
        let _guard = failure.guard("the thread that collects garbage");
        Collector { store, horizon: Timestamp::ZERO, pass: None, clean: Clean::default() }.serve(&queue);
    })
}

/// What the last whole pass left.
#[derive(Default)]
struct Clean {
    /// As many versions had been put when it began.
    puts: u64,
    /// From this horizon on, some of what it left is garbage.
    ripens: Timestamp,
}

struct Collector<E> {
    store: Arc<Store<E>>,
    /// The highest that the actor has given.
    horizon: Timestamp,
    /// The pass that is under way, and how many versions had been put when it began.
    pass: Option<(u64, Pass)>,
    clean: Clean,
}

impl<E: Engine> Collector<E> {
    fn serve(&mut self, queue: &Receiver<Collect>) {
        let mut due = Instant::now();
        loop {
            let asked = match &self.pass {
                Some(_) => queue.recv_timeout(due.saturating_duration_since(Instant::now())),
                // Whether one is worth it is asked with each collection.
                None => queue.recv().map_err(RecvTimeoutError::from),
            };
            let worked = match asked {
                Ok(collect) => self.collect(collect),
                Err(RecvTimeoutError::Timeout) => self.go_on().map(|()| due = Instant::now() + PASS_PAUSE),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // Garbage that stays harms nobody. If the disk has failed, whoever writes next finds out.
            if let Err(error) = worked {
                tracing::warn!("garbage was not collected: {error}");
                self.pass = None;
            }
        }
    }

    fn collect(&mut self, collect: Collect) -> Result<(), StoreError> {
        self.horizon = self.horizon.max(collect.horizon);
        self.pass = self.pass.take().or_else(|| self.next_pass());
        loop {
            let begun = Instant::now();
            if !self.store.collect(collect, COLLECT_STEP)?.more {
                return Ok(());
            }
            // Half of the time at the most: clients want the processor too.
            thread::sleep(begun.elapsed());
        }
    }

    /// A step of the pass that is under way.
    fn go_on(&mut self) -> Result<(), StoreError> {
        let Some((puts, mut pass)) = self.pass.take() else { return Ok(()) };
        let Passed { more, .. } = self.store.pass(&mut pass, PASS_STEP)?;
        if more {
            self.pass = Some((puts, pass));
        } else {
            self.clean = Clean { puts, ripens: pass.ripens() };
        }
        Ok(())
    }

    /// Versions put since, whatever their timestamps, may have been garbage from the start; what the last pass left ripens. After a start nobody knows.
    fn next_pass(&self) -> Option<(u64, Pass)> {
        let puts = self.store.puts();
        (puts > self.clean.puts || self.horizon >= self.clean.ripens).then(|| (puts, Pass::new(self.horizon)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::{Batch, Key, Value};
    use rhumb_store::MemoryEngine;

    fn put(collector: &Collector<MemoryEngine>, at: u64) {
        let mut batch = Batch::new();
        batch.put_version(Key::from("k"), Timestamp::from_bits(at), Some(Value::from("v")));
        collector.store.apply(&batch).expect("in memory");
    }

    /// Passes over all if that is worth it; returns whether it was, and how many versions are left.
    fn collect(collector: &mut Collector<MemoryEngine>, horizon: u64) -> (bool, usize) {
        let horizon = Timestamp::from_bits(horizon);
        collector.collect(Collect { horizon, deletions: Timestamp::ZERO }).expect("in memory");
        let passes = collector.pass.is_some();
        while collector.pass.is_some() {
            collector.go_on().expect("in memory");
        }
        (passes, collector.store.engine().view().range(&[1], &[2], false).count())
    }

    #[test]
    fn a_pass_is_made_while_something_may_have_become_garbage() {
        let store = Arc::new(Store::open(MemoryEngine::new()).expect("empty"));
        let mut collector = Collector { store, horizon: Timestamp::ZERO, pass: None, clean: Clean::default() };
        assert_eq!(collect(&mut collector, 1), (true, 0), "after a start nobody knows");
        [1, 2, 5, 6].into_iter().for_each(|at| put(&collector, at));
        assert_eq!(collect(&mut collector, 3), (true, 3));
        assert_eq!(collect(&mut collector, 4), (false, 3), "nothing of it is garbage before 5");
        assert_eq!(collect(&mut collector, 5), (true, 2));
        assert_eq!(collect(&mut collector, 6), (true, 1));
        assert_eq!(collect(&mut collector, 7), (false, 1), "nothing is left to become garbage");
        put(&collector, 3);
        assert_eq!(collect(&mut collector, 7), (true, 1), "it came late");
    }

    #[test]
    fn what_is_put_during_a_pass_is_passed_over_by_the_next() {
        let store = Arc::new(Store::open(MemoryEngine::new()).expect("empty"));
        let mut collector = Collector { store, horizon: Timestamp::ZERO, pass: None, clean: Clean::default() };
        collector.collect(Collect { horizon: Timestamp::from_bits(9), deletions: Timestamp::ZERO }).expect("in memory");
        put(&collector, 3);
        collector.go_on().expect("in memory");
        assert_eq!(collect(&mut collector, 9), (true, 1));
        assert_eq!(collect(&mut collector, 9), (false, 1));
    }
}
