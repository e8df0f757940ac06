//! The cell that an actor lives in, for those who have something for it. [`super::cell`] is what lies behind.

use std::sync::Arc;

/// Has what waits in a mailbox taken.
pub trait Attend: Send + Sync {
    /// Something was added: steps with what waits, if the actor is free. What is too much is left to the actor's own thread.
    fn attend(&self);

    /// Nothing is taken any more, and nobody is answered.
    fn close(&self);
}

/// Held by a thread without which the actor cannot go on: when it ends, for whatever reason, so does the actor.
pub struct Needed(pub Arc<dyn Attend>);

impl Drop for Needed {
    fn drop(&mut self) {
        self.0.close();
    }
}
