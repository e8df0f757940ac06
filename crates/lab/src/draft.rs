//! Transactions that are drawn whole before they run.

use rhumb_core::{Key, Value};

/// A transaction before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    /// What it reads, in this order or at once, as its client does it.
    pub(crate) reads: Vec<Key>,
    /// What it writes with its commit; nothing if it only reads.
    pub(crate) writes: Vec<(Key, Option<Value>)>,
}
