//! What could be had at all: the trace replayed against one pool of tokens that every client reaches in no time.
//!
//! A client takes a token whenever one is left, and gives one back whenever the trace says so and it holds one. No
//! redistribution can keep more tokens in use without knowing what is going to be asked, so this is what it is measured by.

use super::load::client_rngs;
use super::parameters::REGIONS;
use super::setup::Setup;
use rhumb_bench::workloads::quota::trace::{Demand, Want};

/// Transactions per second that a pool of `setup.limit` tokens commits under the load of `setup`.
pub fn throughput(setup: &Setup) -> f64 {
    let mut due: Vec<_> = (0..REGIONS.len())
        .flat_map(|region| {
            let moments = client_rngs(setup, region).0;
            Demand::new(region, setup.points, setup.interval, moments).map(move |(at, want)| (at, region, want))
        })
        .collect();
    due.sort_unstable();
    let mut held = [0_u64; REGIONS.len()];
    let mut committed = 0_u64;
    for (_, region, want) in due {
        match want {
            Want::Acquire if held.iter().sum::<u64>() < setup.limit => held[region] += 1,
            Want::Release if held[region] > 0 => held[region] -= 1,
            _ => continue,
        }
        committed += 1;
    }
    committed as f64 / (setup.length().as_millis_f64() / 1_000.0)
}
