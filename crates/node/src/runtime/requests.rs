//! How clients in this process reach the actor: they ask and wait for the answer, or end what they began and go on.

use super::attend::Attend;
use super::mailbox::Mailbox;
use super::rejected::Rejected;
use crate::metrics::ActorMetrics;
use rhumb_core::actor::{Actor, RequestId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::runtime;
use tokio::sync::oneshot;

/// The requests without an answer.
pub struct Requests<A: Actor> {
    state: Mutex<State<A::Answer>>,
    waiting_max: usize,
    /// The actor's own thread.
    home: runtime::Handle,
    metrics: ActorMetrics,
}

struct State<T> {
    next: RequestId,
    waiting: BTreeMap<RequestId, oneshot::Sender<T>>,
    stopped: bool,
}

impl<A: Actor> Requests<A> {
    /// None yet; at most `waiting_max` at a time. The actor lives at `home`.
    pub fn new(waiting_max: usize, home: runtime::Handle, metrics: ActorMetrics) -> Requests<A> {
        Requests { state: Mutex::new(State { next: 0, waiting: BTreeMap::new(), stopped: false }), waiting_max, home, metrics }
    }

    fn lock(&self) -> MutexGuard<'_, State<A::Answer>> {
        self.state.lock().expect("nothing panics while it holds the requests")
    }

    fn name(&self) -> RequestId {
        let mut state = self.lock();
        state.next += 1;
        state.next
    }

    fn open(&self) -> Result<(Waiting<'_, A>, oneshot::Receiver<A::Answer>), Rejected> {
        let (give, take) = oneshot::channel();
        let mut state = self.lock();
        if state.stopped {
            return Err(Rejected::Stopped);
        }
        if state.waiting.len() >= self.waiting_max {
            return Err(Rejected::Busy);
        }
        state.next += 1;
        let id = state.next;
        state.waiting.insert(id, give);
        self.metrics.requests.set(state.waiting.len() as i64);
        Ok((Waiting { requests: self, id, answered: false }, take))
    }

    /// Answers requests, those of them that somebody still waits for.
    pub fn answer(&self, answers: impl IntoIterator<Item = (RequestId, A::Answer)>) {
        let mut state = self.lock();
        let waiting = answers.into_iter().filter_map(|(id, answer)| Some((state.waiting.remove(&id)?, answer)));
        let waiting: Vec<_> = waiting.collect();
        self.metrics.requests.set(state.waiting.len() as i64);
        drop(state);
        for (waiting, answer) in waiting {
            // Who asked may have gone in this very moment.
            let _ = waiting.send(answer);
        }
    }

    /// Tells everybody who waits that there will be no answer.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.waiting.clear();
    }
}

/// A place among the waiting, given up when nobody waits for the answer any more. The answer itself has given it up.
struct Waiting<'a, A: Actor> {
    requests: &'a Requests<A>,
    id: RequestId,
    answered: bool,
}

impl<A: Actor> Drop for Waiting<'_, A> {
    fn drop(&mut self) {
        if !self.answered {
            let mut state = self.requests.lock();
            state.waiting.remove(&self.id);
            self.requests.metrics.requests.set(state.waiting.len() as i64);
        }
    }
}

/// The way to a site's actor for clients in its process. Cheap to clone.
pub struct Handle<A: Actor> {
    pub(super) mailbox: Arc<Mailbox<A>>,
    pub(super) requests: Arc<Requests<A>>,
    pub(super) cell: Arc<dyn Attend>,
}

impl<A: Actor> Clone for Handle<A> {
    fn clone(&self) -> Handle<A> {
        Handle { mailbox: Arc::clone(&self.mailbox), requests: Arc::clone(&self.requests), cell: Arc::clone(&self.cell) }
    }
}

impl<A: Actor> Handle<A> {
    /// The actor's own thread, for clients that need nothing but this actor, and never long: while they run it does not.
    pub fn home(&self) -> &runtime::Handle {
        &self.requests.home
    }

    /// Asks, and waits for the answer. Dropped before that, the request is carried out all the same.
    pub async fn ask(&self, request: A::Request) -> Result<A::Answer, Rejected> {
        let (mut waiting, answer) = self
            .requests
            .open()
            .and_then(|(waiting, answer)| {
                self.mailbox.push_client(waiting.id, request)?;
                Ok((waiting, answer))
            })
            .inspect_err(|rejected| self.count(*rejected))?;
        self.cell.attend();
        let answer = answer.await.map_err(|_| Rejected::Stopped);
        // Whether it came or was given up for all: there is no place to give up any more.
        waiting.answered = true;
        answer
    }

    /// Ends what was begun, without waiting for an answer; if there is one, nobody hears it. Heard unless the site stops.
    pub fn end(&self, request: A::Request) -> Result<(), Rejected> {
        self.mailbox.push_end(self.requests.name(), request)?;
        self.cell.attend();
        Ok(())
    }

    fn count(&self, rejected: Rejected) {
        if rejected == Rejected::Busy {
            self.requests.metrics.busy.inc();
        }
    }
}
