//! Why a transaction does not go on.

use crate::reason::Reason;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a read or a commit did not succeed.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
pub enum TxnError {
    /// Another transaction was in the way. Nothing was committed; running the transaction again may succeed
    /// (SQLSTATE 40001).
    #[error("could not serialize access: {0}")]
    Conflict(Reason),
    /// So few regions can be reached that no majority is left. Nothing was committed (SQLSTATE 57P03).
    #[error("{0}")]
    Unavailable(Reason),
    /// The commit was sent, but its outcome could not be learnt in time: it may have happened or may yet happen
    /// (SQLSTATE 40003).
    #[error("the outcome of the commit is unknown: {0}")]
    Unknown(Reason),
    /// A named bound was exceeded (SQLSTATE 54000).
    #[error("{0}")]
    TooLarge(Reason),
    /// The request makes no sense in this transaction, such as a write in a read-only one (SQLSTATE 25006).
    #[error("{0}")]
    Invalid(Reason),
    /// The timestamp asked for lies in the future or before the versions still kept (SQLSTATE 22023).
    #[error("{0}")]
    OutOfRange(Reason),
    /// The protocol has no such thing (SQLSTATE 0A000).
    #[error("{0}")]
    Unsupported(Reason),
    /// A read waited for longer than its client [lets it](crate::transaction::Transaction::bound_waits) (SQLSTATE 55P03).
    #[error("{0}")]
    LockTimeout(Reason),
}

impl TxnError {
    /// True if nothing was committed and the same transaction, run again, may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, TxnError::Conflict(_))
    }

    /// The same error in other words.
    pub fn reworded(mut self, reword: impl FnOnce(&Reason) -> Reason) -> TxnError {
        let (TxnError::Conflict(reason)
        | TxnError::Unavailable(reason)
        | TxnError::Unknown(reason)
        | TxnError::TooLarge(reason)
        | TxnError::Invalid(reason)
        | TxnError::OutOfRange(reason)
        | TxnError::Unsupported(reason)
        | TxnError::LockTimeout(reason)) = &mut self;
        *reason = reword(reason);
        self
    }
}
