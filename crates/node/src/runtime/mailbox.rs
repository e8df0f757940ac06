//! What waits for the actor. Three kinds of senders, each held back in its own way.
//!
//! - Peers wait while [`MAILBOX_PEERS_MAX`] of their messages are here: nothing more is read from their connections, for
//!   a while; see [`crate::transport::Inbox`].
//! - Clients are told [`Rejected::Busy`] while [`MAILBOX_CLIENTS_MAX`] of their requests are here. Who ends what it has begun is always
//!   heard: there are no more of these than the actor has let begin.
//! - The site itself (answers of the store, messages to itself) never waits: what it adds is bounded by what the actor
//!   asked for. It comes first, so that a flood from outside does not hold up what is under way.

use super::rejected::Rejected;
use crate::bounds::{MAILBOX_CLIENTS_MAX, MAILBOX_PEERS_MAX};
use crate::transport::Room;
use prometheus_client::metrics::gauge::Gauge;
use rhumb_core::SiteId;
use rhumb_core::actor::{Actor, Body, Input, RequestId};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;
use tokio::sync::Notify;
use tokio::time::timeout_at;

/// What waits for the actor.
pub struct Mailbox<A: Actor> {
    state: Mutex<State<A>>,
    roused: Notify,
    peers: Room,
    depth: Gauge,
}

struct State<A: Actor> {
    inner: VecDeque<Input<A>>,
    outer: VecDeque<Input<A>>,
    clients: usize,
    /// True once what came from outside is taken too.
    open: bool,
    /// True while the actor's own thread sleeps: only then must it be woken, and only once.
    asleep: bool,
    closed: bool,
}

impl<A: Actor> State<A> {
    fn is_empty(&self) -> bool {
        self.inner.is_empty() && (self.outer.is_empty() || !self.open)
    }
}

impl<A: Actor> Mailbox<A> {
    /// An empty one, whose depth `depth` shows.
    pub fn new(depth: Gauge) -> Mailbox<A> {
        let state = State { inner: VecDeque::new(), outer: VecDeque::new(), clients: 0, open: false, asleep: false, closed: false };
        Mailbox { state: Mutex::new(state), roused: Notify::new(), peers: Room::new(MAILBOX_PEERS_MAX), depth }
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().expect("nothing panics while it holds the mailbox")
    }

    fn show(&self, state: &State<A>) {
        self.depth.set((state.inner.len() + state.outer.len()) as i64);
    }

    /// Adds an input of the site itself.
    pub fn push_inner(&self, input: Input<A>) {
        let mut state = self.lock();
        state.inner.push_back(input);
        self.show(&state);
    }

    /// Adds a message of a peer, for which there is room: [`Room::enter`] said so just before.
    pub fn push_peer(&self, from: SiteId, body: Body<A::Note, A::Promise>) {
        let mut state = self.lock();
        state.outer.push_back(Input::Message { from, body });
        self.show(&state);
    }

    /// Adds a client's request, if there is room.
    pub fn push_client(&self, id: RequestId, request: A::Request) -> Result<(), Rejected> {
        let state = self.lock();
        if state.closed {
            return Err(Rejected::Stopped);
        }
        if state.clients >= MAILBOX_CLIENTS_MAX {
            return Err(Rejected::Busy);
        }
        self.add_client(state, id, request);
        Ok(())
    }

    /// Adds the request of a client that ends what it has begun.
    pub fn push_end(&self, id: RequestId, request: A::Request) -> Result<(), Rejected> {
        let state = self.lock();
        if state.closed {
            return Err(Rejected::Stopped);
        }
        self.add_client(state, id, request);
        Ok(())
    }

    fn add_client(&self, mut state: MutexGuard<'_, State<A>>, id: RequestId, request: A::Request) {
        state.clients += 1;
        state.outer.push_back(Input::Client { id, request });
        self.show(&state);
    }

    /// Moves what waits into `taken`, the site's own first. None once the mailbox is closed, and else whether there was anything.
    pub fn take(&self, taken: &mut VecDeque<Input<A>>) -> Option<bool> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        if state.is_empty() {
            return Some(false);
        }
        taken.append(&mut state.inner);
        if state.open {
            self.peers.leave(state.outer.len() - state.clients);
            state.clients = 0;
            taken.append(&mut state.outer);
        }
        self.show(&state);
        Some(true)
    }

    /// From now on what came from outside is taken too.
    pub fn open(&self) {
        self.lock().open = true;
    }

    /// True if there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The actor's own thread is about to sleep: from now on it hears who rouses it.
    pub fn doze(&self) {
        self.lock().asleep = true;
    }

    /// True if the actor's own thread may sleep, as far as the mailbox knows.
    pub fn rests(&self) -> bool {
        let state = self.lock();
        state.is_empty() && !state.closed
    }

    /// Sleeps until somebody rouses the actor's own thread, though no longer than until `deadline`.
    pub async fn sleep(&self, deadline: Option<Instant>) {
        match deadline {
            None => self.roused.notified().await,
            // Whichever ends it, there is something to do.
            Some(deadline) => drop(timeout_at(deadline.into(), self.roused.notified()).await),
        }
    }

    /// Wakes the actor's own thread if it sleeps.
    pub fn rouse(&self) {
        if std::mem::take(&mut self.lock().asleep) {
            self.roused.notify_one();
        }
    }

    /// Waits until the mailbox is closed. Only the actor's own thread may.
    pub async fn closed(&self) {
        loop {
            {
                let mut state = self.lock();
                if state.closed {
                    return;
                }
                state.asleep = true;
            }
            self.roused.notified().await;
        }
    }

    /// Room for messages of peers.
    pub fn room(&self) -> &Room {
        &self.peers
    }

    /// Takes nothing more, and gives nothing more.
    pub fn close(&self) {
        self.lock().closed = true;
        self.peers.close();
        self.rouse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::actor::Effects;
    use rhumb_core::{SiteId, Time};
    use std::sync::Arc;
    use std::time::Duration;

    struct Mute;

    impl Actor for Mute {
        type Note = String;
        type Promise = String;
        type Timer = ();
        type Request = ();
        type Answer = ();
        fn step(&mut self, _: Time, _: Input<Mute>, _: &mut Effects<Mute>) {}
    }

    async fn push_peer(mailbox: &Mailbox<Mute>) {
        assert!(mailbox.room().enter().await);
        mailbox.push_peer(SiteId::new(0, 0), Body::Note(String::new()));
    }

    #[tokio::test]
    async fn peers_wait_while_the_mailbox_is_full_and_clients_are_told() {
        let mailbox = Arc::new(Mailbox::<Mute>::new(Gauge::default()));
        for _ in 0..MAILBOX_PEERS_MAX {
            push_peer(&mailbox).await;
        }
        for id in 0..MAILBOX_CLIENTS_MAX as u64 {
            assert_eq!(mailbox.push_client(id, ()), Ok(()), "full of peers' messages is not full of clients'");
        }
        assert_eq!(mailbox.push_client(0, ()), Err(Rejected::Busy));
        assert_eq!(mailbox.push_end(1, ()), Ok(()), "what ends makes room");
        let waiting = tokio::time::timeout(Duration::from_millis(5), push_peer(&mailbox)).await;
        assert!(waiting.is_err(), "it waits");

        assert!(mailbox.rests(), "what came from outside is none of its business before it has recovered");
        mailbox.push_inner(Input::Timer(()));
        assert!(!mailbox.rests());
        let mut taken = VecDeque::new();
        assert_eq!(mailbox.take(&mut taken), Some(true));
        assert_eq!(taken.len(), 1, "only the site's own before it has recovered");
        assert_eq!(mailbox.take(&mut taken), Some(false));
        mailbox.open();
        assert_eq!(mailbox.take(&mut taken), Some(true));
        assert_eq!(taken.len(), 1 + MAILBOX_PEERS_MAX + MAILBOX_CLIENTS_MAX + 1);
        push_peer(&mailbox).await;
        assert_eq!(mailbox.push_client(0, ()), Ok(()), "there is room again");

        mailbox.close();
        assert_eq!(mailbox.push_client(0, ()), Err(Rejected::Stopped));
        assert_eq!(mailbox.push_end(0, ()), Err(Rejected::Stopped));
        assert_eq!(mailbox.take(&mut taken), None);
        assert!(!mailbox.rests());
        mailbox.closed().await;
    }

    #[tokio::test]
    async fn who_sleeps_is_woken_by_whoever_rouses_it_even_before_it_sleeps() {
        let mailbox = Mailbox::<Mute>::new(Gauge::default());
        mailbox.doze();
        mailbox.rouse();
        mailbox.rouse();
        mailbox.sleep(None).await;
        let slept = tokio::time::timeout(Duration::from_millis(5), mailbox.sleep(None)).await;
        assert!(slept.is_err(), "once is once");
        mailbox.doze();
        mailbox.sleep(Some(Instant::now())).await;
    }
}
