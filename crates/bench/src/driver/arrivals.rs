//! The moments at which operations of an open loop fall due.

use std::time::{Duration, Instant};

use rhumb_core::Rng;

/// The moments at which operations fall due: a Poisson process, which many independent users make.
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
