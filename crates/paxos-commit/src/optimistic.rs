//! Optimistic concurrency control: no lock until the vote; then all at once, from the vote to the outcome.

use rhumb_commit::locks::{Locks, Strength};
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::votes::Refusal;
use rhumb_core::TxnId;

/// The locks of the attempts voted for.
#[derive(Debug, Default)]
pub(super) struct Optimistic {
    locks: Locks,
}

impl Optimistic {
    /// Takes all locks, or none.
    pub(super) fn prepare(&mut self, txn: TxnId, footprint: &Footprint) -> Result<(), Refusal> {
        let locks = &mut self.locks;
        let keys = || footprint.keys.iter();
        let is_denied = keys().any(|(key, writes)| match writes {
            true => locks.denies_exclusive(key, txn).is_some(),
            false => locks.exclusive_holder(key, Some(txn)).is_some(),
        });
        if is_denied || footprint.ranges.iter().any(|range| locks.exclusive_holder_within(range, Some(txn)).is_some()) {
            return Err(Refusal::Locked);
        }
        for (key, writes) in keys() {
            match writes {
                true => locks.exclude(key, txn),
                false => locks.share(key, txn, Strength::Prepared),
            }
        }
        footprint.ranges.iter().for_each(|range| locks.share_range(range, txn, Strength::Prepared));
        Ok(())
    }

    pub(super) fn release(&mut self, txn: TxnId) {
        self.locks.release(txn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::{KeyRange, SiteId, Timestamp};

    fn txn(began: u64) -> TxnId {
        TxnId { began: Timestamp::from_bits(began), gateway: SiteId::new(0, 0) }
    }

    fn footprint(keys: &[(&str, bool)], ranges: &[&str]) -> Footprint {
        Footprint {
            keys: keys.iter().map(|(key, writes)| ((*key).into(), *writes)).collect(),
            ranges: ranges.iter().map(|prefix| KeyRange::prefix(prefix.as_bytes())).collect(),
        }
    }

    #[test]
    fn whoever_comes_second_is_refused_until_the_first_is_done() {
        let mut control = Optimistic::default();
        assert_eq!(control.prepare(txn(1), &footprint(&[("a", false), ("b", true)], &[])), Ok(()));
        assert_eq!(control.prepare(txn(2), &footprint(&[("a", false), ("c", true)], &[])), Ok(()), "readers share");
        assert_eq!(control.prepare(txn(3), &footprint(&[("d", true), ("a", true)], &[])), Err(Refusal::Locked));
        assert_eq!(control.prepare(txn(4), &footprint(&[("d", true)], &[])), Ok(()), "who was refused holds nothing");
        assert_eq!(control.prepare(txn(5), &footprint(&[], &["b"])), Err(Refusal::Locked), "a range with a key that is written");
        control.release(txn(1));
        assert_eq!(control.prepare(txn(5), &footprint(&[], &["b"])), Ok(()));
        assert_eq!(control.prepare(txn(6), &footprint(&[("b7", true)], &[])), Err(Refusal::Locked), "a key of a range that is read");
    }
}
