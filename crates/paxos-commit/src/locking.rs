//! Two-phase locking: an attempt waits until it holds all its locks here, and keeps them until its outcome is known here. An older
//! attempt takes over what a younger one holds that was not voted for yet; the younger one waits again.

use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::votes::Refusal;
use rhumb_commit::wound_wait::{Lock, Mode, Outcome, Phase, WoundWait, one_key};
use rhumb_core::TxnId;
use std::collections::{BTreeMap, BTreeSet};

/// What a call changed for some attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It may read.
    Ready(TxnId),
    /// It has lost what it held, and waits again.
    Wounded(TxnId),
}

/// The lock table, and what each attempt in it needs.
#[derive(Debug, Default)]
pub(super) struct Locking {
    table: WoundWait,
    /// Attempts that are not voted for: the locks that each needs, and how many of them it has not been granted.
    growing: BTreeMap<TxnId, (Vec<Lock>, usize)>,
}

impl Locking {
    /// Asks for all locks of an attempt. One whose queue is full waits for none and never gets ready.
    pub(super) fn execute(&mut self, txn: TxnId, footprint: &Footprint) -> Vec<Change> {
        let mut changes = Vec::new();
        self.growing.insert(txn, (locks(footprint), 0));
        self.request(txn, &mut changes);
        changes
    }

    fn request(&mut self, txn: TxnId, changes: &mut Vec<Change>) {
        let (locks, missing) = self.growing.get_mut(&txn).expect("it is growing");
        *missing = locks.len();
        for lock in locks.clone() {
            let Ok(outcomes) = self.table.request(txn, lock, Phase::Growing) else { break };
            self.take(outcomes, changes);
        }
    }

    /// Follows up on what the table says: the wounded wait again, as if they had come now. Grants first, as that may wound whom
    /// they are for.
    fn take(&mut self, outcomes: Vec<Outcome>, changes: &mut Vec<Change>) {
        let mut wounded = Vec::new();
        for outcome in outcomes {
            match outcome {
                Outcome::Wounded(txn) => wounded.push(txn),
                Outcome::Granted(txn, _) => {
                    // One grant for each request: no lock is asked for twice.
                    let (_, missing) = self.growing.get_mut(&txn).expect("only who grows is granted a lock");
                    *missing -= 1;
                    if *missing == 0 {
                        changes.push(Change::Ready(txn));
                    }
                }
            }
        }
        for txn in wounded {
            let outcomes = self.table.release(txn);
            changes.push(Change::Wounded(txn));
            self.take(outcomes, changes);
            self.request(txn, changes);
        }
    }

    /// Makes its locks firm if it holds them all.
    pub(super) fn prepare(&mut self, txn: TxnId, footprint: &Footprint) -> Result<(), Refusal> {
        match self.growing.get(&txn) {
            Some((held, 0)) if *held == locks(footprint) => {
                self.growing.remove(&txn);
                self.table.prepare(txn);
                Ok(())
            }
            Some(_) => Err(Refusal::LockLost),
            None => Err(Refusal::UnknownTransaction),
        }
    }

    pub(super) fn release(&mut self, txn: TxnId) -> Vec<Change> {
        let mut changes = Vec::new();
        self.growing.remove(&txn);
        let outcomes = self.table.release(txn);
        self.take(outcomes, &mut changes);
        changes
    }
}

fn locks(footprint: &Footprint) -> Vec<Lock> {
    let mode = |writes: bool| if writes { Mode::Exclusive } else { Mode::Shared };
    let keys = footprint.keys.iter().map(|(key, writes)| Lock { range: one_key(key), mode: mode(*writes) });
    let ranges: BTreeSet<Lock> = footprint.ranges.iter().map(|range| Lock { range: range.clone(), mode: Mode::Shared }).collect();
    keys.chain(ranges).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::{SiteId, Timestamp};

    fn txn(began: u64) -> TxnId {
        TxnId { began: Timestamp::from_bits(began), gateway: SiteId::new(0, 0) }
    }

    fn writes(keys: &[&str]) -> Footprint {
        Footprint { keys: keys.iter().map(|key| ((*key).into(), true)).collect(), ranges: vec![] }
    }

    #[test]
    fn the_younger_waits_and_the_older_wounds() {
        let mut control = Locking::default();
        assert_eq!(control.execute(txn(5), &writes(&["a", "b"])), [Change::Ready(txn(5))]);
        assert_eq!(control.execute(txn(7), &writes(&["b"])), [], "it is younger");
        assert_eq!(control.execute(txn(3), &writes(&["b"])), [Change::Ready(txn(3)), Change::Wounded(txn(5))]);
        assert_eq!(control.prepare(txn(5), &writes(&["a", "b"])), Err(Refusal::LockLost));
        assert_eq!(control.prepare(txn(3), &writes(&["b"])), Ok(()));
        assert_eq!(control.execute(txn(2), &writes(&["b"])), [], "who is voted for is wounded no more");
        assert_eq!(control.release(txn(3)), [Change::Ready(txn(2))]);
        assert_eq!(control.release(txn(2)), [Change::Ready(txn(5))], "the wounded one comes to its turn by age");
        assert_eq!(control.release(txn(5)), [Change::Ready(txn(7))]);
        assert_eq!(control.prepare(txn(9), &writes(&["a"])), Err(Refusal::UnknownTransaction));
    }
}
