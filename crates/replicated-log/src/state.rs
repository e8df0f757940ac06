//! The state that the log of a group makes: the same at every replica that has applied as much of it. Rows are in the store.
//!
//! ```text
//!                Prepare              Decide, Finish
//!   unknown ───────────────▶ prepared ───────────────▶ committed or aborted ──── pushed out ───▶ forgotten
//!      │                                                      ▲
//!      └───────────────── Commit, Decide, Finish ─────────────┘
//! ```
//!
//! Invariants: the first decision about a transaction stands; what is forgotten is not prepared nor committed again, and nobody says that it
//! was aborted; a group that has decided to commit remembers that, beyond all bounds of memory for outcomes, until all other groups of the
//! transaction have applied it. So whoever is prepared and asks about what is unknown or forgotten here knows that it was not committed.

use crate::command::{Command, Prepared, Writes};
use crate::group::Position;
use crate::records;
use rhumb_core::actor::Space;
use rhumb_core::record::decode;
use rhumb_core::{Batch, Timestamp, TxnId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing, and it can be as new as any.
    Nothing,
    /// It is prepared.
    Prepared,
    /// It has ended so; with the timestamp at which it committed.
    Ended(Option<Timestamp>),
    /// It may have ended, one way or the other.
    Forgotten,
}

/// The part of it that is small and changes with each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// The last entry applied.
    pub applied: Position,
    /// The highest timestamp at which a leader may have served a snapshot.
    pub ceiling: Timestamp,
    /// All that commits at or below is applied.
    pub closed: Timestamp,
    /// The highest timestamp that was given to a transaction.
    pub highest: Timestamp,
    /// Of transactions that began at or below outcomes may be forgotten.
    pub forgotten: Timestamp,
    /// This replica has no versions of rows from before.
    pub versions_from: Timestamp,
}

/// What a replica has applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub(crate) marks: Marks,
    pub(crate) prepared: BTreeMap<TxnId, Prepared>,
    /// Commits that were decided here, and which other groups have yet to apply.
    pub(crate) decided: BTreeMap<TxnId, (Timestamp, BTreeSet<u16>)>,
    pub(crate) outcomes: BTreeMap<TxnId, Option<Timestamp>>,
    pub(crate) outcomes_max: usize,
}

/// What an entry did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Nothing that matters to anybody.
    Nothing,
    /// The transaction is prepared.
    Prepared(TxnId),
    /// The transaction has ended here, now or before.
    Ended(TxnId, Known),
}

impl State {
    pub(crate) fn new(outcomes_max: usize) -> State {
        let zero = Timestamp::ZERO;
        let marks = Marks { applied: Position::START, ceiling: zero, closed: zero, highest: zero, forgotten: zero, versions_from: zero };
        State { marks, prepared: BTreeMap::new(), decided: BTreeMap::new(), outcomes: BTreeMap::new(), outcomes_max }
    }

    /// What is known of `txn`.
    pub fn of(&self, txn: TxnId) -> Known {
        if let Some((at, _)) = self.decided.get(&txn) {
            Known::Ended(Some(*at))
        } else if let Some(committed) = self.outcomes.get(&txn) {
            Known::Ended(*committed)
        } else if self.prepared.contains_key(&txn) {
            Known::Prepared
        } else if txn.began <= self.marks.forgotten {
            Known::Forgotten
        } else {
            Known::Nothing
        }
    }

    /// Takes a record of one of its tables, of this site or another one; none if it is none.
    pub(crate) fn restore(&mut self, space: Space, key: &[u8], bytes: &[u8]) -> Option<()> {
        let txn = TxnId::from_be_bytes(key.try_into().ok()?);
        match space {
            records::PREPARED => drop(self.prepared.insert(txn, decode(bytes)?)),
            records::DECIDED => drop(self.decided.insert(txn, decode(bytes)?)),
            records::OUTCOMES => drop(self.outcomes.insert(txn, decode(bytes)?)),
            _ => return None,
        }
        Some(())
    }

    /// Transactions that are prepared.
    pub fn in_doubt(&self) -> usize {
        self.prepared.len()
    }

    /// A new leader commits, and is asked to read, above all that any before it has.
    pub fn low_water(&self) -> Timestamp {
        self.marks.ceiling.max(self.marks.closed).max(self.marks.highest)
    }

    /// Applies the entry at `position`, and adds what that changes on disk to `batch`.
    pub(crate) fn apply(&mut self, position: Position, command: &Command, batch: &mut Batch) -> Applied {
        assert_eq!(position.slot, self.marks.applied.slot + 1, "entries are applied in order, each once");
        self.marks.applied = position;
        let applied = match command {
            Command::Nothing => Applied::Nothing,
            Command::Advance { ceiling, closed } => {
                self.marks.ceiling = self.marks.ceiling.max(*ceiling);
                self.marks.closed = self.marks.closed.max(*closed);
                Applied::Nothing
            }
            Command::Commit { txn, at, writes } => {
                let known = self.of(*txn);
                if known != Known::Nothing {
                    return self.written(Applied::Ended(*txn, known), batch);
                }
                self.write(*at, writes, batch);
                self.end(*txn, Some(*at), batch)
            }
            Command::Prepare { txn, prepared } => match self.of(*txn) {
                Known::Nothing => {
                    self.marks.highest = self.marks.highest.max(prepared.at);
                    records::put_prepared(batch, *txn, prepared);
                    self.prepared.insert(*txn, prepared.clone());
                    Applied::Prepared(*txn)
                }
                Known::Prepared => Applied::Prepared(*txn),
                known => Applied::Ended(*txn, known),
            },
            Command::Decide { txn, committed, shards } => self.decide(*txn, *committed, shards, batch),
            Command::Finish { txn, committed } => self.finish(*txn, *committed, batch),
            Command::Forget { txn } => {
                self.decided.remove(txn);
                records::delete_decided(batch, *txn);
                self.push_out(batch);
                Applied::Nothing
            }
        };
        self.written(applied, batch)
    }

    /// Writes the marks, which each entry changes.
    fn written(&self, applied: Applied, batch: &mut Batch) -> Applied {
        records::put_marks(batch, &self.marks);
        applied
    }

    fn decide(&mut self, txn: TxnId, committed: Option<Timestamp>, shards: &[u16], batch: &mut Batch) -> Applied {
        if matches!(self.of(txn), Known::Ended(_)) {
            return Applied::Ended(txn, self.of(txn));
        }
        // A commit is decided where the transaction is prepared, or it was aborted and that is forgotten.
        let committed = committed.filter(|_| self.prepared.contains_key(&txn));
        if let Some(at) = committed
            && shards.len() > 1
        {
            let others = shards[1..].iter().copied().collect();
            records::put_decided(batch, txn, at, &others);
            self.decided.insert(txn, (at, others));
        }
        self.finish(txn, committed, batch)
    }

    fn finish(&mut self, txn: TxnId, committed: Option<Timestamp>, batch: &mut Batch) -> Applied {
        match self.prepared.remove(&txn) {
            Some(prepared) => {
                records::delete_prepared(batch, txn);
                if let Some(at) = committed {
                    self.write(at, &prepared.writes, batch);
                }
                self.end(txn, committed, batch)
            }
            // Not prepared: it must not be any more. What is forgotten cannot be.
            None if self.of(txn) == Known::Nothing => self.end(txn, None, batch),
            None => Applied::Ended(txn, self.of(txn)),
        }
    }

    fn write(&mut self, at: Timestamp, writes: &Writes, batch: &mut Batch) {
        writes.iter().for_each(|(key, value)| batch.put_version(key.clone(), at, value.clone()));
    }

    /// Ends a transaction. Whoever waits for it is told how, even if that is among the oldest outcomes and forgotten at once.
    fn end(&mut self, txn: TxnId, committed: Option<Timestamp>, batch: &mut Batch) -> Applied {
        self.marks.highest = self.marks.highest.max(committed.unwrap_or_default());
        self.outcomes.insert(txn, committed);
        records::put_outcome(batch, txn, committed);
        self.push_out(batch);
        Applied::Ended(txn, Known::Ended(committed))
    }

    /// Forgets the outcomes of the oldest transactions where there are too many.
    fn push_out(&mut self, batch: &mut Batch) {
        while self.outcomes.len() > self.outcomes_max
            && let Some((txn, _)) = self.outcomes.pop_first()
        {
            records::delete_outcome(batch, txn);
            self.marks.forgotten = self.marks.forgotten.max(txn.began);
        }
    }
}
