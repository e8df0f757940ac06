//! What waits for the actor. Three kinds of senders, each held back in its own way.
//!
//! - Peers wait while [`MAILBOX_PEERS_MAX`] of their messages are here: nothing more is read from their connections, for
//!   a while; see [`crate::transport::Inbox`].
//! - Clients are told [`Rejected::Busy`] while [`MAILBOX_CLIENTS_MAX`] of their requests are here. Who ends what it has begun is always
//!   heard: there are no more of these than the actor has let begin.
//! - The site itself (answers of the store, messages to itself) never waits: what it adds is bounded by what the actor
//!   asked for. It comes first, so that a flood from outside does not hold up what is under way.

use super::rejected::Rejected;
use super::{Hosted, decode_message};
use crate::bounds::{MAILBOX_CLIENTS_MAX, MAILBOX_PEERS_MAX};
use crate::transport::frame::FrameError;
use crate::transport::{Inbox, Room};
use prometheus_client::metrics::gauge::Gauge;
use rhumb_core::SiteId;
use rhumb_core::actor::{Actor, Input, RequestId};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;
use tokio::sync::Notify;
use tokio::time::timeout_at;

/// What waits for the actor.
pub struct Mailbox<A: Actor> {
    state: Mutex<State<A>>,
    arrived: Notify,
    peers: Room,
    depth: Gauge,
}

struct State<A: Actor> {
    inner: VecDeque<Input<A>>,
    outer: VecDeque<Input<A>>,
    clients: usize,
    /// True while the actor waits: only then must it be woken, and only once.
    asleep: bool,
    closed: bool,
}

impl<A: Actor> Mailbox<A> {
    /// An empty one, whose depth `depth` shows.
    pub fn new(depth: Gauge) -> Mailbox<A> {
        let state = State { inner: VecDeque::new(), outer: VecDeque::new(), clients: 0, asleep: false, closed: false };
        Mailbox { state: Mutex::new(state), arrived: Notify::new(), peers: Room::new(MAILBOX_PEERS_MAX), depth }
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().expect("nothing panics while it holds the mailbox")
    }

    fn wake(&self, mut state: MutexGuard<'_, State<A>>) {
        self.depth.set((state.inner.len() + state.outer.len()) as i64);
        if std::mem::take(&mut state.asleep) {
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Adds an input of the site itself.
    pub fn push_inner(&self, input: Input<A>) {
        let mut state = self.lock();
        state.inner.push_back(input);
        self.wake(state);
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
        self.wake(state);
    }

    /// Moves what waits into `taken`, the site's own first; what came from outside only if `outside`. Waits while there
    /// is nothing, until `deadline` at the latest. False once the mailbox is closed.
    pub async fn take(&self, taken: &mut VecDeque<Input<A>>, outside: bool, deadline: Option<Instant>) -> bool {
        loop {
            if let Some(open) = self.try_take(taken, outside) {
                return open;
            }
            match deadline {
                None => self.arrived.notified().await,
                Some(deadline) if timeout_at(deadline.into(), self.arrived.notified()).await.is_err() => return true,
                Some(_) => {}
            }
        }
    }

    /// The same without waiting. None if there is nothing, and whoever adds something will wake the actor.
    pub fn try_take(&self, taken: &mut VecDeque<Input<A>>, outside: bool) -> Option<bool> {
        let mut state = self.lock();
        if state.closed {
            return Some(false);
        }
        if state.inner.is_empty() && (state.outer.is_empty() || !outside) {
            state.asleep = true;
            return None;
        }
        state.asleep = false;
        taken.append(&mut state.inner);
        if outside {
            self.peers.leave(state.outer.len() - state.clients);
            state.clients = 0;
            taken.append(&mut state.outer);
        }
        self.depth.set((state.inner.len() + state.outer.len()) as i64);
        Some(true)
    }
}

impl<A: Hosted> Inbox for Mailbox<A> {
    fn room(&self) -> &Room {
        &self.peers
    }

    fn put(&self, from: SiteId, data: &[u8]) -> Result<(), FrameError> {
        let body = decode_message::<A::Note, A::Promise>(data).inspect_err(|_| self.peers.leave(1))?;
        let mut state = self.lock();
        state.outer.push_back(Input::Message { from, body });
        self.wake(state);
        Ok(())
    }

    /// The actor is given nothing more either.
    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.peers.close();
        self.wake(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::actor::{Body, Effects};
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
        let message = postcard::to_stdvec(&Body::<String, String>::Note(String::new())).expect("plain data");
        assert!(mailbox.room().enter().await);
        mailbox.put(SiteId::new(0, 0), &message).expect("it can be decoded");
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

        mailbox.push_inner(Input::Timer(()));
        let mut taken = VecDeque::new();
        assert!(mailbox.take(&mut taken, false, None).await);
        assert_eq!(taken.len(), 1, "only the site's own before it has recovered");
        assert!(mailbox.take(&mut taken, true, None).await);
        assert_eq!(taken.len(), 1 + MAILBOX_PEERS_MAX + MAILBOX_CLIENTS_MAX + 1);
        push_peer(&mailbox).await;
        assert_eq!(mailbox.push_client(0, ()), Ok(()), "there is room again");

        mailbox.close();
        assert_eq!(mailbox.push_client(0, ()), Err(Rejected::Stopped));
        assert_eq!(mailbox.push_end(0, ()), Err(Rejected::Stopped));
        assert!(!mailbox.take(&mut taken, true, None).await);
    }
}
