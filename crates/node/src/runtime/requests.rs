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

/// What ends that which an answer says was begun; `None` if it says so of nothing.
pub type Undo<A> = fn(&<A as Actor>::Answer) -> Option<<A as Actor>::Request>;

/// The requests without an answer.
pub struct Requests<A: Actor> {
    state: Mutex<State<A>>,
    waiting_max: usize,
    mailbox: Arc<Mailbox<A>>,
    /// The actor's own thread.
    home: runtime::Handle,
    metrics: ActorMetrics,
}

struct State<A: Actor> {
    next: RequestId,
    waiting: BTreeMap<RequestId, Asked<A>>,
    /// Nobody waits for these any more, but what they begin is to be ended.
    abandoned: BTreeMap<RequestId, Undo<A>>,
    stopped: bool,
}

struct Asked<A: Actor> {
    give: oneshot::Sender<A::Answer>,
    undo: Option<Undo<A>>,
}

impl<A: Actor> Requests<A> {
    /// None yet; at most `waiting_max` at a time. The actor lives at `home`.
    pub fn new(waiting_max: usize, mailbox: Arc<Mailbox<A>>, home: runtime::Handle, metrics: ActorMetrics) -> Requests<A> {
        let state = State { next: 0, waiting: BTreeMap::new(), abandoned: BTreeMap::new(), stopped: false };
        Requests { state: Mutex::new(state), waiting_max, mailbox, home, metrics }
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().expect("nothing panics while it holds the requests")
    }

    fn name(&self) -> RequestId {
        let mut state = self.lock();
        state.next += 1;
        state.next
    }

    fn open(&self, undo: Option<Undo<A>>) -> Result<Waiting<'_, A>, Rejected> {
        let (give, take) = oneshot::channel();
        let mut state = self.lock();
        if state.stopped {
            return Err(Rejected::Stopped);
        }
        if state.waiting.len() + state.abandoned.len() >= self.waiting_max {
            return Err(Rejected::Busy);
        }
        state.next += 1;
        let id = state.next;
        state.waiting.insert(id, Asked { give, undo });
        self.metrics.requests.set(state.waiting.len() as i64);
        Ok(Waiting { requests: self, id, take, undo, answered: false })
    }

    /// Answers requests, those of them that somebody still waits for. What the others have begun is ended.
    pub fn answer(&self, answers: impl IntoIterator<Item = (RequestId, A::Answer)>) {
        let mut state = self.lock();
        let mut unheard = Vec::new();
        let mut waiting = Vec::new();
        for (id, answer) in answers {
            match state.waiting.remove(&id) {
                Some(asked) => waiting.push((asked, answer)),
                None => unheard.extend(state.abandoned.remove(&id).map(|undo| (undo, answer))),
            }
        }
        self.metrics.requests.set(state.waiting.len() as i64);
        drop(state);
        for (Asked { give, undo }, answer) in waiting {
            // Who asked may have gone in this very moment.
            if let (Err(answer), Some(undo)) = (give.send(answer), undo) {
                unheard.push((undo, answer));
            }
        }
        unheard.iter().for_each(|(undo, answer)| self.end_unheard(*undo, answer));
    }

    /// The actor looks at it the next time that it looks at anything.
    fn end_unheard(&self, undo: Undo<A>, answer: &A::Answer) {
        if let Some(request) = undo(answer) {
            // A site that stops forgets what was begun.
            let _ = self.mailbox.push_end(self.name(), request);
        }
    }

    /// Tells everybody who waits that there will be no answer.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.waiting.clear();
        state.abandoned.clear();
    }
}

/// A place among the waiting, given up when nobody waits for the answer any more. The answer itself has given it up.
struct Waiting<'a, A: Actor> {
    requests: &'a Requests<A>,
    id: RequestId,
    take: oneshot::Receiver<A::Answer>,
    undo: Option<Undo<A>>,
    answered: bool,
}

impl<A: Actor> Drop for Waiting<'_, A> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        // From here on the answer cannot be given, or it is here.
        self.take.close();
        if let (Ok(answer), Some(undo)) = (self.take.try_recv(), self.undo) {
            return self.requests.end_unheard(undo, &answer);
        }
        let mut state = self.requests.lock();
        if let Some(Asked { undo: Some(undo), .. }) = state.waiting.remove(&self.id) {
            state.abandoned.insert(self.id, undo);
        }
        self.requests.metrics.requests.set(state.waiting.len() as i64);
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
        self.wait(request, None).await
    }

    /// Asks for what has to be ended. If this is dropped before the answer is heard, what `undo` makes of it ends it.
    pub async fn begin(&self, request: A::Request, undo: Undo<A>) -> Result<A::Answer, Rejected> {
        self.wait(request, Some(undo)).await
    }

    async fn wait(&self, request: A::Request, undo: Option<Undo<A>>) -> Result<A::Answer, Rejected> {
        let mut waiting = self.requests.open(undo).inspect_err(|rejected| self.count(*rejected))?;
        if let Err(rejected) = self.mailbox.push_client(waiting.id, request) {
            // It was not asked, so nothing begins.
            self.requests.lock().waiting.remove(&waiting.id);
            self.count(rejected);
            return Err(rejected);
        }
        self.cell.attend();
        let answer = (&mut waiting.take).await.map_err(|_| Rejected::Stopped);
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
