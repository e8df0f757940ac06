//! The bounds on the time that a session takes and is left waiting, by its settings.

use super::{Session, State};
use crate::context::Timeout;
use crate::error::SqlError;
use rhumb_core::Span;
use std::time::Duration;

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
