//! The driver at work on a workload without a server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rhumb_core::Rng;

use super::{Client, ClientSlot, DriverOptions, Meter, Pace, Results, Turn, Until, Workload, run};
use crate::error::BenchError;
use crate::progress::{Progress, Pulse, Silent, Unit};

const REGIONS: usize = 3;

/// What is done at each turn.
#[derive(Clone, Copy)]
enum Work {
    /// Each operation is of the kind that its region's number says, and done at once.
    Instant,
    /// Takes so long that more falls due meanwhile.
    Slow,
    /// Fails.
    Broken,
}

struct Fake {
    work: Work,
    batch_max: usize,
}

struct FakeClient {
    work: Work,
    slot: ClientSlot,
}

/// Operations, and the most of them that were due at one turn.
#[derive(Default)]
struct Counts {
    operations: u64,
    largest_turn: usize,
}

impl Meter for Counts {
    fn add(&mut self, other: &Counts) {
        self.operations += other.operations;
        self.largest_turn = self.largest_turn.max(other.largest_turn);
    }

    fn pulse(&self, _: Duration) -> Pulse {
        Pulse { committed: self.operations, ..Pulse::default() }
    }
}

impl Workload for Fake {
    type Client = FakeClient;

    fn regions(&self) -> usize {
        REGIONS
    }

    fn kinds(&self) -> usize {
        REGIONS
    }

    fn batch_max(&self) -> usize {
        self.batch_max
    }

    async fn client(&self, slot: ClientSlot, _: Rng) -> Result<FakeClient, BenchError> {
        Ok(FakeClient { work: self.work, slot })
    }
}

impl Client for FakeClient {
    type Meter = Counts;

    async fn work(&mut self, turn: Turn<'_, Counts>) -> Result<(), BenchError> {
        match self.work {
            Work::Instant => tokio::task::yield_now().await,
            Work::Slow => tokio::time::sleep(Duration::from_millis(20)).await,
            Work::Broken => return Err(BenchError::Options("broken".to_owned())),
        }
        for due in &turn.due {
            turn.count(self.slot.region, *due, Instant::now(), |counts| {
                counts.operations += 1;
                counts.largest_turn = counts.largest_turn.max(turn.due.len());
            });
        }
        Ok(())
    }
}

async fn drive(fake: Fake, pace: Pace, until: Until, progress: &dyn Progress) -> Result<Results<Counts>, BenchError> {
    let options = DriverOptions { clients_per_region: 2, pace, warmup: Duration::ZERO, until, ..DriverOptions::default() };
    run(&fake, &options, progress).await
}

#[tokio::test]
async fn a_counted_run_does_so_many_operations_each_counted_by_region_and_kind() {
    let fake = Fake { work: Work::Instant, batch_max: 4 };
    let results = drive(fake, Pace::Closed, Until::Transactions(1_001), &Silent).await.expect("it runs to its end");
    assert_eq!(results.total().operations, 1_001);
    for (number, region) in results.regions.iter().enumerate() {
        assert_eq!(region.meters[number].operations, region.total().operations);
        assert_eq!(results.kind(number).operations, region.total().operations);
    }
}

#[tokio::test]
async fn what_falls_due_while_clients_are_busy_is_begun_together_up_to_a_batch() {
    let fake = Fake { work: Work::Slow, batch_max: 8 };
    let open = Pace::Open { rate_per_s: 30_000.0 };
    let results = drive(fake, open, Until::Transactions(200), &Silent).await.expect("it runs to its end");
    assert_eq!((results.total().operations, results.total().largest_turn), (200, 8));
    assert!(results.regions.iter().all(|region| region.overdue > 0));
}

#[tokio::test]
async fn an_error_of_one_client_ends_the_run() {
    let fake = Fake { work: Work::Broken, batch_max: 1 };
    let outcome = drive(fake, Pace::Closed, Until::Elapsed(Duration::from_secs(3_600)), &Silent).await;
    assert_eq!(outcome.err().map(|error| error.to_string()), Some("broken".to_owned()));
}

/// Watches until something is done, then asks to stop.
#[derive(Default)]
struct Impatient(AtomicBool);

impl Progress for Impatient {
    fn stage(&self, _: &str, _: u64, _: Unit) {}
    fn position(&self, _: u64) {}
    fn pulse(&self, pulse: &Pulse) {
        self.0.store(pulse.committed > 0, Ordering::Relaxed);
    }
    fn stop_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn whoever_watches_can_end_a_run_early_and_has_its_results() {
    let fake = Fake { work: Work::Slow, batch_max: 1 };
    let results = drive(fake, Pace::Closed, Until::Elapsed(Duration::from_secs(3_600)), &Impatient::default()).await;
    let results = results.expect("it ends without an error");
    assert!(results.total().operations > 0 && results.measured_s < 3_600.0);
}

#[tokio::test]
async fn impossible_options_are_refused() {
    for (clients_per_region, rate_per_s) in [(0, 1.0), (1, 0.0), (1, -1.0), (1, f64::NAN), (1, f64::INFINITY)] {
        let options = DriverOptions { clients_per_region, pace: Pace::Open { rate_per_s }, ..DriverOptions::default() };
        let outcome = run(&Fake { work: Work::Instant, batch_max: 1 }, &options, &Silent).await;
        assert!(matches!(outcome, Err(BenchError::Options(_))), "{clients_per_region} clients at {rate_per_s}/s");
    }
}
