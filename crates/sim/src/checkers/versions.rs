//! The versions of a key in the order of their commit timestamps, as the database tells it.
//!
//! Position `n` stands for the state after the first `n` versions; position 0 is the initial state, "no such row". A read of a
//! value names its position. A read of nothing may be of the initial state or of any deletion; the version that came with the
//! read, or real time, narrows that down.

use super::footprint::Read;
use super::keys::KeyNo;
use super::observations::Observations;
use super::violation::{Anomaly, Violation};
use crate::history::{Txn, TxnNo};
use rhumb_core::Timestamp;
use std::collections::BTreeSet;

/// The versions of one key.
pub(super) struct Versions<'o, 'a> {
    observations: &'o Observations<'a>,
    key: KeyNo,
    /// Ascending, without repetition.
    order: Vec<(Timestamp, TxnNo)>,
    /// The positions at which there is no such row, ascending.
    nothing: Vec<usize>,
}

/// The positions that a read may be of, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Positions {
    pub lowest: usize,
    pub highest: usize,
}

impl<'o, 'a> Versions<'o, 'a> {
    /// The versions of `key` that `writers` left; writers whose timestamp is not known are left out.
    pub fn of(observations: &'o Observations<'a>, key: KeyNo, writers: &[TxnNo]) -> Result<Versions<'o, 'a>, Violation> {
        let placed: BTreeSet<_> = writers.iter().filter_map(|&no| observations.facts(no).at.map(|at| (at, no))).collect();
        let order: Vec<_> = placed.into_iter().collect();
        for pair in order.windows(2) {
            let ((at, one), (next, other)) = (pair[0], pair[1]);
            if at == next {
                let story = format!("{one} and {other} both wrote {} at {at}", observations.keys.key(key));
                return Err(observations.violation(Anomaly::TimestampCollision, story, [one, other]));
            }
        }
        let is_deletion = |&(_, no): &(_, TxnNo)| observations.facts(no).writes[&key].is_deletion();
        let deletions = order.iter().enumerate().filter(|(_, version)| is_deletion(version)).map(|(index, _)| index + 1);
        let nothing = std::iter::once(0).chain(deletions).collect();
        Ok(Versions { observations, key, order, nothing })
    }

    /// Who wrote them, oldest first.
    pub fn writers(&self) -> impl Iterator<Item = TxnNo> + '_ {
        self.order.iter().map(|&(_, no)| no)
    }

    /// Who wrote the version that leads to `position`; nobody made the initial one.
    pub fn before(&self, position: usize) -> Option<TxnNo> {
        position.checked_sub(1).map(|index| self.order[index].1)
    }

    /// Who wrote the version after `position`, if there is one.
    pub fn after(&self, position: usize) -> Option<TxnNo> {
        self.order.get(position).map(|&(_, no)| no)
    }

    /// The position of the newest version at or below `at`.
    pub fn as_of(&self, at: Timestamp) -> usize {
        self.order.partition_point(|&(version, _)| version <= at)
    }

    /// The position that the version of `writer` leads to, if its timestamp is known.
    pub fn position(&self, writer: TxnNo) -> Option<usize> {
        let at = self.observations.facts(writer).at?;
        self.order.binary_search(&(at, writer)).ok().map(|index| index + 1)
    }

    /// Where a read of nothing by `reader`, no stale one, may stand; `None` if nothing can be said, because a deletion may have happened
    /// whose place is not known.
    pub fn positions_of_nothing(&self, reader: &Txn, read: &Read<'_>) -> Option<Positions> {
        if let Some(version) = read.version
            && let position = self.as_of(version)
            && self.at(position) == Some(version)
            && self.nothing.binary_search(&position).is_ok()
        {
            return Some(Positions { lowest: position, highest: position });
        }
        if self.observations.has_unplaced_deletion(self.key) {
            return None;
        }
        // Before the reader's own version, if it has one, and not of a deletion that began after the reader had ended.
        let own = self.position(reader.no).map_or(self.order.len(), |position| position - 1);
        let began_in_time = |no| reader.acknowledged().is_none_or(|ended| self.txn(no).invoked <= ended);
        let possible = |&position: &usize| position <= own && self.before(position).is_none_or(began_in_time);
        let highest = self.nothing.iter().copied().rfind(possible).expect("the initial state is always possible");
        // Nor of a state that another version had replaced before the reader began.
        let replaced = |position| self.after(position).and_then(|no| self.txn(no).acknowledged()).is_some_and(|time| time < reader.invoked);
        let lowest = self.nothing.iter().copied().take_while(|&position| position < highest).find(|&position| !replaced(position));
        Some(Positions { lowest: lowest.unwrap_or(highest), highest })
    }

    /// The timestamp of the version that leads to `position`.
    fn at(&self, position: usize) -> Option<Timestamp> {
        position.checked_sub(1).map(|index| self.order[index].0)
    }

    fn txn(&self, no: TxnNo) -> &'a Txn {
        self.observations.history.txn(no)
    }
}
