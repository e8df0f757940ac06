//! Which versions there are, without what they hold: for whoever compares, or counts, and would else read all values.
//!
//! The engine hands out entries with their values, one at a time; none is kept.

use crate::engine::View;
use crate::error::StoreError;
use crate::layout;
use crate::scan::{Found, newest};
use bytes::Bytes;
use rhumb_core::{Key, KeyRange, Row, Timestamp};

/// Versions of one key that a scan steps over before it seeks past them.
const STEPS_MAX: usize = 8;

/// The newest version of `key`; zero if there is none.
pub fn of(view: &dyn View, key: &Key) -> Result<Row, StoreError> {
    let found = newest(view, &layout::key_prefix(key), Timestamp::MAX)?;
    Ok(Row { key: key.clone(), version: found.map_or(Timestamp::ZERO, |(version, _)| version), value: None })
}

/// The newest version of every key in `range` that has one, in key order: `limit` at the most, and none after those whose keys have `bytes`
/// bytes; one at least, if there is one and `limit` allows it.
pub fn scan(view: &dyn View, range: &KeyRange, limit: usize, bytes: usize) -> Result<Found, StoreError> {
    let mut rows: Vec<Row> = Vec::new();
    if range.is_empty() {
        return Ok(Found { rows, more: false });
    }
    let (start, end) = (layout::key_prefix(&range.start), layout::key_prefix(&range.end));
    let mut entries = view.range(&start, &end, false);
    let (mut current, mut steps, mut sum) = (Bytes::new(), 0, 0);
    while let Some((stored, _)) = entries.next().transpose()? {
        let (prefix, version) = layout::split_version(&stored)?;
        // The first of a key is its newest.
        if prefix != current {
            let key = layout::key_of(prefix)?;
            sum += key.0.len();
            if rows.len() == limit || sum > bytes && !rows.is_empty() {
                return Ok(Found { rows, more: true });
            }
            rows.push(Row { key, version, value: None });
            (current, steps) = (stored.slice(..prefix.len()), 0);
        }
        steps += 1;
        if steps > STEPS_MAX {
            (entries, steps) = (view.range(&layout::past_key(&current), &end, false), 0);
        }
    }
    Ok(Found { rows, more: false })
}
