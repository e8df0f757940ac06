//! The transactions that a site has forwarded and whose outcome it does not know: they are recognised in the streams by their contents.
//!
//! Equal transactions are kept together, so that an entry is searched once, however many are on their way. Which one of several equal transactions an
//! entry holds only the coordinator's `Sealed` tells, which arrives before the entry or after it.
//!
//! A transaction names its stream ([`coordinator_of`](crate::stream_id::coordinator_of)), so those alike are looked for in one.

use crate::epoch::Epoch;
use crate::message::{Entry, Forwarded, Identifier};
use crate::stream_id::StreamId;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::actor::RequestId;
use rhumb_core::{SiteId, work};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a transaction stands: the stream, the entry's place in it, and the place in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) stream: StreamId,
    pub(super) index: u64,
    pub(super) place: u16,
}

/// Where a transaction goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) stream: StreamId,
    /// Who alone can seal it.
    pub(super) to: SiteId,
    /// The last epoch in which it may be sealed.
    pub(super) until: Epoch,
    /// The last entry of the stream that was chosen before it went.
    pub(super) after: u64,
}

/// The epoch of an entry, and who sealed it.
#[derive(Clone, Copy, Debug)]
struct Entered {
    epoch: Epoch,
    author: SiteId,
}

/// A transaction on its way by another coordinator.
#[derive(Debug)]
pub(super) struct Away {
    pub(super) id: RequestId,
    pub(super) transaction: Arc<Transaction>,
    /// The tick in which it came.
    pub(super) since: u64,
    pub(super) way: Way,
    /// Where it stands, if that is what the stream has there.
    said: Vec<Spot>,
}

/// What becomes by its name of a transaction that was removed.
#[derive(Debug)]
pub(super) enum Left {
    /// An entry that counts may hold it.
    MayRun(Away),
    /// None does, nor will.
    NeverRuns(Away),
}

/// Transactions that are the same.
#[derive(Debug, Default)]
struct Alike {
    names: BTreeSet<Forwarded>,
    /// Where entries that count have one of them, of which epoch, and who sealed it. Since the first of those names went.
    seen: BTreeMap<Spot, Entered>,
}

/// All that is on its way. Who comes later has the higher name.
#[derive(Debug, Default)]
pub(super) struct Aways {
    by_name: BTreeMap<Forwarded, Away>,
    /// Of their transactions.
    bytes: usize,
    alike: BTreeMap<Arc<Transaction>, Alike>,
    said: BTreeMap<Spot, Forwarded>,
}

impl Away {
    /// A client's transaction that came in tick `since`.
    pub(super) fn new(id: RequestId, transaction: Transaction, since: u64, way: Way) -> Away {
        Away { id, transaction: Arc::new(transaction), since, way, said: Vec::new() }
    }

    /// The first place where it can stand.
    fn first_spot(&self) -> Spot {
        Spot { stream: self.way.stream, index: self.way.after + 1, place: 0 }
    }

    /// True if it may be what that coordinator sealed there.
    fn may_be(&self, spot: Spot, entered: Entered) -> bool {
        let Way { stream, to, until, after } = self.way;
        to == entered.author && entered.epoch <= until && spot.stream == stream && spot.index > after
    }
}

impl Aways {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Places that are remembered for them: those where one of them may stand.
    pub(super) fn seen(&self) -> usize {
        self.said.len() + self.alike.values().map(|alike| alike.seen.len()).sum::<usize>()
    }

    /// Bytes of their transactions.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// One more goes.
    pub(super) fn insert(&mut self, name: Forwarded, away: Away) {
        self.bytes += away.transaction.bytes();
        self.alike.entry(Arc::clone(&away.transaction)).or_default().names.insert(name);
        self.by_name.insert(name, away);
    }

    /// `by` says that it has sealed it in the entry at place `index` of its stream, at this place of the batch.
    pub(super) fn say(&mut self, by: SiteId, name: Forwarded, index: u64, place: u16) {
        if let Some(away) = self.by_name.get_mut(&name).filter(|away| away.way.to == by) {
            let spot = Spot { stream: away.way.stream, index, place };
            away.said.push(spot);
            self.said.insert(spot, name);
        }
    }

    /// An entry that counts is chosen at place `index` of `stream`. Returns those that are said to stand in it.
    pub(super) fn see(&mut self, stream: StreamId, index: u64, entry: &Entry) -> Vec<Forwarded> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut said = Vec::new();
        for (place, transaction) in (0..).zip(&entry.batch) {
            let Some(alike) = self.alike.get_mut(transaction) else { continue };
            let spot = Spot { stream, index, place };
            alike.seen.insert(spot, Entered { epoch: entry.epoch, author: entry.author });
            said.extend(self.said.get(&spot));
        }
        said
    }

    /// Where a transaction stands, once its coordinator has said so and the stream has it there: the epoch and the place in the batch.
    /// It is on its way no more.
    pub(super) fn find(&mut self, name: Forwarded) -> Option<(Away, Identifier)> {
        let away = self.by_name.get(&name)?;
        let alike = self.alike.get_mut(&away.transaction).expect("what is on its way is like itself");
        let found = away.said.iter().find_map(|spot| {
            let entered = *alike.seen.get(spot)?;
            away.may_be(*spot, entered).then_some((*spot, entered.epoch))
        });
        let (spot, epoch) = found?;
        // It is this one, and no other one.
        alike.seen.remove(&spot);
        let away = self.remove(name).expect("it was just there");
        Some((away, Identifier { epoch, stream: spot.stream, place: spot.place }))
    }

    /// Removes those of which `is_over` holds, in the order of names.
    pub(super) fn remove_if(&mut self, is_over: impl Fn(&Away) -> bool) -> Vec<Left> {
        work::add(self.by_name.len());
        let over: Vec<Forwarded> = self.by_name.iter().filter(|(_, away)| is_over(away)).map(|(name, _)| *name).collect();
        let may_be = |away: &Away| {
            let seen = &self.alike[&away.transaction].seen;
            seen.range(away.first_spot()..).any(|(spot, entered)| away.may_be(*spot, *entered))
        };
        let sealed: Vec<bool> = over.iter().map(|name| may_be(&self.by_name[name])).collect();
        let removed = over.into_iter().map(|name| self.remove(name).expect("it was just there"));
        removed.zip(sealed).map(|(away, may_run)| if may_run { Left::MayRun(away) } else { Left::NeverRuns(away) }).collect()
    }

    fn remove(&mut self, name: Forwarded) -> Option<Away> {
        let away = self.by_name.remove(&name)?;
        self.bytes -= away.transaction.bytes();
        for spot in &away.said {
            if self.said.get(spot) == Some(&name) {
                self.said.remove(spot);
            }
        }
        let alike = self.alike.get_mut(&away.transaction).expect("what is on its way is like itself");
        alike.names.remove(&name);
        match alike.names.first() {
            None => drop(self.alike.remove(&away.transaction)),
            Some(first) => alike.seen = alike.seen.split_off(&self.by_name[first].first_spot()),
        }
        Some(away)
    }
}

#[cfg(test)]
mod tests;
