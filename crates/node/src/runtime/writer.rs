//! Group commit: the thread that syncs the store and then lets go of what waited for that.
//!
//! The actor's thread applies each batch, which makes it visible, and queues what waits for it here. This thread takes
//! all that is queued, syncs once for all of it, and carries out promises, answers and notifications in the order of
//! the queue. While it syncs, the next group gathers. Empty batches cost no sync: all before them are durable already.
//!
//! If a sync fails, nothing that waited leaves, now or later, and the site ends.

use super::Hosted;
use super::failure::Failure;
use super::mailbox::Mailbox;
use super::requests::Requests;
use crate::metrics::WriterMetrics;
use crate::transport::Transport;
use rhumb_core::SiteId;
use rhumb_core::actor::{Body, Gated, Input, Token};
use rhumb_store::{Engine, Store};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// So many batches may be on their way to disk. With one more the actor waits for the disk.
pub const PERSISTS_MAX: usize = 65_536;

/// What waits for a batch to be durable.
pub struct Written<A: Hosted> {
    /// True if the batch changed something, so that it takes a sync.
    pub dirty: bool,
    /// Whom to notify.
    pub token: Option<Token>,
    /// What to let go of.
    pub then: Vec<Gated<A>>,
}

/// The thread's belongings.
pub struct Writer<A: Hosted, E> {
    pub site: SiteId,
    pub store: Arc<Store<E>>,
    pub queue: Receiver<Written<A>>,
    pub mailbox: Arc<Mailbox<A>>,
    pub requests: Arc<Requests<A>>,
    pub transport: Arc<Transport>,
    pub failure: Failure,
    pub metrics: WriterMetrics,
}

impl<A: Hosted, E: Engine> Writer<A, E> {
    /// Serves the queue until its sender is gone and all of it is durable.
    pub fn run(self) {
        let _guard = self.failure.guard("the thread that writes to disk");
        while let Ok(first) = self.queue.recv() {
            let group: Vec<Written<A>> = std::iter::once(first).chain(self.queue.try_iter().take(PERSISTS_MAX)).collect();
            if group.iter().any(|written| written.dirty) {
                let begun = Instant::now();
                if let Err(error) = self.store.sync() {
                    self.failure.report(error.to_string());
                    self.mailbox.close();
                    return;
                }
                self.metrics.sync.observe(begun.elapsed().as_secs_f64());
                self.metrics.batches.observe(group.len() as f64);
            }
            group.into_iter().for_each(|written| self.release(written));
        }
    }

    fn release(&self, written: Written<A>) {
        for gated in written.then {
            match gated {
                Gated::Send { to, promise } if to == self.site => {
                    self.mailbox.push_inner(Input::Message { from: to, body: Body::Promise(promise) });
                }
                Gated::Send { to, promise } => self.transport.send(to, &Body::<A::Note, A::Promise>::Promise(promise)),
                Gated::Answer { id, answer } => self.requests.answer(id, answer),
            }
        }
        if let Some(token) = written.token {
            self.mailbox.push_inner(Input::Persisted { token });
        }
    }
}
