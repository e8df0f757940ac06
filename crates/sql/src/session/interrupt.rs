//! What may end a statement from outside: a cancel request, or its deadline.
//!
//! Neither may tear a commit that is under way, for then its outcome would be unknown: only the work before the commit is
//! run [`within`](Interrupt::within) them.

use crate::error::{SqlError, SqlResult, SqlState};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The means to cancel the statement that a session runs now, if any.
#[derive(Clone, Debug, Default)]
pub struct Canceller(Arc<Notify>);

impl Canceller {
    /// Cancels the statement under way.
    pub fn cancel(&self) {
        self.0.notify_waiters();
    }
}

/// The bounds on the statement under way.
#[derive(Debug, Default)]
pub struct Interrupt {
    canceller: Canceller,
    deadline: Option<Instant>,
}

impl Interrupt {
    /// What others cancel it by.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// A statement begins, with this much time.
    pub fn restart(&mut self, timeout: Option<Duration>) {
        self.deadline = timeout.map(|timeout| Instant::now() + timeout);
    }

    /// Runs `work` until it ends, is cancelled or is late.
    pub async fn within<T>(&self, work: impl Future<Output = SqlResult<T>>) -> SqlResult<T> {
        let late = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.canceller.0.notified() => Err(SqlError::new(SqlState::QueryCanceled, "canceling statement due to user request")),
            // Before the work, which may use up the task's budget for this turn each time.
            () = late => Err(SqlError::new(SqlState::QueryCanceled, "canceling statement due to statement timeout")),
            result = work => result,
        }
    }
}
