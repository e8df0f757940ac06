//! Reading rows: the newest version at or below a timestamp, of one key or of each key of a range.
//!
//! A scan walks the engine's entries in order and steps over the versions it does not want; a key with many of them
//! costs [`STEPS_MAX`] steps and one seek, so a scan is linear in the keys it passes whatever the number of versions.

use crate::engine::{Entries, View};
use crate::error::StoreError;
use crate::layout;
use bytes::Bytes;
use rhumb_core::{KeyRange, Loaded, Row, Timestamp, Value};

/// Versions of one key that a scan steps over before it seeks past them: about where a seek begins to cost less.
const STEPS_MAX: usize = 8;

/// What a scan found.
pub struct Found {
    /// The rows in the order asked.
    pub rows: Vec<Row>,
    /// True if there is a row past the bounds.
    pub more: bool,
}

/// What one answer may hold.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// So many rows or records.
    pub limit: usize,
    /// No more once they have so many bytes.
    pub bytes: usize,
}

/// Rows or records found so far.
pub struct Page<T> {
    found: Vec<T>,
    left: Bounds,
}

impl<T> Page<T> {
    /// Nothing yet.
    pub fn new(bounds: Bounds) -> Page<T> {
        Page { found: Vec::new(), left: bounds }
    }

    /// Adds one of so many bytes; false if it is past the bounds. The first is within them whatever its size.
    pub fn push(&mut self, one: T, bytes: usize) -> bool {
        if self.left.limit == 0 || (self.left.bytes == 0 && !self.found.is_empty()) {
            return false;
        }
        self.left = Bounds { limit: self.left.limit - 1, bytes: self.left.bytes.saturating_sub(bytes) };
        self.found.push(one);
        true
    }

    /// What was found.
    pub fn into_found(self) -> Vec<T> {
        self.found
    }
}

/// The first of `rows`, as many as have `bytes` bytes, one at least.
pub fn within<E>(rows: impl Iterator<Item = Result<Row, E>>, bytes: usize) -> Result<Loaded, E> {
    let mut found = Vec::new();
    let mut sum = 0;
    for row in rows {
        let row = row?;
        sum += row.bytes();
        if sum > bytes && !found.is_empty() {
            return Ok(Loaded::Rows { rows: found, more: true });
        }
        found.push(row);
    }
    Ok(Loaded::Rows { rows: found, more: false })
}

impl Page<Row> {
    fn push_row(&mut self, prefix: &[u8], version: Timestamp, value: Option<Value>) -> Result<bool, StoreError> {
        let key = layout::key_of(prefix)?;
        let bytes = key.0.len() + value.as_ref().map_or(0, |value| value.0.len());
        Ok(self.push(Row { key, version, value }, bytes))
    }
}

/// The newest version at or below `at` of the key with this prefix. One seek.
pub fn newest(view: &dyn View, prefix: &[u8], at: Timestamp) -> Result<Option<(Timestamp, Option<Value>)>, StoreError> {
    let first = view.range(&layout::version_key(prefix, at), &layout::past_key(prefix), false).next();
    let Some((stored, value)) = first.transpose()? else { return Ok(None) };
    let (_, version) = layout::split_version(&stored)?;
    Ok(Some((version, layout::decode_value(&value)?)))
}

/// The newest version at or below `at` of every key in `range` that has one, within `bounds`.
pub fn scan(view: &dyn View, range: &KeyRange, at: Timestamp, bounds: Bounds, reverse: bool) -> Result<Found, StoreError> {
    if range.is_empty() {
        return Ok(Found { rows: Vec::new(), more: false });
    }
    let (start, end) = (layout::key_prefix(&range.start), layout::key_prefix(&range.end));
    let mut page = Page::new(bounds);
    let more = if reverse { descending(view, &start, end, at, &mut page)? } else { ascending(view, &start, &end, at, &mut page)? };
    Ok(Found { rows: page.into_found(), more })
}

/// Forwards, the versions of a key come newest first: the first at or below `at` is the answer, the rest is stepped over.
/// True if there is a row past the bounds.
fn ascending(view: &dyn View, start: &[u8], end: &[u8], at: Timestamp, page: &mut Page<Row>) -> Result<bool, StoreError> {
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
            if !page.push_row(prefix, version, layout::decode_value(&value)?)? {
                return Ok(true);
            }
            answered = true;
        }
        steps += 1;
        if steps > STEPS_MAX {
            let next = if answered { layout::past_key(&current) } else { layout::version_key(&current, at) };
            (entries, steps) = (view.range(&next, end, false), 0);
        }
    }
    Ok(false)
}

/// Backwards, the versions of a key come oldest first: the last at or below `at` is the answer, known once a newer one
/// or another key is met. True if there is a row past the bounds.
fn descending(view: &dyn View, start: &[u8], mut end: Vec<u8>, at: Timestamp, page: &mut Page<Row>) -> Result<bool, StoreError> {
    loop {
        let entries = view.range(start, &end, true);
        match descend(view, entries, at, page)? {
            Stop::End => return Ok(false),
            Stop::Limit => return Ok(true),
            Stop::Below(prefix) => end = prefix.to_vec(),
        }
    }
}

/// Why a walk backwards stopped.
enum Stop {
    /// No entry is left.
    End,
    /// There is a row past the bounds.
    Limit,
    /// The key with this prefix is done, but has more versions than are worth stepping over: go on below it.
    Below(Bytes),
}

fn descend(view: &dyn View, entries: Entries<'_>, at: Timestamp, page: &mut Page<Row>) -> Result<Stop, StoreError> {
    let mut current = Bytes::new();
    let mut answer = None;
    let mut steps = 0;
    for entry in entries {
        let (stored, value) = entry?;
        let (prefix, version) = layout::split_version(&stored)?;
        if prefix != current {
            if !push(page, &current, answer.take())? {
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
            return Ok(if push(page, &current, answer)? { Stop::Below(current) } else { Stop::Limit });
        }
    }
    Ok(if push(page, &current, answer)? { Stop::End } else { Stop::Limit })
}

/// Adds the row of the key with this prefix, if it has one; false if that would pass the bounds.
fn push(page: &mut Page<Row>, prefix: &[u8], answer: Option<(Timestamp, Option<Value>)>) -> Result<bool, StoreError> {
    answer.map_or(Ok(true), |(version, value)| page.push_row(prefix, version, value))
}
