//! T-YCSB: transactions of several reads and writes of different keys, drawn by Zipf's law.

use super::parameters::{KEYS, OPERATIONS, READ_PERCENT, VALUE_BYTES};
use crate::draft::Draft;
use rhumb_bench::workloads::ycsb::distribution::{Chooser, Distribution};
use rhumb_core::{Key, Rng, Value};

/// What a client draws its transactions from.
#[derive(Clone, Debug)]
pub(super) struct Transactions {
    chooser: Chooser,
    rng: Rng,
}

impl Transactions {
    /// A skew of zero: every key is as likely.
    pub(super) fn new(skew_centi: u32, rng: Rng) -> Transactions {
        let distribution = match skew_centi {
            0 => Distribution::Uniform,
            _ => Distribution::Zipfian { theta: f64::from(skew_centi) / 100.0, scrambled: false },
        };
        Transactions { chooser: Chooser::new(distribution, KEYS), rng }
    }

    /// The next one. Its writes are buffered by the client, so only their number counts among its operations.
    pub(super) fn draw(&mut self) -> Draft {
        let mut keys: Vec<u64> = Vec::with_capacity(OPERATIONS);
        while keys.len() < OPERATIONS {
            let key = self.chooser.choose(KEYS, &mut self.rng);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let mut draft = Draft::default();
        for key in keys {
            let key = Key::new(key.to_be_bytes().to_vec());
            if self.rng.below(100) < READ_PERCENT {
                draft.reads.push(key);
            } else {
                draft.writes.push((key, Some(Value::new(vec![0; VALUE_BYTES]))));
            }
        }
        draft
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_five_operations_on_different_keys_are_reads() {
        let mut transactions = Transactions::new(99, Rng::seeded(1));
        let mut reads = 0;
        for _ in 0..2_000 {
            let draft = transactions.draw();
            let mut keys: Vec<&Key> = draft.reads.iter().chain(draft.writes.iter().map(|(key, _)| key)).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), OPERATIONS);
            reads += draft.reads.len();
        }
        assert!((4_800..5_200).contains(&reads), "{reads}");
    }
}
