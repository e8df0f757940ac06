//! What the gateway asks an actor of interactive transactions.

use super::Serves;
use crate::gateway::question::Question;
use rhumb_commit::interactive::{Answer, Request};
use rhumb_commit::transaction::{CommitOptions, Committed, ReadMode};
use rhumb_core::{Key, KeyRange, Row, Timestamp, TxnId, Value};

/// Rows by key, or those of the first keys.
pub(super) struct Found {
    pub(super) rows: Vec<Row>,
    pub(super) trips: u32,
    pub(super) at: Timestamp,
}

/// The rows of a range, as far as it is covered.
pub(super) struct Page {
    pub(super) rows: Vec<Row>,
    pub(super) covered: KeyRange,
    pub(super) more: bool,
    pub(super) trips: u32,
    pub(super) at: Timestamp,
}

/// Begin a transaction.
pub(super) fn begin<A: Serves>(mode: ReadMode) -> Question<A, TxnId> {
    Question::new(Request::Begin { mode }, |answer| if let Answer::Began { txn } = answer { Ok(txn) } else { Err(answer) })
}

/// What ends a transaction that was begun, and of which nobody has heard.
pub(super) fn rolled_back<A: Serves>(answer: &Answer<A::Told>) -> Option<Request<A::Asked>> {
    if let Answer::Began { txn } = answer { Some(Request::Rollback { txn: *txn }) } else { None }
}

/// Read rows.
pub(super) fn get<A: Serves>(txn: TxnId, mode: ReadMode, keys: Vec<Key>, expect: Vec<(Key, Timestamp)>) -> Question<A, Found> {
    Question::new(Request::Get { txn, mode, keys, expect }, |answer| {
        if let Answer::Rows { rows, trips, at, .. } = answer { Ok(Found { rows, trips, at }) } else { Err(answer) }
    })
}

/// Read a range.
pub(super) fn scan<A: Serves>(
    txn: TxnId,
    mode: ReadMode,
    range: KeyRange,
    limit: u32,
    reverse: bool,
    expect: Vec<(Key, Timestamp)>,
) -> Question<A, Page> {
    Question::new(Request::Scan { txn, mode, range, limit, reverse, expect }, |answer| {
        if let Answer::Rows { rows, covered: Some(covered), more, trips, at } = answer {
            Ok(Page { rows, covered, more, trips, at })
        } else {
            Err(answer)
        }
    })
}

/// Commit.
pub(super) fn commit<A: Serves>(
    txn: TxnId,
    writes: Vec<(Key, Option<Value>)>,
    expect: Vec<(Key, Timestamp)>,
    options: CommitOptions,
) -> Question<A, Committed> {
    Question::new(Request::Commit { txn, writes, expect, options }, |answer| {
        if let Answer::Committed(committed) = answer { Ok(committed) } else { Err(answer) }
    })
}

/// Do what an operator asks for.
pub(crate) fn administer<A: Serves>(asked: A::Asked) -> Question<A, ()> {
    Question::new(Request::Admin(asked), |answer| if let Answer::Done = answer { Ok(()) } else { Err(answer) })
}

/// Tell an operator what he asks.
pub(crate) fn inquire<A: Serves>(asked: A::Asked) -> Question<A, A::Told> {
    Question::new(Request::Admin(asked), |answer| if let Answer::Admin(told) = answer { Ok(told) } else { Err(answer) })
}
