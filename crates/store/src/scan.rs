//! Reading rows: the newest version at or below a timestamp, of one key or of each key of a range.
//!
//! A scan walks the engine's entries in order and steps over the versions it does not want; a key with many of them
//! costs [`STEPS_MAX`] steps and one seek, so a scan is linear in the keys it passes whatever the number of versions.

use crate::engine::{Entries, View};
use crate::error::StoreError;
use crate::layout;
use bytes::Bytes;
use rhumb_core::{KeyRange, Row, Timestamp, Value};

/// Versions of one key that a scan steps over before it seeks past them: about where a seek begins to cost less.
const STEPS_MAX: usize = 8;

/// What a scan found.
pub struct Found {
    /// The rows in the order asked.
    pub rows: Vec<Row>,
    /// True if there is a row past the limit.
    pub more: bool,
}

/// The newest version at or below `at` of the key with this prefix. One seek.
pub fn newest(view: &dyn View, prefix: &[u8], at: Timestamp) -> Result<Option<(Timestamp, Option<Value>)>, StoreError> {
    let first = view.range(&layout::version_key(prefix, at), &layout::past_key(prefix), false).next();
    let Some((stored, value)) = first.transpose()? else { return Ok(None) };
    let (_, version) = layout::split_version(&stored)?;
    Ok(Some((version, layout::decode_value(&value)?)))
}

/// The newest version at or below `at` of every key in `range` that has one, `limit` at the most.
pub fn scan(view: &dyn View, range: &KeyRange, at: Timestamp, limit: usize, reverse: bool) -> Result<Found, StoreError> {
    if range.is_empty() {
        return Ok(Found { rows: Vec::new(), more: false });
    }
    let (start, end) = (layout::key_prefix(&range.start), layout::key_prefix(&range.end));
    if reverse { descending(view, &start, end, at, limit) } else { ascending(view, &start, &end, at, limit) }
}

/// Forwards, the versions of a key come newest first: the first at or below `at` is the answer, the rest is stepped over.
fn ascending(view: &dyn View, start: &[u8], end: &[u8], at: Timestamp, limit: usize) -> Result<Found, StoreError> {
    let mut rows = Vec::new();
    let mut entries = view.range(start, end, false);
    let mut current = Bytes::new();
    let mut answered = false;
    let mut steps = 0;
    while let Some((stored, value)) = entries.next().transpose()? {
        let (prefix, version) = layout::split_version(&stored)?;
        if prefix != current {
            (current, answered, steps) = (stored.slice(..prefix.len()), false, 0);
        }
        if !answered && version <= at {
            if rows.len() == limit {
                return Ok(Found { rows, more: true });
            }
            rows.push(Row { key: layout::key_of(prefix)?, version, value: layout::decode_value(&value)? });
            answered = true;
        }
        steps += 1;
        if steps > STEPS_MAX {
            let next = if answered { layout::past_key(&current) } else { layout::version_key(&current, at) };
            (entries, steps) = (view.range(&next, end, false), 0);
        }
    }
    Ok(Found { rows, more: false })
}

/// Backwards, the versions of a key come oldest first: the last at or below `at` is the answer, known once a newer one
/// or another key is met.
fn descending(view: &dyn View, start: &[u8], mut end: Vec<u8>, at: Timestamp, limit: usize) -> Result<Found, StoreError> {
    let mut rows = Vec::new();
    loop {
        let entries = view.range(start, &end, true);
        match descend(view, entries, at, limit, &mut rows)? {
            Stop::End => return Ok(Found { rows, more: false }),
            Stop::Limit => return Ok(Found { rows, more: true }),
            Stop::Below(prefix) => end = prefix.to_vec(),
        }
    }
}

/// Why a walk backwards stopped.
enum Stop {
    /// No entry is left.
    End,
    /// There is a row past the limit.
    Limit,
    /// The key with this prefix is done, but has more versions than are worth stepping over: go on below it.
    Below(Bytes),
}

fn descend(view: &dyn View, entries: Entries<'_>, at: Timestamp, limit: usize, rows: &mut Vec<Row>) -> Result<Stop, StoreError> {
    let mut current = Bytes::new();
    let mut answer = None;
    let mut steps = 0;
    for entry in entries {
        let (stored, value) = entry?;
        let (prefix, version) = layout::split_version(&stored)?;
        if prefix != current {
            if !push(rows, limit, &current, answer.take())? {
                return Ok(Stop::Limit);
            }
            (current, steps) = (stored.slice(..prefix.len()), 0);
        }
        if version <= at {
            answer = Some((version, layout::decode_value(&value)?));
        }
        steps += 1;
        if steps > STEPS_MAX {
            answer = newest(view, &current, at)?;
            return Ok(if push(rows, limit, &current, answer)? { Stop::Below(current) } else { Stop::Limit });
        }
    }
    Ok(if push(rows, limit, &current, answer)? { Stop::End } else { Stop::Limit })
}

/// Adds the row of the key with this prefix, if it has one; false if that would pass the limit.
fn push(rows: &mut Vec<Row>, limit: usize, prefix: &[u8], answer: Option<(Timestamp, Option<Value>)>) -> Result<bool, StoreError> {
    let Some((version, value)) = answer else { return Ok(true) };
    if rows.len() == limit {
        return Ok(false);
    }
    rows.push(Row { key: layout::key_of(prefix)?, version, value });
    Ok(true)
}
