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
//!
//! Source: section VI.D.1. `register` finds the transactions without conflict; no region votes on them. `place` and `settle` keep the order of section
//! VI.E.

use super::access::AccessIndex;
use super::epoch::Epoch;
use super::message::Identifier;
use super::speculation::Conflicts;
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::one_shot::operation::{OPERATIONS_MAX, Transaction};
use rhumb_core::{Table, work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A transaction that is not settled.
#[derive(Debug)]
struct Pending {
    transaction: Transaction,
    footprint: Footprint,
    /// At how many keys and ranges it waits for earlier epochs, and for how many of its own.
    waits: usize,
    /// Those of its epoch that wait for it.
    waited_for_by: Vec<Identifier>,
    /// Those of its epoch that conflict with it and come before it, once that is known.
    predecessors: Option<BTreeSet<Identifier>>,
}

/// What is agreed on and not settled.
#[derive(Debug, Default)]
pub struct Ledger {
    pending: BTreeMap<Identifier, Pending>,
    accesses: AccessIndex,
    /// Of those settled in epochs that are not.
    depths: BTreeMap<Identifier, u64>,
    ready: VecDeque<Identifier>,
}

impl Ledger {
    /// How many transactions are not settled.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Lists its tables; `transactions_max` at the most are agreed on and not settled.
    pub(super) fn tables(&self, transactions_max: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("ledger.pending", self.pending.len(), transactions_max));
        visit(Table::new("ledger.ready", self.ready.len(), transactions_max));
        visit(Table::new("ledger.depths", self.depths.len(), transactions_max));
        self.accesses.tables(transactions_max * OPERATIONS_MAX, visit);
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
            let entered = self.accesses.enter(identifier, &footprint);
            for other in entered.meets {
                conflicts.entry(identifier).or_default().insert(other);
                conflicts.entry(other).or_default().insert(identifier);
            }
            let pending = Pending { transaction, footprint, waits: entered.waits, waited_for_by: Vec::new(), predecessors: None };
            self.pending.insert(identifier, pending);
        }
        for identifier in identifiers.into_iter().filter(|identifier| !conflicts.contains_key(identifier)) {
            self.place(identifier, BTreeSet::new());
        }
        conflicts
    }

    /// True if nothing that is not settled conflicts with a footprint.
    pub(super) fn is_free(&mut self, footprint: &Footprint) -> bool {
        self.accesses.is_free(footprint)
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
        let mut waits = 0;
        work::add(predecessors.len());
        for before in &predecessors {
            if let Some(pending) = self.pending.get_mut(before) {
                pending.waited_for_by.push(identifier);
                waits += 1;
            }
        }
        let pending = self.pending.get_mut(&identifier).expect("what is placed is registered and not settled");
        assert!(pending.predecessors.is_none(), "{identifier} has its place already");
        pending.predecessors = Some(predecessors);
        pending.waits += waits;
        if pending.waits == 0 {
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
        let mut waiting = self.accesses.leave(identifier, &pending.footprint);
        work::add(pending.waited_for_by.len());
        waiting.extend(pending.waited_for_by);
        // Those that it frees become ready in the order of identifiers.
        waiting.sort_unstable();
        for waiting in waiting {
            let freed = self.pending.get_mut(&waiting).expect("who waits is not settled");
            freed.waits -= 1;
            if freed.waits == 0 && freed.predecessors.is_some() {
                self.ready.push_back(waiting);
            }
        }
        pending.transaction
    }

    /// All up to `epoch` is settled.
    pub fn forget(&mut self, epoch: Epoch) {
        while self.depths.first_entry().is_some_and(|first| first.key().epoch <= epoch) {
            self.depths.pop_first();
        }
    }
}

#[cfg(test)]
mod tests;
