//! How load is offered: as fast as the clients go, or at a rate of its own.

use std::time::{Duration, Instant};

use rhumb_core::Rng;

/// Closed or open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A client begins a transaction when its last one ended.
    Closed,
    /// Transactions fall due at this rate, over all regions, whatever the servers do.
    Open {
        /// Transactions per second.
        rate_per_s: f64,
    },
}

impl Pace {
    /// The rate of an open loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Pace::Closed => None,
            Pace::Open { rate_per_s } => Some(*rate_per_s),
        }
    }

    /// The load in words.
    pub fn describe(&self, clients_per_region: usize) -> String {
        match self {
            Pace::Closed => format!("closed loop, {clients_per_region} clients per region"),
            Pace::Open { rate_per_s } => format!("open loop at {rate_per_s}/s, at most {clients_per_region} at a time per region"),
        }
    }
}

/// The moments at which transactions fall due: a Poisson process, which many independent users make.
#[derive(Debug)]
pub struct Arrivals {
    next: Instant,
    mean_gap: Duration,
    rng: Rng,
}

impl Arrivals {
    /// Arrivals from `start` on, `rate_per_s` a second on average.
    pub fn new(start: Instant, rate_per_s: f64, rng: Rng) -> Arrivals {
        let mut arrivals = Arrivals { next: start, mean_gap: Duration::from_secs_f64(1.0 / rate_per_s), rng };
        arrivals.advance();
        arrivals
    }

    /// Takes the next arrival, unless it is not before `end`.
    pub fn next_before(&mut self, end: Option<Instant>) -> Option<Instant> {
        let due = self.next;
        if end.is_some_and(|end| due >= end) {
            return None;
        }
        self.advance();
        Some(due)
    }

    /// How many arrivals up to `now` nobody has taken.
    pub fn due_by(&mut self, now: Instant) -> u64 {
        std::iter::from_fn(|| self.next_before(Some(now))).count() as u64
    }

    fn advance(&mut self) {
        self.next += self.mean_gap.mul_f64(exponential(&mut self.rng));
    }
}

/// A number from the exponential distribution of mean one.
pub fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.unit()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_at_the_rate_whoever_takes_them() {
        let start = Instant::now();
        let mut arrivals = Arrivals::new(start, 1_000.0, Rng::seeded(7));
        let due = arrivals.due_by(start + Duration::from_secs(10));
        // A Poisson count of mean 10,000 has a standard deviation of 100.
        assert!((9_700..10_300).contains(&due), "{due}");
        assert_eq!(arrivals.due_by(start + Duration::from_secs(10)), 0);
    }

    #[test]
    fn gaps_are_exponential() {
        let mut rng = Rng::seeded(7);
        let gaps: Vec<f64> = (0..100_000).map(|_| exponential(&mut rng)).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let above_two = gaps.iter().filter(|gap| **gap > 2.0).count() as f64 / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((above_two - (-2.0f64).exp()).abs() < 0.003, "{above_two}");
    }
}
