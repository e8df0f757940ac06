//! The ledger of a site: transactions that are agreed on and not settled here, and what each of them waits for.
//!
//! ```text
//!   registered ── its place is known ──▶ placed ── all that come before it are settled ──▶ ready ── run ──▶ settled
//! ```
//!
//! Epochs are registered in their order. A transaction waits for all of earlier epochs that conflict with it; among those of its
//! own epoch votes decide ([`validation`](super::validation)), unless it conflicts with none: then it has its place at once.
//! Where a transaction stands is its *depth*: one more than the deepest of the conflicting ones before it in its epoch. Epoch
//! and depth are its timestamp, which thus rises along every conflict, and is the same in every region.

use super::epoch::Epoch;
use super::footprint::Footprint;
use super::message::Identifier;
use super::operation::Transaction;
use super::speculation::Conflicts;
use rhumb_core::Key;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A transaction that is not settled.
#[derive(Debug)]
struct Pending {
    transaction: Transaction,
    footprint: Footprint,
    /// Not settled, and come before it.
    waits: BTreeSet<Identifier>,
    /// Wait for it.
    waited_for_by: BTreeSet<Identifier>,
    /// Those of its epoch that conflict with it and come before it, once that is known.
    predecessors: Option<BTreeSet<Identifier>>,
}

/// What is agreed on and not settled.
#[derive(Debug, Default)]
pub struct Ledger {
    pending: BTreeMap<Identifier, Pending>,
    by_key: BTreeMap<Key, BTreeSet<Identifier>>,
    /// Those that read ranges.
    ranged: BTreeSet<Identifier>,
    /// Of those settled in epochs that are not.
    depths: BTreeMap<Identifier, u64>,
    ready: VecDeque<Identifier>,
}

impl Ledger {
    /// How many transactions are not settled.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// True if all that is registered is settled.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The first epoch of which something is not settled.
    pub fn first_unsettled(&self) -> Option<Epoch> {
        self.pending.first_key_value().map(|(identifier, _)| identifier.epoch)
    }

    /// Takes the transactions of the next epoch, in the order of identifiers. Returns those that conflict with one another.
    pub fn register(&mut self, transactions: Vec<(Identifier, Transaction)>) -> Conflicts {
        let mut conflicts = Conflicts::new();
        let identifiers: Vec<Identifier> = transactions.iter().map(|(identifier, _)| *identifier).collect();
        for (identifier, transaction) in transactions {
            let footprint = transaction.footprint();
            let mut waits = BTreeSet::new();
            for other in self.in_the_way_of(&footprint) {
                if other.epoch < identifier.epoch {
                    waits.insert(other);
                } else {
                    conflicts.entry(identifier).or_default().insert(other);
                    conflicts.entry(other).or_default().insert(identifier);
                }
            }
            for key in footprint.keys.keys() {
                self.by_key.entry(key.clone()).or_default().insert(identifier);
            }
            if !footprint.ranges.is_empty() {
                self.ranged.insert(identifier);
            }
            let pending = Pending { transaction, footprint, waits: BTreeSet::new(), waited_for_by: BTreeSet::new(), predecessors: None };
            self.pending.insert(identifier, pending);
            self.wait(identifier, waits);
        }
        for identifier in identifiers.into_iter().filter(|identifier| !conflicts.contains_key(identifier)) {
            self.place(identifier, BTreeSet::new());
        }
        conflicts
    }

    /// Those not settled that conflict with a footprint.
    fn in_the_way_of(&self, footprint: &Footprint) -> BTreeSet<Identifier> {
        let by_key = footprint.keys.keys().filter_map(|key| self.by_key.get(key)).flatten();
        let in_range = |range: &rhumb_core::KeyRange| self.by_key.range(range.start.clone()..range.end.clone().max(range.start.clone()));
        let in_ranges = footprint.ranges.iter().flat_map(in_range).flat_map(|(_, identifiers)| identifiers);
        let candidates: BTreeSet<Identifier> = by_key.chain(in_ranges).chain(&self.ranged).copied().collect();
        candidates.into_iter().filter(|other| self.pending[other].footprint.conflicts(footprint)).collect()
    }

    /// True if nothing that is not settled conflicts with a footprint.
    #[cfg(feature = "planted")]
    pub(super) fn is_free(&self, footprint: &Footprint) -> bool {
        self.in_the_way_of(footprint).is_empty()
    }

    /// What a transaction touches.
    pub fn footprint(&self, identifier: Identifier) -> Option<&Footprint> {
        self.pending.get(&identifier).map(|pending| &pending.footprint)
    }

    /// True if its place is known, or it is settled.
    pub fn is_placed(&self, identifier: Identifier) -> bool {
        self.pending.get(&identifier).is_none_or(|pending| pending.predecessors.is_some())
    }

    /// Gives a transaction its place: after exactly these of its epoch that conflict with it.
    pub fn place(&mut self, identifier: Identifier, predecessors: BTreeSet<Identifier>) {
        let pending = self.pending.get_mut(&identifier).expect("what is placed is registered and not settled");
        assert!(pending.predecessors.is_none(), "{identifier} has its place already");
        pending.predecessors = Some(predecessors.clone());
        self.wait(identifier, predecessors);
    }

    fn wait(&mut self, identifier: Identifier, others: BTreeSet<Identifier>) {
        for other in others {
            if let Some(pending) = self.pending.get_mut(&other) {
                pending.waited_for_by.insert(identifier);
                self.pending.get_mut(&identifier).expect("it is registered").waits.insert(other);
            }
        }
        self.note_ready(identifier);
    }

    fn note_ready(&mut self, identifier: Identifier) {
        let pending = &self.pending[&identifier];
        if pending.predecessors.is_some() && pending.waits.is_empty() {
            self.ready.push_back(identifier);
        }
    }

    /// The next transaction to run, and its depth.
    pub fn take_ready(&mut self) -> Option<(Identifier, u64, &Transaction)> {
        let identifier = self.ready.pop_front()?;
        let pending = &self.pending[&identifier];
        let predecessors = pending.predecessors.as_ref().expect("what is ready has its place");
        let depth = predecessors.iter().map(|before| self.depths[before] + 1).max().unwrap_or(0);
        Some((identifier, depth, &pending.transaction))
    }

    /// A transaction has run; returns it.
    pub fn settle(&mut self, identifier: Identifier, depth: u64) -> Transaction {
        let pending = self.pending.remove(&identifier).expect("what runs is registered");
        self.depths.insert(identifier, depth);
        for key in pending.footprint.keys.keys() {
            let here = self.by_key.get_mut(key).expect("its keys are indexed");
            here.remove(&identifier);
            if here.is_empty() {
                self.by_key.remove(key);
            }
        }
        self.ranged.remove(&identifier);
        for waiting in pending.waited_for_by {
            self.pending.get_mut(&waiting).expect("who waits is not settled").waits.remove(&identifier);
            self.note_ready(waiting);
        }
        pending.transaction
    }

    /// All up to `epoch` is settled.
    pub fn forget(&mut self, epoch: Epoch) {
        self.depths.retain(|identifier, _| identifier.epoch > epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catenae::operation::Operation;
    use crate::catenae::stream_id::StreamId;
    use rhumb_core::RegionId;

    fn id(epoch: u64, place: u16) -> Identifier {
        Identifier { epoch: Epoch(epoch), stream: StreamId::first(RegionId(0)), place }
    }

    fn writes(keys: &[&str]) -> Transaction {
        Transaction::new(keys.iter().map(|key| Operation::Write { key: (*key).into(), value: "v".into() }).collect())
    }

    fn run(ledger: &mut Ledger) -> Vec<(Identifier, u64)> {
        let mut ran = Vec::new();
        while let Some((identifier, depth, _)) = ledger.take_ready() {
            ledger.settle(identifier, depth);
            ran.push((identifier, depth));
        }
        ran
    }

    #[test]
    fn without_conflict_a_place_is_known_at_once() {
        let mut ledger = Ledger::default();
        assert!(ledger.register(vec![(id(1, 0), writes(&["a"])), (id(1, 1), writes(&["b"]))]).is_empty());
        assert_eq!(run(&mut ledger), [(id(1, 0), 0), (id(1, 1), 0)]);
        assert!(ledger.is_empty());
    }

    #[test]
    fn conflicts_with_earlier_epochs_wait_and_within_an_epoch_need_a_place() {
        let mut ledger = Ledger::default();
        let conflicts = ledger.register(vec![(id(1, 0), writes(&["a"])), (id(1, 1), writes(&["a", "b"]))]);
        assert_eq!(conflicts, [(id(1, 0), [id(1, 1)].into()), (id(1, 1), [id(1, 0)].into())].into());
        assert!(ledger.register(vec![(id(2, 0), writes(&["b"]))]).is_empty());
        assert_eq!(run(&mut ledger), []);
        ledger.place(id(1, 0), [id(1, 1)].into());
        assert_eq!(run(&mut ledger), []);
        ledger.place(id(1, 1), [].into());
        assert_eq!(run(&mut ledger), [(id(1, 1), 0), (id(1, 0), 1), (id(2, 0), 0)]);
    }

    #[test]
    fn a_scan_waits_for_a_write_into_its_range() {
        let scan = Transaction::new(vec![Operation::Scan { range: rhumb_core::KeyRange::prefix(b"k"), limit: 9 }]);
        let mut ledger = Ledger::default();
        let conflicts = ledger.register(vec![(id(1, 0), writes(&["k7"])), (id(1, 1), scan.clone()), (id(1, 2), writes(&["z"]))]);
        assert_eq!(conflicts.len(), 2);
        let mut ledger = Ledger::default();
        assert_eq!(ledger.register(vec![(id(1, 0), scan), (id(1, 1), writes(&["k7"]))]).len(), 2);
    }
}
