//! A question to an actor, tied to the kind of its answer.
//!
//! An actor is asked by one enum and answers by another. Which answer belongs to a request is said where the question is made, in the
//! `questions.rs` of each gateway, and whoever asks is given what the question's type says:
//!
//! ```text
//!   begin(mode): Question<A, TxnId>  ── ask ──▶  a TxnId, or why there is none
//! ```

use super::fallible::Fallible;
use crate::runtime::Rejected;
use rhumb_core::Actor;

/// What an actor is asked, and is to answer by a `T`.
pub(crate) struct Question<A: Actor, T> {
    request: A::Request,
    answer: fn(A::Answer) -> Result<T, A::Answer>,
}

impl<A: Actor<Answer: Fallible>, T> Question<A, T> {
    /// The question that `request` asks; `answer` gives back what is no answer to it.
    pub fn new(request: A::Request, answer: fn(A::Answer) -> Result<T, A::Answer>) -> Question<A, T> {
        Question { request, answer }
    }

    /// Puts it to the actor by `ask`: it is rejected unanswered, or answered by a failure, or by what was asked for.
    pub async fn put<F>(self, ask: impl FnOnce(A::Request) -> F) -> Result<Result<T, <A::Answer as Fallible>::Failure>, Rejected>
    where
        F: Future<Output = Result<A::Answer, Rejected>>,
    {
        let answered = ask(self.request).await?.or_failure();
        let unexpected = |answer| unreachable!("the actor answered something else than was asked: {answer:?}");
        Ok(answered.map(|answer| (self.answer)(answer).unwrap_or_else(unexpected)))
    }
}
