//! What a seed decides of a cluster.

use rhumb_core::{Rng, Span};
use rhumb_sim::FaultRates;

/// One seed of so many has transactions as large as they may be.
const BULKY_ONE_OF: u64 = 8;

/// What a seed decides of the cluster.
pub struct Shape {
    pub regions: usize,
    pub shards: u16,
    pub sync: Span,
    /// Many short crashes instead of a storm.
    flaky: bool,
    /// Versions are collected soon.
    pub collects: bool,
    /// Transactions are as large as they may be now and then.
    pub is_bulky: bool,
}

impl Shape {
    /// Draws it.
    pub fn draw(rng: &mut Rng, seed: u64) -> Shape {
        let syncs = [100, 1_000, 1_000, 1_000, 5_000, 20_000, 100_000];
        Shape {
            regions: *rng.pick(&[3, 3, 3, 5]).expect("there are some to pick from"),
            shards: if rng.chance(0.7) { 1 } else { 2 },
            sync: Span::from_micros(*rng.pick(&syncs).expect("there are some to pick from")),
            flaky: rng.chance(0.3),
            collects: rng.chance(0.3),
            is_bulky: seed % BULKY_ONE_OF == BULKY_ONE_OF - 1,
        }
    }

    /// What goes wrong.
    pub fn rates(&self) -> FaultRates {
        if self.flaky { FaultRates::flaky() } else { FaultRates::stormy() }
    }
}
