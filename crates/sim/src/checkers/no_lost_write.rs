//! Invariant: once the network has healed and all has settled, every acknowledged write is there or was superseded by a later one,
//! and nothing of an aborted transaction is there.
//!
//! Judged by final reads: committed transactions, begun after all others had ended, that read every key written. A list must hold
//! every acknowledged append. A register must hold what the acknowledged transaction with the highest timestamp wrote, or
//! what an unknown transaction above it wrote, and nothing that another had replaced in real time. (An aborted write that
//! shows, in the final reads or before, is an [`Anomaly::AbortedRead`].)

use super::footprint::{Read, Seen, Write};
use super::keys::KeyNo;
use super::observations::Observations;
use super::versions::Versions;
use super::violation::{Anomaly, Violation};
use crate::history::{History, TxnNo};
use std::collections::BTreeMap;

/// Checks that `finals`, the final reads of `history`, show all that was acknowledged.
///
/// # Errors
/// The first write lost, or the first final read or key missing.
pub fn check(history: &History, finals: &[TxnNo]) -> Result<(), Violation> {
    for &no in finals {
        if history.txn(no).committed_at().is_none() {
            return Err(Violation::new(Anomaly::LostWrite, format!("the final read {no} did not succeed"), [history.txn(no)]));
        }
    }
    let observations = Observations::of(history)?;
    let read_last: BTreeMap<KeyNo, (TxnNo, &Read<'_>)> =
        finals.iter().flat_map(|&no| observations.facts(no).reads.iter().map(move |read| (read.key, (no, read)))).collect();
    let mut acknowledged: BTreeMap<KeyNo, Vec<TxnNo>> = BTreeMap::new();
    for (txn, facts) in observations.happened().filter(|(txn, _)| txn.acknowledged().is_some()) {
        facts.writes.keys().for_each(|&key| acknowledged.entry(key).or_default().push(txn.no));
    }
    for (&key, writers) in &acknowledged {
        let Some(&(reader, read)) = read_last.get(&key) else {
            let story = format!("no final read covers {}", observations.keys.key(key));
            return Err(observations.violation(Anomaly::Misuse, story, finals.iter().copied()));
        };
        match read.seen {
            Seen::List(elements) => check_list(&observations, key, writers, reader, elements)?,
            Seen::Value(_) | Seen::Nothing => check_register(&observations, writers, reader, read)?,
        }
    }
    Ok(())
}

fn check_list(observations: &Observations<'_>, key: KeyNo, writers: &[TxnNo], reader: TxnNo, found: &[u64]) -> Result<(), Violation> {
    let mut found = found.to_vec();
    found.sort_unstable();
    for &writer in writers {
        let mut appended = observations.facts(writer).writes[&key].values();
        if appended.any(|element| found.binary_search(&element).is_err()) {
            return Err(lost(observations, key, writer, reader));
        }
    }
    Ok(())
}

fn check_register(observations: &Observations<'_>, writers: &[TxnNo], reader: TxnNo, read: &Read<'_>) -> Result<(), Violation> {
    let versions = Versions::of(observations, read.key, writers)?;
    let newest = versions.writers().last().expect("an acknowledged writer has a timestamp");
    let Seen::Value(value) = read.seen else {
        let deleted = observations.facts(newest).writes[&read.key].is_deletion();
        let maybe = observations.deleters(read.key).iter().any(|&no| is_possibly_above(observations, no, newest));
        return if deleted || maybe { Ok(()) } else { Err(lost(observations, read.key, newest, reader)) };
    };
    let writer = observations.writer(read.key, value);
    if writer != newest && !is_possibly_above(observations, writer, newest) {
        return Err(lost(observations, read.key, newest, reader));
    }
    let ended = observations.history.txn(writer).acknowledged();
    let began_after = |no: &&TxnNo| ended.is_some_and(|ended| observations.history.txn(**no).invoked > ended);
    writers.iter().find(began_after).map_or(Ok(()), |&later| Err(lost(observations, read.key, later, reader)))
}

/// True if the undecided transaction `no` may have happened with a timestamp above that of `other`.
fn is_possibly_above(observations: &Observations<'_>, no: TxnNo, other: TxnNo) -> bool {
    let at = observations.facts(no).at;
    observations.history.txn(no).is_undecided() && at.is_none_or(|at| Some(at) > observations.facts(other).at)
}

fn lost(observations: &Observations<'_>, key: KeyNo, writer: TxnNo, reader: TxnNo) -> Violation {
    let shown = observations.facts(reader).reads.iter().find(|read| read.key == key).map(|read| read.seen.at(observations.keys.key(key)));
    let (wrote, shown) = (observations.show_write(writer, key), shown.expect("the final read covers the key"));
    let verb = match observations.facts(writer).writes[&key] {
        Write::Appended(_) => "appended",
        Write::Put { .. } => "wrote last",
    };
    let story = format!("{writer} {verb}, and was acknowledged: {wrote}; but the final read {reader} shows {shown}");
    observations.violation(Anomaly::LostWrite, story, [writer, reader])
}
