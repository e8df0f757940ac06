//! Answers by which an actor may say that it did not do what it was asked.

use rhumb_commit::transaction::TxnError;
use rhumb_commit::{interactive, one_shot};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request as quotas;
use std::fmt;

/// What an actor answers.
pub(crate) trait Fallible: Sized + fmt::Debug {
    /// Why it did not do what it was asked.
    type Failure;

    /// The answer, unless it is such a reason.
    fn or_failure(self) -> Result<Self, Self::Failure>;
}

impl<T: fmt::Debug> Fallible for interactive::Answer<T> {
    type Failure = TxnError;

    fn or_failure(self) -> Result<Self, TxnError> {
        if let interactive::Answer::Failed(error) = self { Err(error) } else { Ok(self) }
    }
}

impl<T: fmt::Debug> Fallible for one_shot::Answer<T> {
    type Failure = TxnError;

    fn or_failure(self) -> Result<Self, TxnError> {
        if let one_shot::Answer::Failed(error) = self { Err(error) } else { Ok(self) }
    }
}

impl Fallible for quotas::Answer {
    type Failure = Refusal;

    fn or_failure(self) -> Result<Self, Refusal> {
        if let quotas::Answer::Changed(Err(refusal)) | quotas::Answer::Got(Err(refusal)) = self { Err(refusal) } else { Ok(self) }
    }
}
