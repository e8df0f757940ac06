//! Which rows of a table there may be, by what was acknowledged: no key is taken twice without being given up in between, and what was
//! inserted and not given up is there at the end.

use rhumb_core::Time;
use std::collections::{BTreeMap, BTreeSet};

/// When something was done: from when it was asked until it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct During {
    asked: Time,
    /// Never, if nobody knows whether it was done.
    answered: Time,
}

const NEVER: Time = Time::from_micros(u64::MAX);

/// What was done to the keys of a table.
#[derive(Debug, Default)]
pub struct Presence {
    /// Acknowledged.
    inserts: BTreeMap<u64, Vec<During>>,
    /// Acknowledged, or possible.
    deletes: BTreeMap<u64, Vec<During>>,
    /// Of all keys, those acknowledged or possible.
    clears: Vec<During>,
    /// What was found at the end.
    last: Option<BTreeSet<u64>>,
}

impl Presence {
    /// These keys were inserted, for certain.
    pub fn inserted(&mut self, keys: &[u64], asked: Time, answered: Time) {
        keys.iter().for_each(|key| self.inserts.entry(*key).or_default().push(During { asked, answered }));
    }

    /// These keys were deleted, or may have been if `answered` is not set.
    pub fn deleted(&mut self, keys: impl IntoIterator<Item = u64>, asked: Time, answered: Option<Time>) {
        let during = During { asked, answered: answered.unwrap_or(NEVER) };
        keys.into_iter().for_each(|key| self.deletes.entry(key).or_default().push(during));
    }

    /// All keys were deleted, or may have been.
    pub fn cleared(&mut self, asked: Time, answered: Option<Time>) {
        self.clears.push(During { asked, answered: answered.unwrap_or(NEVER) });
    }

    /// These are there at the end.
    pub fn found(&mut self, keys: BTreeSet<u64>) {
        self.last = Some(keys);
    }

    /// # Errors
    /// The first key that was taken twice, or is missing at the end.
    pub fn check(&self, table: &str) -> Result<(), String> {
        for (key, inserts) in &self.inserts {
            let mut inserts = inserts.clone();
            inserts.sort_by_key(|during| during.answered);
            let deletes: Vec<During> = self.deletes.get(key).into_iter().flatten().chain(&self.clears).copied().collect();
            let between = |from: &During, to: Time| deletes.iter().any(|delete| delete.answered >= from.asked && delete.asked <= to);
            let mut pairs = inserts.windows(2).map(|pair| (pair[0], pair[1]));
            if let Some((one, other)) = pairs.find(|(one, other)| !between(one, other.answered)) {
                return Err(format!("key {key} of {table} was inserted twice: {one:?}, {other:?}; deletions {deletes:?}"));
            }
            if deletes.len() + 1 < inserts.len() {
                return Err(format!("key {key} of {table} was inserted {} times, and deleted {}", inserts.len(), deletes.len()));
            }
            let newest = inserts.last().expect("there is one");
            let is_there = self.last.as_ref().is_none_or(|last| last.contains(key));
            if !is_there && !between(newest, NEVER) {
                return Err(format!("key {key} of {table} was inserted, {newest:?}, and is not there at the end; deletions {deletes:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_micros(millis * 1_000)
    }

    #[test]
    fn a_key_is_taken_again_only_if_it_may_have_been_given_up_in_between() {
        let mut presence = Presence::default();
        presence.inserted(&[1], at(0), at(10));
        presence.inserted(&[1], at(20), at(30));
        assert!(presence.check("t").is_err());
        presence.deleted([1], at(31), Some(at(40)));
        assert!(presence.check("t").is_err(), "too late");
        presence.deleted([1], at(5), None);
        assert_eq!(presence.check("t"), Ok(()), "nobody knows when it was done");
    }

    #[test]
    fn what_was_inserted_and_not_deleted_is_there_at_the_end() {
        let mut presence = Presence::default();
        presence.inserted(&[1, 2], at(0), at(10));
        presence.found([1].into());
        assert!(presence.check("t").is_err());
        presence.cleared(at(5), Some(at(6)));
        assert_eq!(presence.check("t"), Ok(()));
    }
}
