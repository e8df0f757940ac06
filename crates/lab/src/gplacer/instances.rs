//! Datacenters all over the globe that nobody has measured: the random instances of section 5.2.

use super::placed::commits;
use rhumb_core::Rng;
use rhumb_plan::{Client, Matrix, Objective, Problem, Protocol, Request};
use std::sync::Arc;

/// The longest round trip, in microseconds.
const RTT_US_MAX: u32 = 500_000;
/// The most clients of a region, in whatever unit.
const CLIENTS_MAX: u64 = 10;

/// `regions` regions with random round trips of up to 500 ms, no longer than by way of others, and up to ten clients each:
/// where to put `2 faults + 1` replicas so that commits of two rounds, which may be handed over, take the least on average?
pub fn random(regions: usize, faults: usize, rng: &mut Rng) -> Problem {
    let matrix = Matrix::random(regions, RTT_US_MAX, rng).expect("few regions, short trips");
    let clients: Vec<Client> = (0..regions)
        .map(|region| Client { region, clients: rng.between(0, CLIENTS_MAX), reads_milli: 0 })
        .filter(|client| client.clients > 0)
        .collect();
    let request = Request {
        matrix: Arc::new(matrix),
        clients,
        model: commits(Protocol::TwoRounds, true),
        faults,
        objective: Objective::Mean,
        constraints: Vec::new(),
        prices: Vec::new(),
    };
    Problem::new(request).expect("of ten regions and more, some have clients")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_round_is_shorter_and_a_seed_decides() {
        let draw = |seed| random(12, 2, &mut Rng::seeded(seed));
        let problem = draw(1);
        let trip = |from, to| problem.matrix().rtt_us(from, to);
        for (a, b, c) in (0..12 * 12 * 12).map(|at| (at / 144, at / 12 % 12, at % 12)) {
            assert!(trip(a, c) <= trip(a, b) + trip(b, c));
        }
        assert_eq!(problem.matrix(), draw(1).matrix());
        assert_ne!(problem.matrix(), draw(2).matrix());
        assert_eq!(problem.replicas(), 5);
    }
}
