//! A lock table whose requests wait: shared and exclusive locks on keys and ranges, free of deadlock by the age of transactions.
//!
//! For protocols of strict two-phase locking. Conflicting requests queue by age, the oldest first; the age of a transaction
//! is its id, when it began. Whom a request of `T` finds in its way:
//!
//! | in the way ↓ / `T` is | growing | preparing |
//! |---|---|---|
//! | holder or preparing waiter, younger, not prepared here | wounded | wounded |
//! | holder, younger, prepared here | `T` waits | `T` waits |
//! | holder or waiter, older | `T` waits | `T` is refused |
//! | growing waiter, younger | waits on, behind `T` | waits on, behind `T` |
//!
//! *Growing*: the transaction is prepared nowhere. *Preparing*: this request is part of its prepare, so that it may already be
//! prepared at another site and can be wounded there no more. Wound-wait by itself deadlocks there: `P` prepared at A waits at
//! B for the older `T`, which waits at A for `P`. So a preparing transaction never waits for an older one.
//!
//! Why nothing deadlocks, in one table or over many: a growing transaction waits for older ones or for preparing ones, a
//! preparing one only for younger preparing ones (a prepared one is). From a preparing transaction all paths go to younger and
//! younger ones, and without those all go to older and older ones. What a caller owes: no request of a transaction is growing
//! once one was preparing, anywhere, and none waits, anywhere, when the first preparing one is made.
//!
//! A wounded transaction holds nothing any more at once and is remembered until it is released: it must not prepare here.
//! Source: wound-wait is Rosenkrantz, Stearns and Lewis, *System level concurrency control for distributed database systems*
//! (TODS 1978); the column *preparing* is ours.
//!
//! Invariants: no two transactions hold conflicting locks; whoever waits has a conflicting holder or a conflicting older
//! waiter; all functions of the table return the same for the same calls; a lock of one key, asked for or released, costs what the ranges that
//! are locked cost to look at, and nothing for the other keys of its transaction.

mod spans;

#[cfg(test)]
mod tests;

use rhumb_core::{Key, KeyRange, Table, TxnId};
use spans::Spans;
use std::collections::BTreeSet;
use thiserror::Error;

/// How many requests wait in a table at the most; one more is refused.
pub const WAITING_MAX: usize = 4_096;

/// What a lock lets others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Share it.
    Shared,
    /// Nothing.
    Exclusive,
}

impl Mode {
    /// True if two transactions may not hold one key in these modes.
    pub fn conflicts(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }
}

/// Where in its life a transaction asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It is prepared nowhere.
    Growing,
    /// It may be prepared at another site.
    Preparing,
}

/// A request for a lock, and the lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lock {
    /// The keys locked; see [`one_key`] for a single one.
    pub range: KeyRange,
    /// How.
    pub mode: Mode,
}

/// The range of `key` alone.
pub fn one_key(key: &Key) -> KeyRange {
    KeyRange::new(key.clone(), key.successor())
}

/// What became of transactions because of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The transaction lost all locks and requests that it had here. It is younger than the one that asked, and not prepared.
    Wounded(TxnId),
    /// The transaction holds the lock that it asked for, now or earlier.
    Granted(TxnId, Lock),
}

/// Why a request was not taken. It changed nothing.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// The transaction was wounded here before.
    #[error("an older transaction took its locks over")]
    Wounded,
    /// It is preparing, and an older one is in the way.
    #[error("an older transaction is in the way")]
    OlderInTheWay,
    /// [`WAITING_MAX`] requests wait.
    #[error("too many requests wait for locks")]
    QueueFull,
}

/// The locks of one replica, and who waits for them.
#[derive(Clone, Debug, Default)]
pub struct WoundWait {
    held: Spans<Mode>,
    waiting: Spans<(Mode, Phase)>,
    prepared: BTreeSet<TxnId>,
    wounded: BTreeSet<TxnId>,
}

impl WoundWait {
    /// Asks for `lock`. The outcomes say who was wounded for it and who was granted what; if `txn` is not among those granted,
    /// it waits and will be among those of a later call. Asking again for what is held or waited for changes nothing.
    ///
    /// # Panics
    /// If `txn` is prepared here: such a transaction has all locks that it needs.
    pub fn request(&mut self, txn: TxnId, lock: Lock, phase: Phase) -> Result<Vec<Outcome>, Refused> {
        if self.wounded.contains(&txn) {
            return Err(Refused::Wounded);
        }
        if lock.range.is_empty() || self.covers(txn, &lock) {
            return Ok(vec![Outcome::Granted(txn, lock)]);
        }
        assert!(!self.prepared.contains(&txn), "{txn} is prepared and asks for another lock");
        if self.waiting.covering(txn, &lock.range).any(|(range, (mode, _))| *range == lock.range && *mode == lock.mode) {
            return Ok(Vec::new());
        }
        if phase == Phase::Preparing && self.in_the_way(txn, &lock).any(|other| other < txn) {
            return Err(Refused::OlderInTheWay);
        }
        if self.waiting.len() >= WAITING_MAX && self.in_the_way(txn, &lock).next().is_some() {
            return Err(Refused::QueueFull);
        }
        let victims = self.victims(txn, &lock);
        let mut outcomes = Vec::new();
        let mut freed = Vec::new();
        for victim in victims {
            freed.append(&mut self.forget(victim));
            self.wounded.insert(victim);
            outcomes.push(Outcome::Wounded(victim));
        }
        self.waiting.insert(txn, lock.range.clone(), (lock.mode, phase));
        self.grant(&freed, Some((txn, lock, phase)), &mut outcomes);
        Ok(outcomes)
    }

    /// Makes the locks of `txn` firm until it is released: it can be wounded here no more.
    ///
    /// # Panics
    /// If it was wounded here or waits here: it must not prepare.
    pub fn prepare(&mut self, txn: TxnId) {
        assert!(!self.is_wounded(txn), "{txn} was wounded and prepares");
        assert!(!self.is_waiting(txn), "{txn} waits for a lock and prepares");
        self.prepared.insert(txn);
    }

    /// Releases all that `txn` holds or waits for and forgets it. Those who waited for it are granted what they may have.
    pub fn release(&mut self, txn: TxnId) -> Vec<Outcome> {
        let freed = self.forget(txn);
        self.prepared.remove(&txn);
        self.wounded.remove(&txn);
        let mut outcomes = Vec::new();
        self.grant(&freed, None, &mut outcomes);
        outcomes
    }

    /// Lists its parts; `transactions_max` at the most have anything in it, and hold `held_max` locks.
    pub fn tables(&self, transactions_max: usize, held_max: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("locks.held", self.held.len(), held_max));
        visit(Table::new("locks.waiting", self.waiting.len(), WAITING_MAX));
        visit(Table::new("locks.prepared", self.prepared.len(), transactions_max));
        visit(Table::new("locks.wounded", self.wounded.len(), transactions_max));
    }

    /// How many locks are held.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// True if `txn` was wounded and not released since.
    pub fn is_wounded(&self, txn: TxnId) -> bool {
        self.wounded.contains(&txn)
    }

    /// True if a request of `txn` waits.
    pub fn is_waiting(&self, txn: TxnId) -> bool {
        self.waiting.of(txn).next().is_some()
    }

    /// True if `txn` is prepared here.
    pub fn is_prepared(&self, txn: TxnId) -> bool {
        self.prepared.contains(&txn)
    }

    /// True if one lock of `txn` covers `lock`.
    pub fn covers(&self, txn: TxnId, lock: &Lock) -> bool {
        self.held.covering(txn, &lock.range).any(|(_, mode)| *mode >= lock.mode)
    }

    /// The locks of `txn`, in no order that means anything.
    pub fn held(&self, txn: TxnId) -> impl Iterator<Item = Lock> + '_ {
        self.held.of(txn).map(|(range, mode)| Lock { range: range.clone(), mode: *mode })
    }

    /// All transactions that hold, wait for or have lost a lock.
    pub fn transactions(&self) -> BTreeSet<TxnId> {
        self.held.owners().into_iter().chain(self.waiting.owners()).chain(self.wounded.iter().copied()).collect()
    }

    /// Who waits for whom: for every waiting transaction those it cannot go before.
    pub fn waits_for(&self) -> BTreeSet<(TxnId, TxnId)> {
        let mut edges = BTreeSet::new();
        for (txn, lock, _) in self.waiting.all().map(request) {
            edges.extend(self.in_the_way(txn, &lock).map(|other| (txn, other)));
        }
        edges
    }

    /// Those whom a request must wait for, some twice: holders that it does not wound, and older waiters.
    fn in_the_way<'a>(&'a self, txn: TxnId, lock: &'a Lock) -> impl Iterator<Item = TxnId> + 'a {
        let firm = move |holder: TxnId| holder < txn || self.prepared.contains(&holder);
        let holders = self.held.overlapping(&lock.range).filter(|(_, _, mode)| mode.conflicts(lock.mode)).map(|(holder, ..)| holder);
        let waiters = self.waiting.overlapping(&lock.range).filter(|(_, _, (mode, _))| mode.conflicts(lock.mode));
        let older = waiters.map(|(waiter, ..)| waiter).filter(move |waiter| *waiter < txn);
        holders.filter(move |holder| *holder != txn && firm(*holder)).chain(older)
    }

    /// Those whom a request wounds.
    fn victims(&self, txn: TxnId, lock: &Lock) -> BTreeSet<TxnId> {
        let holders = self.held.overlapping(&lock.range).filter(|(_, _, mode)| mode.conflicts(lock.mode)).map(|(holder, ..)| holder);
        let waiters = self.waiting.overlapping(&lock.range).filter(|(_, _, (mode, _))| mode.conflicts(lock.mode));
        let preparing = waiters.filter(|(_, _, (_, phase))| *phase == Phase::Preparing).map(|(waiter, ..)| waiter);
        holders.chain(preparing).filter(|other| *other > txn && !self.prepared.contains(other)).collect()
    }

    /// Drops what `txn` holds and waits for. Returns which keys that concerned.
    fn forget(&mut self, txn: TxnId) -> Vec<KeyRange> {
        let mut freed = self.held.remove_all(txn);
        freed.append(&mut self.waiting.remove_all(txn));
        freed
    }

    /// Grants what can be granted among the new request and those that touch `freed`, the oldest transaction first. One pass is
    /// enough: a request that is granted bars the younger ones as much as it did when it waited. Where fewer wait than keys were freed, all
    /// who wait are asked: what the others wait for is still in their way.
    fn grant(&mut self, freed: &[KeyRange], new: Option<(TxnId, Lock, Phase)>, outcomes: &mut Vec<Outcome>) {
        let mut candidates = BTreeSet::from_iter(new);
        if self.waiting.len() < freed.len() {
            candidates.extend(self.waiting.all().map(request));
        } else {
            candidates.extend(freed.iter().flat_map(|range| self.waiting.overlapping(range)).map(request));
        }
        for (txn, lock, phase) in candidates {
            if self.in_the_way(txn, &lock).next().is_none() {
                self.waiting.remove(txn, &lock.range, &(lock.mode, phase));
                self.held.insert(txn, lock.range.clone(), lock.mode);
                outcomes.push(Outcome::Granted(txn, lock));
            }
        }
    }
}

/// What somebody who waits has asked for.
fn request((txn, range, (mode, phase)): (TxnId, &KeyRange, &(Mode, Phase))) -> (TxnId, Lock, Phase) {
    (txn, Lock { range: range.clone(), mode: *mode }, *phase)
}
