//! Invariant: a stale read as of `t` returns, for each key, exactly the newest version committed at or below `t`.
//!
//! Judged by the commit timestamps of all transactions that happened. An unknown transaction has one if a read of its writes came
//! with a version; if none did, what it wrote may stand anywhere.

use super::footprint::{Read, Seen};
use super::keys::KeyNo;
use super::observations::Observations;
use super::versions::Versions;
use super::violation::{Anomaly, Violation};
use crate::history::{History, Mode, TxnNo};
use rhumb_core::Timestamp;
use std::collections::BTreeMap;

/// Checks every stale read of `history` that succeeded.
///
/// # Errors
/// The first read of other versions than those of its timestamp.
pub fn check(history: &History) -> Result<(), Violation> {
    let observations = Observations::of(history)?;
    let mut writers: BTreeMap<KeyNo, Vec<TxnNo>> = BTreeMap::new();
    for (txn, facts) in observations.happened() {
        facts.writes.keys().for_each(|&key| writers.entry(key).or_default().push(txn.no));
    }
    let mut versions = BTreeMap::new();
    for (&key, writers) in &writers {
        versions.insert(key, Versions::of(&observations, key, writers)?);
    }
    for (txn, facts) in observations.happened() {
        let Mode::Stale(as_of) = txn.mode else { continue };
        for read in &facts.reads {
            // A key without versions was never written: a read of something there would have failed as unwritten.
            let Some(versions) = versions.get(&read.key) else { continue };
            check_read(&observations, versions, txn.no, read, as_of)?;
        }
    }
    Ok(())
}

fn check_read(
    observations: &Observations<'_>,
    versions: &Versions<'_, '_>,
    reader: TxnNo,
    read: &Read<'_>,
    as_of: Timestamp,
) -> Result<(), Violation> {
    let due = versions.before(versions.as_of(as_of));
    let wrong = match read.seen {
        Seen::List(elements) => return check_list(observations, versions, reader, read.key, elements, as_of),
        Seen::Value(value) => {
            let writer = observations.writer(read.key, value);
            Some(writer) != due && observations.facts(writer).at.is_some()
        }
        Seen::Nothing => {
            let deleted = due.is_none_or(|no| observations.facts(no).writes[&read.key].is_deletion());
            !deleted && !observations.has_unplaced_deletion(read.key)
        }
    };
    if !wrong {
        return Ok(());
    }
    let what = match due {
        Some(no) => format!("the newest version then was {no}'s {}", observations.show_write(no, read.key)),
        None => "there was no version then".to_owned(),
    };
    let others = match read.seen {
        Seen::Value(value) => Some(observations.writer(read.key, value)),
        _ => None,
    };
    Err(violation(observations, reader, read, as_of, &what, due.into_iter().chain(others)))
}

/// A list must show every append at or below `as_of` and none above; which stand first, its other reads tell.
fn check_list(
    observations: &Observations<'_>,
    versions: &Versions<'_, '_>,
    reader: TxnNo,
    key: KeyNo,
    elements: &[u64],
    as_of: Timestamp,
) -> Result<(), Violation> {
    let mut shown: Vec<TxnNo> = elements.iter().map(|&element| observations.writer(key, element)).collect();
    shown.sort_unstable();
    for (index, writer) in versions.writers().enumerate() {
        let is_due = index < versions.as_of(as_of);
        if shown.binary_search(&writer).is_ok() != is_due {
            let verb = if is_due { "misses" } else { "already shows" };
            let what = format!("it {verb} {writer}'s {}", observations.show_write(writer, key));
            let read = Read { key, seen: Seen::List(elements), version: None, absent: false };
            return Err(violation(observations, reader, &read, as_of, &what, [writer]));
        }
    }
    Ok(())
}

fn violation(
    observations: &Observations<'_>,
    reader: TxnNo,
    read: &Read<'_>,
    as_of: Timestamp,
    what: &str,
    others: impl IntoIterator<Item = TxnNo>,
) -> Violation {
    let story = format!("{reader} read {} as of {as_of}: {what}", read.seen.at(observations.keys.key(read.key)));
    observations.violation(Anomaly::StaleRead, story, others.into_iter().chain([reader]))
}
