//! What operations a transaction is made of: the core workloads A to F, or a ratio of reads to writes.

use rhumb_core::Rng;

use super::distribution::Distribution;
use crate::error::BenchError;

/// The usual skew of the core workloads.
pub const THETA: f64 = 0.99;

/// One operation on one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Reads all fields of a record.
    Read,
    /// Writes one field of a record.
    Update,
    /// Adds a record.
    Insert,
    /// Reads up to a hundred records in the order of their keys.
    Scan,
    /// Reads a record and writes one of its fields.
    ReadModifyWrite,
}

impl Operation {
    /// True if it changes something.
    pub fn writes(self) -> bool {
        !matches!(self, Operation::Read | Operation::Scan)
    }
}

/// Operations with their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    weights: Vec<(Operation, u32)>,
}

impl Mix {
    /// A mix by weights, of which one at least is above zero.
    pub fn new(weights: &[(Operation, u32)]) -> Result<Mix, BenchError> {
        if weights.iter().all(|(_, weight)| *weight == 0) {
            return Err(BenchError::Options("a mix of operations needs one with a weight above zero".to_owned()));
        }
        Ok(Mix { weights: weights.to_vec() })
    }

    /// `reads` reads to `writes` updates, as in 1:1.
    pub fn ratio(reads: u32, writes: u32) -> Result<Mix, BenchError> {
        Mix::new(&[(Operation::Read, reads), (Operation::Update, writes)])
    }

    /// Draws an operation.
    pub fn draw(&self, rng: &mut Rng) -> Operation {
        let total = self.weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut at = rng.below(total);
        for (operation, weight) in &self.weights {
            if at < u64::from(*weight) {
                return *operation;
            }
            at -= u64::from(*weight);
        }
        unreachable!("the draw is below the sum of the weights")
    }

    /// True if it contains `operation`.
    pub fn contains(&self, operation: Operation) -> bool {
        self.weights.iter().any(|(known, weight)| *known == operation && *weight > 0)
    }
}

/// The core workloads of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Update heavy: half reads, half updates.
    A,
    /// Read mostly: 95 % reads, 5 % updates.
    B,
    /// Read only.
    C,
    /// Read latest: 95 % reads of what 5 % inserts have added.
    D,
    /// Short ranges: 95 % scans, 5 % inserts.
    E,
    /// Read-modify-write: half of it, half reads.
    F,
}

impl Preset {
    /// The operations and the popularity of records.
    pub fn parts(self) -> (Mix, Distribution) {
        use Operation::{Insert, Read, ReadModifyWrite, Scan, Update};
        let zipfian = Distribution::Zipfian { theta: THETA, scrambled: true };
        let (weights, distribution): (&[(Operation, u32)], _) = match self {
            Preset::A => (&[(Read, 50), (Update, 50)], zipfian),
            Preset::B => (&[(Read, 95), (Update, 5)], zipfian),
            Preset::C => (&[(Read, 100)], zipfian),
            Preset::D => (&[(Read, 95), (Insert, 5)], Distribution::Latest { theta: THETA }),
            Preset::E => (&[(Scan, 95), (Insert, 5)], zipfian),
            Preset::F => (&[(Read, 50), (ReadModifyWrite, 50)], zipfian),
        };
        (Mix { weights: weights.to_vec() }, distribution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_in_their_proportions() {
        let (mix, _) = Preset::B.parts();
        let mut rng = Rng::seeded(7);
        let updates = (0..100_000).filter(|_| mix.draw(&mut rng) == Operation::Update).count();
        // A binomial count of mean 5,000 has a standard deviation of 69.
        assert!((4_700..5_300).contains(&updates), "{updates}");
    }

    #[test]
    fn a_ratio_draws_reads_and_updates_alone() {
        let mix = Mix::ratio(0, 3).expect("a mix");
        assert_eq!(mix.draw(&mut Rng::seeded(1)), Operation::Update);
        assert!(!mix.contains(Operation::Read) && !mix.contains(Operation::Insert));
        assert!(Mix::ratio(0, 0).is_err());
    }
}
