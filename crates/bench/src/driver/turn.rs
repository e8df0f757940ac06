//! What a client is given when it is its turn.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::window::Window;
use crate::lock::lock;

/// A client's turn: what fell due, and where it counts what came of it.
pub struct Turn<'a, M> {
    /// When each operation to begin was due, at least one; in a closed loop, now.
    pub due: Vec<Instant>,
    /// True in a closed loop, in which nothing waits while its client pauses.
    pub closed: bool,
    /// When the run ends.
    pub window: &'a Window,
    pub(super) meters: &'a [Mutex<M>],
}

impl<M> Turn<'_, M> {
    /// Pauses as a user does, in a closed loop.
    pub async fn pause(&self, length: Duration) {
        if self.closed && !length.is_zero() {
            self.window.wait_until(Instant::now() + length).await;
        }
    }

    /// Lets `count` count an operation of this kind, if its time from `begun` to `ended` belongs to the results.
    pub fn count(&self, kind: usize, begun: Instant, ended: Instant, count: impl FnOnce(&mut M)) {
        if self.window.measures(begun, ended) {
            count(&mut lock(&self.meters[kind]));
        }
    }
}
