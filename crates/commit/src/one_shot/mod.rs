//! One-shot transactions: lists of operations that are carried out as a whole, in one place of an order, without talking to their client
//! meanwhile. What a client and a site say to each other, whatever the protocol.
//!
//! ```text
//!   client                                 site
//!     ├── Run (operations) ───────────────────▶│
//!     │◀───────────────────────── Ran, Failed ─┤
//!     ├── Read (keys, ranges, how new) ───────▶│
//!     │◀──────────────────────── Rows, Failed ─┤
//! ```
//!
//! | file | |
//! |---|---|
//! | `operation.rs` | the operations, and the bounds of a transaction |
//! | `footprint.rs` | what a transaction touches |
//! | `execution.rs` | what it does to the rows that it meets, and what it returns |
//!
//! A protocol is an actor of these requests and answers. What it administers besides is a type of its own: `A` of [`Request`], and `T`, what
//! operators are told, of [`Answer`].

pub mod execution;
pub mod footprint;
pub mod operation;

use crate::error::TxnError;
use execution::Outcome;
use operation::Transaction;
use rhumb_core::{Actor, Key, KeyRange, Row, Timestamp};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::fmt;

/// How new a read must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Freshness {
    /// What is settled in this region. No wait.
    Settled,
    /// What is settled in this region, once it holds this commit: a session that sees its own.
    After(Timestamp),
    /// What was settled as of then, once all of that moment's epoch is settled in this region.
    At(Timestamp),
    /// All that ended anywhere before the read began: waits for the epoch of now.
    Strict,
}

/// What is asked of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<A = Infallible> {
    /// Run this. Answered by [`Answer::Ran`].
    Run(Transaction),
    /// Read keys and ranges, each of those up to a limit, at one snapshot of this region. Answered by [`Answer::Rows`].
    Read {
        /// Which rows.
        keys: Vec<Key>,
        /// Which ranges, and how many rows of each at the most.
        ranges: Vec<(KeyRange, u32)>,
        /// Ranges are read from their ends: the last rows come first.
        reverse: bool,
        /// How new.
        freshness: Freshness,
    },
    /// By an operator.
    Admin(A),
}

impl Request {
    /// The same, of a client that is no operator, to a site of any protocol.
    pub fn widened<A>(self) -> Request<A> {
        match self {
            Request::Run(transaction) => Request::Run(transaction),
            Request::Read { keys, ranges, reverse, freshness } => Request::Read { keys, ranges, reverse, freshness },
            Request::Admin(none) => match none {},
        }
    }
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T = Infallible> {
    /// The transaction ran, and its place is agreed on.
    Ran {
        /// Its place.
        at: Timestamp,
        /// What it returned, or why it changed nothing.
        outcome: Outcome,
    },
    /// What was read.
    Rows {
        /// The snapshot.
        at: Timestamp,
        /// The rows asked for by key, in that order.
        rows: Vec<Row>,
        /// The rows of each range, live ones only.
        ranges: Vec<Vec<Row>>,
        /// The first rows only, keys before ranges: all have more than [`READ_BYTES_MAX`](crate::transaction::READ_BYTES_MAX).
        more: bool,
    },
    /// It did not succeed.
    Failed(TxnError),
    /// To an operator.
    Admin(T),
}

/// An actor that runs one-shot transactions.
pub trait OneShot: Actor<Request = Request<Self::Asked>, Answer = Answer<Self::Told>> {
    /// What operators ask.
    type Asked;
    /// What they are told.
    type Told: fmt::Debug;
}

impl<S, A, T> OneShot for S
where
    S: Actor<Request = Request<A>, Answer = Answer<T>>,
    T: fmt::Debug,
{
    type Asked = A;
    type Told = T;
}
