//! Interactive transactions: what a client and the site that is its gateway say to each other, whatever the protocol.
//!
//! ```text
//!   client                                 gateway
//!     ├── Begin ──────────────────────────────▶│
//!     │◀─────────────────────────────── Began ─┤
//!     ├── Get, Scan ──────────────────────────▶│
//!     │◀──────────────────────── Rows, Failed ─┤
//!     ├── Commit, or Rollback ────────────────▶│
//!     │◀───────────── Committed, Failed, Done ─┤
//! ```
//!
//! A protocol is an [`Actor`] of these requests and answers. What it administers besides, such as placements or quorums, is a type of its own:
//! `A` of [`Request`], and `T`, what operators are told, of [`Answer`].

use crate::transaction::{CommitOptions, Committed, ReadMode, TxnError};
use rhumb_core::{Actor, Key, KeyRange, Row, Timestamp, TxnId, Value};
use std::convert::Infallible;
use std::fmt;

/// What is asked of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<A = Infallible> {
    /// Begin a transaction. Answered by [`Answer::Began`].
    Begin {
        /// How it reads at first.
        mode: ReadMode,
    },
    /// Read rows. Answered by [`Answer::Rows`].
    Get {
        /// The transaction.
        txn: TxnId,
        /// How.
        mode: ReadMode,
        /// Which rows.
        keys: Vec<Key>,
        /// Versions that the transaction depends on besides.
        expect: Vec<(Key, Timestamp)>,
    },
    /// Read a range. Answered by [`Answer::Rows`].
    Scan {
        /// The transaction.
        txn: TxnId,
        /// How.
        mode: ReadMode,
        /// Which rows.
        range: KeyRange,
        /// How many of them at the most.
        limit: u32,
        /// From the end of the range.
        reverse: bool,
        /// Versions that the transaction depends on besides.
        expect: Vec<(Key, Timestamp)>,
    },
    /// Commit. Answered by [`Answer::Committed`].
    Commit {
        /// The transaction.
        txn: TxnId,
        /// What it writes; none deletes.
        writes: Vec<(Key, Option<Value>)>,
        /// Versions that it depends on besides what it read.
        expect: Vec<(Key, Timestamp)>,
        /// How.
        options: CommitOptions,
    },
    /// Give up. Answered by [`Answer::Done`].
    Rollback {
        /// The transaction.
        txn: TxnId,
    },
    /// By an operator.
    Admin(A),
}

impl Request {
    /// The same, of a client that is no operator, to a site of any protocol.
    pub fn widened<A>(self) -> Request<A> {
        match self {
            Request::Begin { mode } => Request::Begin { mode },
            Request::Get { txn, mode, keys, expect } => Request::Get { txn, mode, keys, expect },
            Request::Scan { txn, mode, range, limit, reverse, expect } => Request::Scan { txn, mode, range, limit, reverse, expect },
            Request::Commit { txn, writes, expect, options } => Request::Commit { txn, writes, expect, options },
            Request::Rollback { txn } => Request::Rollback { txn },
            Request::Admin(none) => match none {},
        }
    }
}

/// What is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T = Infallible> {
    /// The transaction has begun.
    Began {
        /// Its name.
        txn: TxnId,
    },
    /// Rows, one per key of a `Get`, or one for each of its first keys if there are `more`; of a `Scan` the live rows of `covered`, which is the
    /// whole range unless `more`.
    Rows {
        /// The rows.
        rows: Vec<Row>,
        /// Of a scan, the part of the range that was looked at.
        covered: Option<KeyRange>,
        /// The answer ends early: the rest is to be asked for.
        more: bool,
        /// The wide-area round trips that the transaction has waited for so far.
        trips: u32,
        /// The moment that it reads, if it reads at one; else zero. Who has only read so is done with it: there is nothing to commit.
        at: Timestamp,
    },
    /// Committed.
    Committed(Committed),
    /// Not done.
    Failed(TxnError),
    /// Rolled back, or what an operator asked for is done.
    Done,
    /// To an operator.
    Admin(T),
}

/// An actor that runs interactive transactions.
pub trait Interactive: Actor<Request = Request<Self::Asked>, Answer = Answer<Self::Told>> {
    /// What operators ask.
    type Asked;
    /// What they are told.
    type Told: fmt::Debug;
}

impl<S, A, T> Interactive for S
where
    S: Actor<Request = Request<A>, Answer = Answer<T>>,
    T: fmt::Debug,
{
    type Asked = A;
    type Told = T;
}
