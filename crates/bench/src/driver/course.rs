//! What the clients of a run share: whose turn it is, and what was measured so far.

use std::sync::Mutex;
use std::time::Instant;

use rhumb_core::Rng;

use super::arrivals::Arrivals;
use super::meter::Meter;
use super::pace::Pace;
use super::results::{RegionResults, Results};
use super::turn::Turn;
use super::window::Window;
use super::workload::Workload;
use crate::lock::lock;

/// What the clients of a run share.
pub(super) struct Course<M> {
    pub(super) window: Window,
    batch_max: usize,
    regions: Vec<Region<M>>,
}

/// When load falls due in a region, if that does not depend on the clients, and what is measured there.
struct Region<M> {
    arrivals: Option<Mutex<Arrivals>>,
    meters: Vec<Mutex<M>>,
}

impl<M: Meter> Course<M> {
    /// The course of a run of `workload` that begins at `start`.
    pub(super) fn new(workload: &impl Workload, pace: Pace, start: Instant, window: Window, rng: &mut Rng) -> Course<M> {
        let rate = pace.rate_per_s().map(|rate| rate / workload.regions() as f64);
        let region = |_| Region {
            arrivals: rate.map(|rate| Mutex::new(Arrivals::new(start, rate, rng.fork()))),
            meters: (0..workload.kinds()).map(|_| Mutex::default()).collect(),
        };
        Course { window, batch_max: workload.batch_max(), regions: (0..workload.regions()).map(region).collect() }
    }

    /// Waits until something is due in `region` and nobody has taken it; none when the run is over.
    pub(super) async fn next_turn(&self, region: usize) -> Option<Turn<'_, M>> {
        let (window, Region { arrivals, meters }) = (&self.window, &self.regions[region]);
        let mut due = Vec::with_capacity(self.batch_max);
        if let Some(arrivals) = arrivals {
            let first = lock(arrivals).next_before(window.deadline())?;
            window.wait_until(first).await;
            due.push(first);
            let now = Instant::now();
            let mut arrivals = lock(arrivals);
            due.extend(std::iter::from_fn(|| arrivals.next_before(Some(now))).take(self.batch_max - 1));
        } else {
            due.resize(self.batch_max, Instant::now());
        }
        let now = Instant::now();
        due.retain(|_| window.admit(now));
        (!due.is_empty()).then_some(Turn { due, closed: arrivals.is_none(), window, meters })
    }

    /// What is measured so far, over all regions and kinds.
    pub(super) fn total(&self) -> M {
        let mut total = M::default();
        self.regions.iter().flat_map(|region| &region.meters).for_each(|meter| total.add(&lock(meter)));
        total
    }

    /// The results of the run, which ended at `ended`.
    pub(super) fn results(&self, ended: Instant) -> Results<M> {
        let region = |Region { arrivals, meters }: &Region<M>| RegionResults {
            meters: meters.iter().map(|meter| std::mem::take(&mut *lock(meter))).collect(),
            overdue: arrivals.as_ref().map_or(0, |arrivals| lock(arrivals).due_by(ended)),
        };
        let measured_s = ended.saturating_duration_since(self.window.warm()).as_secs_f64();
        Results { regions: self.regions.iter().map(region).collect(), measured_s }
    }
}
