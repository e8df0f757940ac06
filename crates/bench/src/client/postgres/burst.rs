//! Independent statements of one transaction, sent back to back and awaited together.
//!
//! When one of them fails the server refuses those after it with SQLSTATE 25P02, and the answers may be seen in any order. So all are awaited, and the failure
//! told is the one that caused the others.

use std::future::Future;

use super::failure::Failure;

/// Awaits two statements, or bursts of them.
pub async fn both<A, B>(
    a: impl Future<Output = Result<A, Failure>>,
    b: impl Future<Output = Result<B, Failure>>,
) -> Result<(A, B), Failure> {
    match futures::join!(a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(a), Err(b)) => Err(cause_of(a, b)),
        (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => Err(failure),
    }
}

/// Awaits any number of statements of one kind.
pub async fn all<T>(statements: impl IntoIterator<Item = impl Future<Output = Result<T, Failure>>>) -> Result<Vec<T>, Failure> {
    let mut answers = Vec::new();
    let mut failed = None;
    for result in futures::future::join_all(statements).await {
        match result {
            Ok(answer) => answers.push(answer),
            Err(failure) => failed = Some(failed.map_or(failure.clone(), |first| cause_of(first, failure))),
        }
    }
    failed.map_or(Ok(answers), Err)
}

fn cause_of(first: Failure, second: Failure) -> Failure {
    if first.is_echo() { second } else { first }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    fn conflict() -> Failure {
        Failure::Conflict { cause: "40001 conflict".into() }
    }

    fn echo() -> Failure {
        Failure::Refused { code: Some("25P02".into()), reason: "25P02 aborted".into() }
    }

    #[tokio::test]
    async fn the_failure_told_is_the_one_that_caused_the_others() {
        assert_eq!(both(ready(Err::<(), _>(echo())), ready(Err::<(), _>(conflict()))).await, Err(conflict()));
        assert_eq!(both(ready(Err::<(), _>(conflict())), ready(Err::<(), _>(echo()))).await, Err(conflict()));
        assert_eq!(all([echo(), conflict(), echo()].map(|failure| ready(Err::<(), _>(failure)))).await, Err(conflict()));
    }

    #[tokio::test]
    async fn answers_come_in_the_order_of_the_statements() {
        assert_eq!(both(ready(Ok(1)), ready(Ok("a"))).await, Ok((1, "a")));
        assert_eq!(all([ready(Ok(1)), ready(Ok(2))]).await, Ok(vec![1, 2]));
    }
}
