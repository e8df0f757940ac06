//! The log of one replica: entries by slot, of which a beginning may have been compacted away.
//!
//! Invariants: slots are contiguous; ballots never fall from one slot to the next; two logs with an entry of the same ballot in the same
//! slot are equal up to it.

use rhumb_core::{Ballot, SiteId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A place in the log; the first entry has slot 1.
pub type Slot = u64;

/// Below the ballot of every leader.
pub const NO_BALLOT: Ballot = Ballot { number: 0, leader: SiteId::new(0, 0) };

/// What a log replicates.
pub trait Command: Clone + PartialEq {
    /// What a new leader proposes first: it changes nothing.
    fn nothing() -> Self;
    /// Bytes in a message, or a few more.
    fn bytes(&self) -> usize;
}

/// A command in the ballot in which it was proposed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry<C> {
    /// The ballot of the leader that proposed it.
    pub ballot: Ballot,
    /// What it does.
    pub command: C,
}

/// How far a log reaches. Ordered as candidates are: by the ballot of the last entry, then by length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The ballot of the entry in that slot.
    pub ballot: Ballot,
    /// The slot.
    pub slot: Slot,
}

impl Position {
    /// Before the first entry.
    pub const START: Position = Position { ballot: NO_BALLOT, slot: 0 };
}

/// The log of one replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Log<C> {
    /// The entry before the first one kept: it and all before were chosen and compacted away.
    base: Position,
    entries: VecDeque<Entry<C>>,
    bytes: usize,
}

impl<C: Command> Log<C> {
    /// An empty log behind `base`.
    pub fn behind(base: Position) -> Log<C> {
        Log { base, entries: VecDeque::new(), bytes: 0 }
    }

    /// The last entry compacted away.
    pub fn base(&self) -> Position {
        self.base
    }

    /// The last entry.
    pub fn last(&self) -> Position {
        let last = self.entries.back().map(|entry| entry.ballot);
        last.map_or(self.base, |ballot| Position { ballot, slot: self.base.slot + self.entries.len() as u64 })
    }

    /// Entries kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if no entry is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the commands kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The entry in `slot`, if it is kept.
    pub fn get(&self, slot: Slot) -> Option<&Entry<C>> {
        self.entries.get(usize::try_from(slot.checked_sub(self.base.slot + 1)?).ok()?)
    }

    /// The position of `slot`, if it is the base or kept.
    pub fn position(&self, slot: Slot) -> Option<Position> {
        if slot == self.base.slot {
            return Some(self.base);
        }
        self.get(slot).map(|entry| Position { ballot: entry.ballot, slot })
    }

    /// Adds an entry at the end; its slot.
    pub fn push(&mut self, entry: Entry<C>) -> Slot {
        self.bytes += entry.command.bytes();
        self.entries.push_back(entry);
        self.last().slot
    }

    /// Drops the entries from `slot` on.
    pub fn truncate(&mut self, slot: Slot) {
        while self.last().slot >= slot
            && let Some(entry) = self.entries.pop_back()
        {
            self.bytes -= entry.command.bytes();
        }
    }

    /// Drops the entries up to `slot`, which are chosen.
    pub fn compact(&mut self, slot: Slot) {
        while self.base.slot < slot
            && let Some(entry) = self.entries.pop_front()
        {
            self.bytes -= entry.command.bytes();
            self.base = Position { ballot: entry.ballot, slot: self.base.slot + 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Letter(char);

    impl Command for Letter {
        fn nothing() -> Letter {
            Letter('-')
        }

        fn bytes(&self) -> usize {
            1
        }
    }

    fn ballot(number: u64) -> Ballot {
        Ballot { number, leader: SiteId::new(0, 0) }
    }

    #[test]
    fn what_is_compacted_leaves_its_last_position_behind() {
        let mut log = Log::behind(Position::START);
        for (number, letter) in [(1, 'a'), (1, 'b'), (2, 'c')] {
            log.push(Entry { ballot: ballot(number), command: Letter(letter) });
        }
        log.compact(2);
        assert_eq!((log.base(), log.last()), (Position { ballot: ballot(1), slot: 2 }, Position { ballot: ballot(2), slot: 3 }));
        assert_eq!((log.get(2), log.position(2), log.position(1)), (None, Some(log.base()), None));
        log.truncate(3);
        assert_eq!((log.last(), log.len(), log.bytes()), (log.base(), 0, 0));
        log.compact(9);
        assert_eq!(log.last().slot, 2, "nothing is compacted that is not there");
    }

    #[test]
    fn a_later_ballot_goes_before_a_longer_log() {
        assert!(Position { ballot: ballot(2), slot: 1 } > Position { ballot: ballot(1), slot: 9 });
        assert!(Position { ballot: ballot(2), slot: 2 } > Position { ballot: ballot(2), slot: 1 });
    }
}
