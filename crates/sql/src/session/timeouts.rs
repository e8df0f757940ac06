//! The timeouts of a session, all of them settings, 0 for none:
//!
//! | setting | from | to | ends |
//! |---|---|---|---|
//! | `statement_timeout` | a message that asks for a statement's work | its commit, waits for the rows of a COPY among it | the statement |
//! | `lock_timeout` | a read of rows, at each of them | its answer | the statement |
//! | `idle_in_transaction_session_timeout` | waiting for the client, in a transaction | its next message | the session |
//!
//! None ends a commit under way, whose outcome would be unknown then.

use super::{Session, State};
use crate::error::{SqlError, SqlState};
use rhumb_core::Span;
use std::time::Duration;

/// What is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// The time of a statement.
    Statement,
    /// The time that a read may wait for locks, its trip included.
    Lock,
    /// The time that a client leaves a transaction open and asks for nothing.
    IdleInTransaction,
}

impl Timeout {
    /// The name of its setting.
    pub const fn setting(self) -> &'static str {
        match self {
            Timeout::Statement => "statement_timeout",
            Timeout::Lock => "lock_timeout",
            Timeout::IdleInTransaction => "idle_in_transaction_session_timeout",
        }
    }

    /// What the client is told when it is over.
    pub fn error(self) -> SqlError {
        let (state, message) = match self {
            Timeout::Statement => (SqlState::QueryCanceled, "canceling statement due to statement timeout"),
            Timeout::Lock => (SqlState::LockNotAvailable, "canceling statement due to lock timeout"),
            Timeout::IdleInTransaction => {
                (SqlState::IdleInTransactionSessionTimeout, "terminating connection due to idle-in-transaction timeout")
            }
        };
        SqlError::new(state, message)
    }
}

impl Session {
    /// A message asks for work: it begins with the time of a statement.
    pub fn restart_clock(&mut self) {
        self.interrupt.restart(self.facts.settings.timeout(Timeout::Statement));
    }

    /// Waits until the statement under way is cancelled or late, and says which.
    pub fn statement_ended(&self) -> impl Future<Output = SqlError> + use<> {
        self.interrupt.ended()
    }

    /// How long a read may wait for locks.
    pub(super) fn longest_wait(&self) -> Option<Span> {
        let timeout = self.facts.settings.timeout(Timeout::Lock)?;
        Some(Span::from_micros(u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX)))
    }

    /// How long the client may ask for nothing now; `None`: as long as it likes.
    pub fn idle_limit(&self) -> Option<Duration> {
        match self.state {
            State::Idle => None,
            State::Implicit(_) | State::Explicit(_) | State::Failed(_) => self.facts.settings.timeout(Timeout::IdleInTransaction),
        }
    }
}
