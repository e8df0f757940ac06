//! Rows counted in: each acknowledged statement counts once, each of unknown outcome at most once.

use std::collections::BTreeMap;

/// What each row was counted up by.
#[derive(Debug, Default)]
pub struct Counters {
    rows: BTreeMap<u64, Count>,
}

/// How often a row was counted up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// By statements begun.
    pub begun: u64,
    /// By those that failed, for certain.
    pub failed: u64,
    /// By those acknowledged.
    pub known: u64,
    /// What was found at the end.
    last: Option<u64>,
}

impl Counters {
    /// Changes what is known of each of `keys`.
    pub fn each(&mut self, keys: impl IntoIterator<Item = u64>, change: impl Fn(&mut Count)) {
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
