//! What a read of a snapshot found, a page of it.

use rhumb_commit::transaction::rest_of;
use rhumb_core::{KeyRange, Row, Timestamp};

/// What a read found: of what was asked for, the rows of the first keys, and of the range those up to where the answer ends.
pub(super) struct Found {
    /// The snapshot.
    pub(super) at: Timestamp,
    pub(super) rows: Vec<Row>,
    pub(super) range: Vec<Row>,
    /// It ended early, at a number of bytes.
    pub(super) is_cut: bool,
}

impl Found {
    /// What is left of `range`, of which `wanted` rows were asked for.
    pub(super) fn rest(&self, range: KeyRange, wanted: usize, reverse: bool) -> Option<KeyRange> {
        match self.range.last() {
            _ if !self.is_cut && self.range.len() < wanted => None,
            Some(last) => rest_of(range, &last.key, reverse),
            None => Some(range),
        }
    }
}

/// Bytes that the rows have in a message.
pub(super) fn bytes_of(rows: &[Row]) -> usize {
    rows.iter().map(Row::bytes).sum()
}

/// The part of `range` that is not `rest`, which is its end, or its beginning in reverse.
pub(super) fn without(range: KeyRange, rest: Option<&KeyRange>, reverse: bool) -> KeyRange {
    match rest {
        None => range,
        Some(rest) if reverse => KeyRange::new(rest.end.clone(), range.end),
        Some(rest) => KeyRange::new(range.start, rest.start.clone()),
    }
}
