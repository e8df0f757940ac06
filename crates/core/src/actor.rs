//! The contract between a protocol and the world: one step function.
//!
//! Every participant (a site with its gateway, coordinator and shard replica; later a quota site) is an [`Actor`]: a
//! deterministic state machine that is handed an [`Input`] and a clock reading and writes down [`Effects`]. Two drivers
//! carry them out, the simulator in virtual time and the node on tokio, by the same loop:
//!
//! ```text
//!   on start:            step(Start)
//!   on each input:       step(now, input, fx); then carry out fx in the order written:
//!     Send               hand to the transport; may be lost, delayed, doubled, reordered
//!     SetTimer           later: step(Timer)              — never before the span has passed
//!     Load               read the store, with all Persists written before and perhaps with later ones; then step(Loaded)
//!     Persist            append to the store's queue: visible to later Loads at once, durable later
//!                        once durable, in queue order: carry out its gated sends and answers,
//!                        then step(Persisted) if it asks for that; one that nobody
//!                        waits for may stay without a sync for UNSYNCED_MAX
//!     Answer             hand to the client
//! ```
//!
//! **What depends on durability waits for it by type.** Messages come in two kinds: a *note* promises nothing and may
//! leave at once; a *promise* (a vote, an acknowledgement) must not leave before what it promises is on disk, and
//! [`Effects`] takes one only through [`Effects::persist`]. A promise made again is attached to an empty batch: the
//! queue is first in, first out, so it leaves after everything before it is durable.
//!
//! A step also says, for drivers that want to know, how much it has worked ([`work`](crate::work)) and what it has found to be agreed on
//! ([`Effects::agree`]); no decision depends on either.
//!
//! Invariants every driver keeps: persists become durable in the order they were written; after a crash the store
//! holds a prefix of them, whole batches only; an actor is never stepped from within a step.

pub use crate::agreed::Agreed;
pub use crate::collect::Collect;
use crate::hlc::Timestamp;
use crate::ids::SiteId;
use crate::key::{Key, KeyRange, Value};
use crate::record::encode;
use crate::time::{Span, Time};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of a message between two sites in its encoding, which is postcard's. Every driver drops a longer one, each time that it is
/// sent: a protocol bounds what it says by [`encoded_bytes`](crate::record::encoded_bytes).
pub const MESSAGE_BYTES_MAX: usize = (16 << 20) - 1;

/// So long a persist that nothing waits for may stay without a sync once it has reached the store, unless a sync for another comes first: a
/// driver syncs for those who wait.
pub const UNSYNCED_MAX: Span = Span::from_millis(100);

/// A deterministic state machine.
pub trait Actor: Sized {
    /// A message that promises nothing.
    type Note: Clone + fmt::Debug + fmt::Display + Serialize;
    /// A message that promises something durable.
    type Promise: Clone + fmt::Debug + fmt::Display + Serialize;
    /// The timers it sets.
    type Timer: Clone + fmt::Debug;
    /// What its clients ask.
    type Request;
    /// What its clients are told.
    type Answer;

    /// Takes one input and writes down what is to be done about it. `now` is this site's clock reading.
    fn step(&mut self, now: Time, input: Input<Self>, fx: &mut Effects<Self>);
}

/// A message on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Body<N, P> {
    /// Promises nothing.
    Note(N),
    /// What it promises was durable at the sender before it left.
    Promise(P),
}

impl<N: fmt::Display, P: fmt::Display> fmt::Display for Body<N, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Note(note) => note.fmt(f),
            Body::Promise(promise) => promise.fmt(f),
        }
    }
}

/// Names a load or a persist within its actor, chosen by the actor.
pub type Token = u64;

/// Names a client's request within its site, chosen by the driver; its answer carries the same.
pub type RequestId = u64;

/// What happens to an actor.
pub enum Input<A: Actor> {
    /// The first input of an incarnation: the store holds what the incarnations before made durable.
    Start,
    /// A message arrived.
    Message {
        /// Who sent it.
        from: SiteId,
        /// What it says.
        body: Body<A::Note, A::Promise>,
    },
    /// A timer that was set has run out.
    Timer(A::Timer),
    /// A load is answered.
    Loaded {
        /// The token of the load.
        token: Token,
        /// What it found.
        loaded: Loaded,
    },
    /// A persist that asked to be told is durable.
    Persisted {
        /// The token of the persist.
        token: Token,
    },
    /// A client asks something.
    Client {
        /// Names the request in the answer.
        id: RequestId,
        /// What it asks.
        request: A::Request,
    },
}

/// What an actor wants done.
pub enum Effect<A: Actor> {
    /// Send a note.
    Send {
        /// To whom; may be the sender itself.
        to: SiteId,
        /// What.
        note: A::Note,
    },
    /// Step with `timer` once `after` has passed on this site's clock.
    SetTimer {
        /// Which.
        timer: A::Timer,
        /// How long from now.
        after: Span,
    },
    /// Read from the store.
    Load {
        /// Names the answer.
        token: Token,
        /// What to read.
        load: Load,
    },
    /// Write to the store, and carry out `then` once that is durable.
    Persist {
        /// What to write, whole or not at all. Empty: only wait for the batches before it.
        batch: Batch,
        /// If set, step with `Persisted` once durable.
        token: Option<Token>,
        /// What waits for it.
        then: Vec<Gated<A>>,
    },
    /// Answer a client's request.
    Answer {
        /// Which.
        id: RequestId,
        /// What it is told.
        answer: A::Answer,
    },
    /// Drop versions that no reader can ask for any more (see [`Collect`]), once all batches before, which may say so, are durable.
    Collect(Collect),
    /// Something worth counting happened: a metric of the node, a probe of the simulator.
    Count(&'static str),
    /// A line for the trace.
    Trace(String),
}

/// What waits for a persist to be durable.
pub enum Gated<A: Actor> {
    /// Send a promise.
    Send {
        /// To whom; may be the sender itself.
        to: SiteId,
        /// What.
        promise: A::Promise,
    },
    /// Answer a client's request.
    Answer {
        /// Which.
        id: RequestId,
        /// What it is told.
        answer: A::Answer,
    },
}

/// The list of effects that a step writes.
pub struct Effects<A: Actor> {
    list: Vec<Effect<A>>,
    tracing: bool,
    /// None if nobody compares it.
    agreed: Option<Vec<Agreed>>,
    steady: Option<Time>,
}

impl<A: Actor> Effects<A> {
    /// An empty list. Trace lines are built only if `tracing`.
    pub fn new(tracing: bool) -> Effects<A> {
        Effects { list: Vec::new(), tracing, agreed: None, steady: None }
    }

    /// The same, with what is agreed on recorded.
    pub fn recording(self) -> Effects<A> {
        Effects { agreed: Some(Vec::new()), ..self }
    }

    /// The same, in a step that begins at this reading of a steady clock: one that nobody sets, that counts while the machine sleeps, and
    /// that is off by less than a hundredth of what it counts.
    pub fn at_steady(self, now: Time) -> Effects<A> {
        Effects { steady: Some(now), ..self }
    }

    /// The steady clock at the beginning of the step, or before; none if the driver has none. Readings of one incarnation compare.
    pub fn steady(&self) -> Option<Time> {
        self.steady
    }

    /// Sends a note.
    pub fn send(&mut self, to: SiteId, note: A::Note) {
        self.list.push(Effect::Send { to, note });
    }

    /// Sets a timer.
    pub fn set_timer(&mut self, timer: A::Timer, after: Span) {
        self.list.push(Effect::SetTimer { timer, after });
    }

    /// Asks the store.
    pub fn load(&mut self, token: Token, load: Load) {
        self.list.push(Effect::Load { token, load });
    }

    /// Writes `batch`; what must wait for it is attached to the [`Persist`] returned.
    pub fn persist(&mut self, batch: Batch) -> Persist<'_, A> {
        self.list.push(Effect::Persist { batch, token: None, then: Vec::new() });
        match self.list.last_mut() {
            Some(Effect::Persist { token, then, .. }) => Persist { token, then },
            _ => unreachable!("the effect was just pushed"),
        }
    }

    /// Answers a request with what needs no durability of this site.
    pub fn answer(&mut self, id: RequestId, answer: A::Answer) {
        self.list.push(Effect::Answer { id, answer });
    }

    /// Asks for garbage to be collected.
    pub fn collect(&mut self, collect: Collect) {
        self.list.push(Effect::Collect(collect));
    }

    /// Counts an event under a dotted lower-case name, as `commit.vote_no_timestamp_too_low`.
    pub fn count(&mut self, event: &'static str) {
        self.list.push(Effect::Count(event));
    }

    /// Records that `key` of this `topic` is `value`, as far as this actor knows for certain: nobody may ever record another value. Costs
    /// nothing where nobody compares what actors record.
    pub fn agree(&mut self, topic: &'static str, key: impl fmt::Display, value: &impl Serialize) {
        if let Some(agreed) = &mut self.agreed {
            agreed.push(Agreed { topic, key: key.to_string(), value: encode(value).to_vec() });
        }
    }

    /// Takes what was recorded so far.
    pub fn take_agreed(&mut self) -> Vec<Agreed> {
        self.agreed.as_mut().map_or_else(Vec::new, std::mem::take)
    }

    /// Adds a line to the trace; `line` is called only if somebody traces.
    pub fn trace(&mut self, line: impl FnOnce() -> String) {
        if self.tracing {
            self.list.push(Effect::Trace(line()));
        }
    }

    /// Takes the effects written so far, in order.
    pub fn take(&mut self) -> Vec<Effect<A>> {
        std::mem::take(&mut self.list)
    }
}

/// A write on its way to disk. Promises can be attached to it, and to nothing else.
pub struct Persist<'a, A: Actor> {
    token: &'a mut Option<Token>,
    then: &'a mut Vec<Gated<A>>,
}

impl<A: Actor> Persist<'_, A> {
    /// Sends `promise` once the write is durable.
    pub fn send(self, to: SiteId, promise: A::Promise) -> Self {
        self.then.push(Gated::Send { to, promise });
        self
    }

    /// Answers the client once the write is durable.
    pub fn answer(self, id: RequestId, answer: A::Answer) -> Self {
        self.then.push(Gated::Answer { id, answer });
        self
    }

    /// Steps the actor with `Persisted{token}` once the write is durable.
    pub fn notify(self, token: Token) -> Self {
        *self.token = Some(token);
        self
    }
}

/// A part of a site's own durable records (not rows): each protocol names its own. Ordered by key within a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Space(pub u8);

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    /// Adds the version `at` of `key`; `None` is a deletion. The same version again changes nothing.
    PutVersion {
        /// Which row.
        key: Key,
        /// Its commit timestamp.
        at: Timestamp,
        /// Its value, or `None` for a deletion.
        value: Option<Value>,
    },
    /// Sets a record.
    PutRecord {
        /// Its space.
        space: Space,
        /// Its key in that space.
        key: Bytes,
        /// Its bytes.
        bytes: Bytes,
    },
    /// Removes a record; no harm if there is none.
    DeleteRecord {
        /// Its space.
        space: Space,
        /// Its key in that space.
        key: Bytes,
    },
}

/// Writes that become durable together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Batch {
    /// The writes, in order.
    pub ops: Vec<Op>,
}

impl Batch {
    /// No write.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Adds a version.
    pub fn put_version(&mut self, key: Key, at: Timestamp, value: Option<Value>) {
        self.ops.push(Op::PutVersion { key, at, value });
    }

    /// Sets a record.
    pub fn put_record(&mut self, space: Space, key: impl Into<Bytes>, bytes: impl Into<Bytes>) {
        self.ops.push(Op::PutRecord { space, key: key.into(), bytes: bytes.into() });
    }

    /// Removes a record.
    pub fn delete_record(&mut self, space: Space, key: impl Into<Bytes>) {
        self.ops.push(Op::DeleteRecord { space, key: key.into() });
    }
}

/// A question to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// For each of the first of these keys, its newest version at or below `at` (`Timestamp::MAX`: the newest). Answered by one [`Row`] per
    /// key, in the order asked; a key without such a version answers version zero and no value. None comes after those rows that have `bytes`
    /// bytes; one at least, if there is a key. [`Loaded::Rows::more`] tells if that cut the answer off.
    Get {
        /// Which rows.
        keys: Vec<Key>,
        /// As of when.
        at: Timestamp,
        /// No more once there are so many bytes, see [`Row::bytes`].
        bytes: usize,
    },
    /// For each key, its newest version, without its value: for whoever compares versions.
    Stamps {
        /// Which rows.
        keys: Vec<Key>,
    },
    /// The newest version of every key in the range that has one, without values, in key order: `limit` at the most, and none after those
    /// whose keys have `bytes` bytes; one at least, if there is one and `limit` allows it.
    ScanStamps {
        /// Which rows.
        range: KeyRange,
        /// At most so many.
        limit: usize,
        /// No more once their keys have so many bytes.
        bytes: usize,
    },
    /// The newest version at or below `at` of every key in the range that has one, deletions included, in key order (or
    /// its reverse), `limit` rows at the most, and none after those whose keys and values have `bytes` bytes. [`Loaded::Rows::more`]
    /// tells if a limit cut the answer off.
    Scan {
        /// Which rows.
        range: KeyRange,
        /// As of when.
        at: Timestamp,
        /// At most so many.
        limit: usize,
        /// No more once there are so many bytes: there is at least one row, if there is any and `limit` allows it.
        bytes: usize,
        /// From the end of the range downwards.
        reverse: bool,
    },
    /// The very versions named, those of them that are still kept, in the order asked: none after those rows that have `bytes` bytes, one at
    /// least, if one is kept. [`Loaded::Rows::more`] tells if that cut the answer off.
    Versions {
        /// Which rows at which commit timestamps.
        versions: Vec<(Key, Timestamp)>,
        /// No more once there are so many bytes, see [`Row::bytes`].
        bytes: usize,
    },
    /// The records of `space` with keys from `from` on, in order, `limit` at the most, and none after those that have `bytes` bytes.
    Records {
        /// Which space.
        space: Space,
        /// The first key.
        from: Bytes,
        /// At most so many.
        limit: usize,
        /// No more once there are so many bytes: there is at least one record, if there is any and `limit` allows it.
        bytes: usize,
    },
}

/// So many keys at the most are read within a step.
const KEYS_SHORT_MAX: usize = 64;

impl Load {
    /// True if it is so short that a driver answers it within the step, unless writes of its keys are on their way: the answer to any other
    /// may show what was written after it was asked for.
    pub fn is_short(&self) -> bool {
        match self {
            Load::Get { keys, .. } | Load::Stamps { keys } => keys.len() <= KEYS_SHORT_MAX,
            Load::Versions { versions, .. } => versions.len() <= KEYS_SHORT_MAX,
            Load::Scan { .. } | Load::ScanStamps { .. } | Load::Records { .. } => false,
        }
    }
}

/// A version of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its key.
    pub key: Key,
    /// Its commit timestamp; zero if the key was never written.
    pub version: Timestamp,
    /// Its value; `None` if it was deleted or never written.
    pub value: Option<Value>,
}

/// What a row has in a message or in memory beside its key and value, at the most: its version, the lengths, whether it was deleted.
const ROW_EXTRA_BYTES: usize = 32;

impl Row {
    /// Bytes that it has in a message, or a few more.
    pub fn bytes(&self) -> usize {
        self.key.0.len() + self.value.as_ref().map_or(0, |value| value.0.len()) + ROW_EXTRA_BYTES
    }
}

/// An answer of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// To all but `Records`; without values to `Stamps` and `ScanStamps`.
    Rows {
        /// What was found.
        rows: Vec<Row>,
        /// True if a limit cut the answer off.
        more: bool,
    },
    /// To `Records`.
    Records {
        /// Keys and bytes, in order.
        records: Vec<(Bytes, Bytes)>,
        /// True if a limit cut the answer off.
        more: bool,
    },
}
