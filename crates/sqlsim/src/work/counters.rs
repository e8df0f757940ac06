//! Rows counted in, by key and by index: each acknowledged statement counts once, each of unknown outcome at most once.

use super::Client;
use crate::link::{Failed, Link};
use std::collections::BTreeMap;

const KEYS: u64 = 4;
const TAGS: u64 = 3;

/// What each row was counted up by.
#[derive(Debug, Default)]
pub struct Counters {
    rows: BTreeMap<u64, Count>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// By statements begun.
    begun: u64,
    /// By those that failed, for certain.
    failed: u64,
    /// By those acknowledged.
    known: u64,
    /// What was found at the end.
    last: Option<u64>,
}

impl Counters {
    fn each(&mut self, keys: impl IntoIterator<Item = u64>, change: impl Fn(&mut Count)) {
        keys.into_iter().for_each(|key| change(self.rows.entry(key).or_default()));
    }

    /// What each row holds at the least.
    pub fn least(&self) -> BTreeMap<u64, u64> {
        self.rows.iter().map(|(&key, count)| (key, count.known)).collect()
    }

    /// A row was found to hold `n`; it held `least` before that was asked.
    pub fn found(&mut self, key: u64, n: u64, least: u64) -> Result<(), String> {
        let count = self.rows.entry(key).or_default();
        count.last = Some(n);
        let most = count.begun - count.failed;
        if (least..=most).contains(&n) { Ok(()) } else { Err(format!("counter {key} holds {n}, not {least} to {most}")) }
    }

    /// Nothing that was acknowledged is missing at the end.
    pub fn check(&self) -> Result<(), String> {
        let missing = self.rows.iter().find(|(_, count)| count.last.is_none_or(|last| last < count.known));
        missing.map_or(Ok(()), |(key, count)| Err(format!("counter {key} is not what was acknowledged: {count:?}")))
    }
}

/// The rows at the beginning.
pub fn rows() -> String {
    let rows: Vec<String> = (0..KEYS).map(|key| format!("({key}, {}, 0)", key % TAGS)).collect();
    format!("INSERT INTO counters VALUES {} ON CONFLICT DO NOTHING", rows.join(", "))
}

/// Counts one row, or those with a tag, or moves one to another tag.
pub async fn work(client: &mut Client, link: &mut Link) {
    let (key, tag) = (client.rng.below(KEYS), client.rng.below(TAGS));
    match client.rng.below(10) {
        0..4 => count(client, link, &format!("k = {key}"), vec![key]).await,
        4..8 => count(client, link, &format!("tag = {tag}"), (0..KEYS).collect()).await,
        // Nothing is counted, whatever becomes of it.
        _ => drop(link.query(&format!("UPDATE counters SET tag = {tag} WHERE k = {key}")).await),
    }
}

/// Counts the rows that satisfy `condition`, among `candidates`.
async fn count(client: &Client, link: &mut Link, condition: &str, candidates: Vec<u64>) {
    let shared = client.shared();
    shared.with(|record| record.counters.each(candidates.iter().copied(), |count| count.begun += 1));
    match link.statement(&format!("UPDATE counters SET n = n + 1 WHERE {condition} RETURNING k")).await {
        Ok(reply) => {
            let counted: Vec<u64> = reply.rows.iter().filter_map(|row| row[0].as_ref()?.parse().ok()).collect();
            shared.with(|record| {
                record.counters.each(counted.iter().copied(), |count| count.known += 1);
                record.counters.each(candidates.into_iter().filter(|key| !counted.contains(key)), |count| count.failed += 1);
            });
        }
        Err(failed) if failed.may_have() => {}
        Err(Failed::Lost | Failed::Refused(..)) => shared.with(|record| record.counters.each(candidates, |count| count.failed += 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_twice_or_is_missing_is_found() {
        let mut counters = Counters::default();
        counters.each([1], |count| (count.begun, count.known, count.failed) = (3, 1, 1));
        assert_eq!(counters.found(1, 2, 1), Ok(()), "one known, one unknown");
        assert!(counters.found(1, 3, 1).is_err(), "one of them failed");
        assert!(counters.found(1, 0, 1).is_err());
        assert!(counters.check().is_err());
    }
}
