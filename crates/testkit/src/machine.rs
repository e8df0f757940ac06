//! One site of a cluster: its disk, which outlives a crash, and the running actor, which does not.

use rhumb_core::actor::{Gated, Token};
use rhumb_core::{Actor, Loaded, Span, Time};
use rhumb_store::{MemoryEngine, Store};
use std::collections::VecDeque;

/// Why no access to a disk fails.
pub(crate) const IN_MEMORY: &str = "a store in memory does not fail";

pub(crate) struct Machine<A: Actor> {
    pub(crate) store: Store<MemoryEngine>,
    /// None while it is down.
    pub(crate) running: Option<Running<A>>,
    /// Its clock is ahead by so much.
    pub(crate) ahead: Span,
    /// Nothing is synced while true.
    pub(crate) stalled: bool,
    /// Loads are not answered while true.
    pub(crate) loads_held: bool,
}

/// All that a crash ends.
pub(crate) struct Running<A: Actor> {
    pub(crate) actor: A,
    pub(crate) timers: Vec<(Time, A::Timer)>,
    /// Waits for a stalled disk.
    pub(crate) unsynced: VecDeque<Unsynced<A>>,
    /// Loaded, and not answered yet.
    pub(crate) loaded: VecDeque<(Token, Loaded)>,
}

/// A write that is not durable: what waits for it, and how many bytes are unsynced with it.
pub(crate) struct Unsynced<A: Actor> {
    pub(crate) token: Option<Token>,
    pub(crate) then: Vec<Gated<A>>,
    pub(crate) bytes: usize,
}

impl<A: Actor> Machine<A> {
    /// A machine with an empty disk, which is down.
    pub(crate) fn new() -> Machine<A> {
        Machine { store: empty_store(), running: None, ahead: Span::ZERO, stalled: false, loads_held: false }
    }

    pub(crate) fn start(&mut self, actor: A) {
        assert!(self.running.is_none(), "it is up already");
        self.running = Some(Running { actor, timers: Vec::new(), unsynced: VecDeque::new(), loaded: VecDeque::new() });
    }

    /// The running actor, and what belongs to it.
    pub(crate) fn running(&mut self) -> &mut Running<A> {
        self.running.as_mut().expect("it is up")
    }

    /// Crashes. Of the writes not synced the first `writes` have reached the disk.
    pub(crate) fn crash(&mut self, writes: usize) {
        let running = self.running.take().expect("it is up");
        let kept = running.unsynced.iter().take(writes).next_back().map_or(0, |write| write.bytes);
        (self.stalled, self.loads_held) = (false, false);
        let mut engine = std::mem::replace(&mut self.store, empty_store()).into_engine();
        engine.crash(kept);
        self.store = Store::open(engine).expect("what a crash leaves opens");
    }
}

/// A store in memory that holds nothing.
pub fn empty_store() -> Store<MemoryEngine> {
    Store::open(MemoryEngine::new()).expect("an empty engine opens")
}
