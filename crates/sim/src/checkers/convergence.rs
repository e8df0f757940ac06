//! Invariant: once the network has healed and all has settled, all regions hold the same newest version of every row, deletions
//! included.

use super::violation::{Anomaly, Violation};
use rhumb_core::{Key, RegionId, Row};
use std::collections::{BTreeMap, BTreeSet};

/// A region's newest version of every row.
pub type Dump = BTreeMap<Key, Row>;

/// Checks that the dumps of all regions are equal.
///
/// # Errors
/// The first key at which a region differs from the first region.
pub fn check(dumps: &BTreeMap<RegionId, Dump>) -> Result<(), Violation> {
    let Some((first, reference)) = dumps.first_key_value() else { return Ok(()) };
    for (region, dump) in dumps {
        let keys: BTreeSet<&Key> = reference.keys().chain(dump.keys()).collect();
        if let Some(key) = keys.into_iter().find(|key| reference.get(*key) != dump.get(*key)) {
            let (one, other) = (show(reference.get(key)), show(dump.get(key)));
            return Err(Violation::new(Anomaly::Divergence, format!("at {key}, {first} holds {one}, {region} holds {other}"), []));
        }
    }
    Ok(())
}

fn show(row: Option<&Row>) -> String {
    match row {
        None => "nothing".to_owned(),
        Some(Row { version, value: None, .. }) => format!("a deletion at {version}"),
        Some(Row { version, value: Some(value), .. }) => format!("\"{}\" at {version}", value.0.escape_ascii()),
    }
}
