//! Validation: which of the regions' orders of an epoch becomes everybody's.
//!
//! A vote is a region's order of the conflicting transactions. A transaction's *fingerprint* in it is a hash of the transaction
//! and of the fingerprints of all that conflict with it and come before it. Equal fingerprints mean the same execution, all
//! the way down. A fingerprint that a majority of the regions vote for is *chosen*. What is chosen
//!
//! * is closed under predecessors: who votes for it has voted for theirs;
//! * has no cycle: two chosen transactions that conflict share a voter, in whose order one is before the other.
//!
//! A transaction that can have no majority any more has *failed*: it runs after the chosen ones that it conflicts with, in the
//! order of identifiers. Nothing here depends on when votes arrive: more votes never change what few have decided.
//!
//! Source: sections VI.D.2, and VI.E for a transaction without a majority. Those without conflict never come here:
//! [`ledger`](super::ledger).

use super::message::{Identifier, Order};
use super::speculation::Conflicts;
use rhumb_core::{RegionId, work};
use std::collections::{BTreeMap, BTreeSet};

/// The fingerprint of an execution: 128 bits of FNV-1a over the transaction and its predecessors' fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u128);

/// Where a transaction stands among those of its epoch that it conflicts with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// A majority ran it after exactly these.
    Chosen(BTreeSet<Identifier>),
    /// No majority can agree.
    Failed,
}

impl Verdict {
    /// What a transaction with this verdict comes after, among the `others` that conflict with it: if chosen, what was chosen
    /// with it; if failed, the chosen ones, and those failed ones that come before it. `None` as long as that is open.
    pub fn predecessors(
        &self,
        others: &BTreeSet<Identifier>,
        verdicts: &BTreeMap<Identifier, Verdict>,
        comes_before: impl Fn(Identifier) -> bool,
    ) -> Option<BTreeSet<Identifier>> {
        if let Verdict::Chosen(predecessors) = self {
            return Some(predecessors.clone());
        }
        let mut predecessors = BTreeSet::new();
        for other in others {
            match verdicts.get(other)? {
                Verdict::Chosen(_) => predecessors.insert(*other),
                Verdict::Failed => comes_before(*other) && predecessors.insert(*other),
            };
        }
        Some(predecessors)
    }
}

/// The votes on an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Votes {
    /// By region: its order; `None` if it has none and will have none.
    votes: BTreeMap<RegionId, Option<Order>>,
}

impl Votes {
    /// Takes a region's vote, the first that counts.
    pub fn cast(&mut self, region: RegionId, order: Order) {
        self.votes.entry(region).or_insert(Some(order));
    }

    /// A region that has not voted by now will not.
    pub fn close(&mut self, region: RegionId) {
        self.votes.entry(region).or_insert(None);
    }

    /// How many regions have voted, or will not.
    pub fn count(&self) -> usize {
        self.votes.len()
    }

    /// True if nothing more is to come from `region`.
    pub fn has(&self, region: RegionId) -> bool {
        self.votes.contains_key(&region)
    }

    /// What these votes decide about the transactions that conflict, with so many regions in all.
    pub fn verdicts(&self, conflicts: &Conflicts, regions: usize) -> BTreeMap<Identifier, Verdict> {
        self.verdicts_by(conflicts, regions, Execution::of)
    }

    /// The same, with votes read in some way.
    pub fn verdicts_by(
        &self,
        conflicts: &Conflicts,
        regions: usize,
        read: impl Fn(&Order, &Conflicts) -> Option<Execution>,
    ) -> BTreeMap<Identifier, Verdict> {
        let orders = self.votes.values().flatten();
        let executions: Vec<Execution> = orders.filter_map(|order| read(order, conflicts)).collect();
        let outstanding = regions - self.votes.len();
        let majority = regions / 2 + 1;
        let verdict = |&transaction: &Identifier| {
            let mut counts: BTreeMap<Fingerprint, usize> = BTreeMap::new();
            work::add(1 + executions.len());
            executions.iter().for_each(|execution| *counts.entry(execution.fingerprints[&transaction]).or_default() += 1);
            let (fingerprint, count) = counts.into_iter().max_by_key(|(_, count)| *count).unzip();
            let count = count.unwrap_or(0);
            if count >= majority {
                let voter = executions.iter().find(|execution| Some(execution.fingerprints[&transaction]) == fingerprint);
                let predecessors = voter.expect("somebody voted for it").predecessors(transaction, conflicts);
                return Some((transaction, Verdict::Chosen(predecessors)));
            }
            (count + outstanding < majority).then_some((transaction, Verdict::Failed))
        };
        conflicts.keys().filter_map(verdict).collect()
    }
}

/// How one region ran an epoch.
pub struct Execution {
    places: BTreeMap<Identifier, usize>,
    /// Of each conflicting transaction.
    pub fingerprints: BTreeMap<Identifier, Fingerprint>,
}

impl Execution {
    /// Reads a vote; `None` if it does not order exactly the transactions that conflict.
    pub fn of(order: &Order, conflicts: &Conflicts) -> Option<Execution> {
        let places: BTreeMap<Identifier, usize> = order.sequence.iter().copied().zip(0..).collect();
        if places.len() != order.sequence.len() || !places.keys().eq(conflicts.keys()) {
            return None;
        }
        let mut execution = Execution { places, fingerprints: BTreeMap::new() };
        for &transaction in &order.sequence {
            let before = execution.predecessors(transaction, conflicts);
            let fingerprint = Fingerprint::of(transaction, before.iter().map(|before| execution.fingerprints[before]));
            execution.fingerprints.insert(transaction, fingerprint);
        }
        Some(execution)
    }

    /// Reads a vote as if fingerprints were of direct predecessors only, not of theirs: what the paper compares.
    pub fn of_direct(order: &Order, conflicts: &Conflicts) -> Option<Execution> {
        let mut execution = Execution::of(order, conflicts)?;
        for &transaction in &order.sequence {
            let before = execution.predecessors(transaction, conflicts);
            let alone = before.into_iter().map(|before| Fingerprint::of(before, std::iter::empty()));
            execution.fingerprints.insert(transaction, Fingerprint::of(transaction, alone));
        }
        Some(execution)
    }

    /// Those that conflict with `transaction` and came before it.
    pub fn predecessors(&self, transaction: Identifier, conflicts: &Conflicts) -> BTreeSet<Identifier> {
        work::add(1 + conflicts[&transaction].len());
        let place = self.places[&transaction];
        conflicts[&transaction].iter().copied().filter(|other| self.places[other] < place).collect()
    }
}

impl Fingerprint {
    /// Of a transaction after predecessors with these fingerprints, in the order of their identifiers.
    pub fn of(transaction: Identifier, predecessors: impl Iterator<Item = Fingerprint>) -> Fingerprint {
        let Identifier { epoch, stream, place } = transaction;
        let own = [epoch.0 as u128, u128::from(u16::from_be_bytes(stream.to_be_bytes())), u128::from(place)];
        let words = own.into_iter().chain(predecessors.map(|fingerprint| fingerprint.0));
        let bytes = words.flat_map(u128::to_be_bytes);
        Fingerprint(bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        }))
    }
}

#[cfg(test)]
mod tests;
