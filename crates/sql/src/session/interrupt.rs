//! What may end a statement from outside: a cancel request, or its deadline.
//!
//! A cancel request is remembered until it ends a statement or the session rests, so it may come at a moment at which nothing can be
//! given up: the next step that can be, is. Neither may tear a commit that is under way, for then its outcome would be unknown: only
//! the work before the commit is run [`within`](Interrupt::within) them, and what follows a commit runs [`unbounded`](Interrupt::disarm).

use crate::context::Timeout;
use crate::context::environment::Environment;
use crate::error::{SqlError, SqlResult, SqlState};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The means to cancel the statement that a session runs now, if any.
#[derive(Clone, Debug)]
pub struct Canceller(watch::Sender<bool>);

impl Canceller {
    /// Cancels the statement under way.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

/// The bounds on the statement under way.
#[derive(Debug)]
pub struct Interrupt {
    canceller: Canceller,
    environment: Arc<dyn Environment>,
    /// By the environment's time.
    deadline: Option<Duration>,
    /// False once the statement has taken effect: it is too late to end it.
    armed: bool,
}

impl Interrupt {
    /// Nothing is bounded yet.
    pub fn new(environment: Arc<dyn Environment>) -> Interrupt {
        Interrupt { canceller: Canceller(watch::Sender::new(false)), environment, deadline: None, armed: true }
    }

    /// What others cancel it by.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// A statement begins, with this much time.
    pub fn restart(&mut self, timeout: Option<Duration>) {
        self.deadline = timeout.map(|timeout| self.environment.elapsed() + timeout);
        self.armed = true;
    }

    /// The statement has taken effect: nothing ends it any more.
    pub fn disarm(&mut self) {
        self.armed = false;
    }

    /// The session has nothing to do: cancel requests so far came too late.
    pub fn rest(&self) {
        self.canceller.0.send_replace(false);
    }

    /// Between two steps that cannot be given up: the error if the statement was cancelled or is late.
    pub fn check(&self) -> SqlResult<()> {
        match self.deadline {
            _ if !self.armed => Ok(()),
            _ if *self.canceller.0.borrow() => Err(cancelled()),
            Some(deadline) if self.environment.elapsed() >= deadline => Err(Timeout::Statement.error()),
            _ => Ok(()),
        }
    }

    /// Runs `work` until it ends, is cancelled or is late.
    pub async fn within<T>(&self, work: impl Future<Output = SqlResult<T>>) -> SqlResult<T> {
        tokio::select! {
            biased;
            // Before the work, which may use up the task's budget for this turn each time.
            error = self.ended() => Err(error),
            result = work => result,
        }
    }

    /// Waits until the statement is cancelled or late, and says which.
    pub fn ended(&self) -> impl Future<Output = SqlError> + use<> {
        let mut requests = self.canceller.0.subscribe();
        let late = self.deadline.map(|deadline| self.environment.sleep_until(deadline));
        let armed = self.armed;
        async move {
            if !armed {
                return std::future::pending().await;
            }
            let late = async {
                match late {
                    Some(late) => late.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // The sender lives as long as the session.
                _ = requests.wait_for(|asked| *asked) => cancelled(),
                () = late => Timeout::Statement.error(),
            }
        }
    }
}

fn cancelled() -> SqlError {
    SqlError::new(SqlState::QueryCanceled, "canceling statement due to user request")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::environment::System;

    async fn step(interrupt: &Interrupt) -> Result<(), &'static str> {
        interrupt.within(async { Ok(()) }).await.map_err(|error| error.state().code())
    }

    #[tokio::test]
    async fn a_cancel_request_between_two_steps_ends_the_next_and_none_after_the_session_rested() {
        let mut interrupt = Interrupt::new(Arc::new(System::default()));
        interrupt.canceller().cancel();
        interrupt.rest();
        interrupt.restart(None);
        assert_eq!((interrupt.check(), step(&interrupt).await), (Ok(()), Ok(())));
        interrupt.canceller().cancel();
        assert_eq!(interrupt.check().expect_err("cancelled").state(), SqlState::QueryCanceled);
        assert_eq!(step(&interrupt).await, Err("57014"));
        interrupt.disarm();
        assert_eq!((interrupt.check(), step(&interrupt).await), (Ok(()), Ok(())), "what took effect is not ended");
        interrupt.restart(None);
        assert_eq!(step(&interrupt).await, Err("57014"), "it was not told yet");
    }

    #[tokio::test]
    async fn a_deadline_in_the_past_ends_every_step_that_begins() {
        let mut interrupt = Interrupt::new(Arc::new(System::default()));
        interrupt.restart(Some(Duration::ZERO));
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(step(&interrupt).await, Err("57014"));
        assert_eq!(interrupt.check().expect_err("late").state(), SqlState::QueryCanceled);
        interrupt.disarm();
        assert_eq!(step(&interrupt).await, Ok(()));
    }
}
