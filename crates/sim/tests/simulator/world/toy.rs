//! A toy actor to test the world with: a register that one site writes and all keep.
//!
//! ```text
//!   client ── put ──→ primary ── Store ──→ every other site
//!                     persist               persist
//!          ←─ done ── once itself and    ←── Stored, once durable
//!                     a majority have it
//! ```
//!
//! A `put here` is acknowledged by the site asked alone, and its answer is gated by that site's disk.
//! Each write is a record of its own, under its sequence number: what a crash left is a list to look at.

use rhumb_core::actor::{Actor, Batch, Body, Effects, Input, Load, Loaded, RequestId, Space, Token};
use rhumb_core::{RttMatrix, SiteId, Span, Time, wan};
use rhumb_sim::{Config, LocalDelays, World};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How long the primary waits before it sends a write again.
pub const RESEND_AFTER: Span = Span::from_millis(500);

const WRITES: Space = Space(7);
const START_LOAD: Token = 0;
const LOAD_MAX: usize = 10_000;

/// The five regions of the paper: California, Oregon, Virginia, Ireland, Singapore.
pub const C: SiteId = SiteId::new(0, 0);
pub const O: SiteId = SiteId::new(1, 0);
pub const V: SiteId = SiteId::new(2, 0);
pub const I: SiteId = SiteId::new(3, 0);
pub const S: SiteId = SiteId::new(4, 0);

/// Local delays that can be told apart in a sum.
pub const LOCAL: LocalDelays = LocalDelays {
    message: Span::from_micros(100),
    step: Span::from_micros(10),
    load: Span::from_micros(50),
    long_load: Span::from_micros(50),
    sync: Span::from_micros(1_000),
    row: Span::ZERO,
    request: Span::ZERO,
    remote: Span::ZERO,
};

#[derive(Clone, Debug, Serialize)]
pub struct Store {
    seq: u64,
    value: u64,
    padding: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Stored {
    seq: u64,
}

#[derive(Clone, Debug)]
pub struct Resend(pub u64);

pub enum Request {
    Put(u64),
    /// A put that is said with so many bytes of padding, and without when it is said again.
    PutPadded(usize),
    PutHere(u64),
    Get,
    AnswerTwice,
    Panic,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Value(Option<u64>),
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store {}", self.value)
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stored {:x}", self.seq)
    }
}

struct Pending {
    request: RequestId,
    value: u64,
    stored_at: BTreeSet<SiteId>,
}

/// One site's register.
pub struct Register {
    me: SiteId,
    sites: Vec<SiteId>,
    /// Sequence numbers of an incarnation lie above those of the incarnations before.
    last: u64,
    known: BTreeSet<u64>,
    pending: BTreeMap<u64, Pending>,
}

impl Register {
    pub fn new(me: SiteId, incarnation: u64, sites: Vec<SiteId>) -> Register {
        Register { me, sites, last: incarnation << 32, known: BTreeSet::new(), pending: BTreeMap::new() }
    }

    fn put(&mut self, request: RequestId, value: u64, padding: usize, fx: &mut Effects<Register>) {
        self.last += 1;
        let seq = self.last;
        fx.count("toy.put");
        for &site in self.sites.iter().filter(|site| **site != self.me) {
            fx.send(site, Store { seq, value, padding: "x".repeat(padding) });
        }
        self.known.insert(seq);
        fx.persist(write(seq, value)).notify(seq);
        fx.set_timer(Resend(seq), RESEND_AFTER);
        self.pending.insert(seq, Pending { request, value, stored_at: BTreeSet::new() });
    }

    fn stored(&mut self, seq: u64, at: SiteId, fx: &mut Effects<Register>) {
        let Some(pending) = self.pending.get_mut(&seq) else { return };
        pending.stored_at.insert(at);
        if pending.stored_at.contains(&self.me) && pending.stored_at.len() > self.sites.len() / 2 {
            fx.answer(pending.request, Answer::Done);
            self.pending.remove(&seq);
        }
    }

    fn store(&mut self, from: SiteId, store: Store, fx: &mut Effects<Register>) {
        let batch = if self.known.insert(store.seq) {
            write(store.seq, store.value)
        } else {
            fx.count("toy.stored_again");
            Batch::new()
        };
        fx.persist(batch).send(from, Stored { seq: store.seq });
    }

    fn resend(&mut self, seq: u64, fx: &mut Effects<Register>) {
        let Some(pending) = self.pending.get(&seq) else { return };
        fx.count("toy.resend");
        for &site in self.sites.iter().filter(|site| **site != self.me && !pending.stored_at.contains(site)) {
            fx.send(site, Store { seq, value: pending.value, padding: String::new() });
        }
        fx.set_timer(Resend(seq), RESEND_AFTER);
    }

    fn client(&mut self, id: RequestId, request: Request, fx: &mut Effects<Register>) {
        match request {
            Request::Put(value) => self.put(id, value, 0, fx),
            Request::PutPadded(padding) => self.put(id, 0, padding, fx),
            Request::PutHere(value) => {
                self.last += 1;
                fx.persist(write(self.last, value)).answer(id, Answer::Done);
            }
            Request::Get => fx.load(id, all()),
            Request::AnswerTwice => {
                fx.answer(id, Answer::Done);
                fx.answer(id, Answer::Done);
            }
            Request::Panic => panic!("asked to"),
        }
    }
}

impl Actor for Register {
    type Note = Store;
    type Promise = Stored;
    type Timer = Resend;
    type Request = Request;
    type Answer = Answer;

    fn step(&mut self, now: Time, input: Input<Register>, fx: &mut Effects<Register>) {
        match input {
            Input::Start => fx.load(START_LOAD, all()),
            Input::Message { from, body: Body::Note(note) } => self.store(from, note, fx),
            Input::Message { from, body: Body::Promise(Stored { seq }) } => self.stored(seq, from, fx),
            Input::Timer(Resend(seq)) => {
                fx.trace(|| format!("resend by my clock {now}"));
                self.resend(seq, fx);
            }
            Input::Loaded { token: START_LOAD, loaded } => self.known.extend(writes(loaded).keys()),
            Input::Loaded { token, loaded } => fx.answer(token, Answer::Value(writes(loaded).last_key_value().map(|(_, value)| *value))),
            Input::Persisted { token: seq } => self.stored(seq, self.me, fx),
            Input::Client { id, request } => self.client(id, request, fx),
        }
    }
}

fn write(seq: u64, value: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put_record(WRITES, seq.to_be_bytes().to_vec(), value.to_be_bytes().to_vec());
    batch
}

fn all() -> Load {
    Load::Records { space: WRITES, from: Vec::new().into(), limit: LOAD_MAX, bytes: usize::MAX }
}

fn writes(loaded: Loaded) -> BTreeMap<u64, u64> {
    let Loaded::Records { records, .. } = loaded else { panic!("records were asked for") };
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    records.iter().map(|(key, value)| (number(key), number(value))).collect()
}

/// A world of registers.
pub fn world(config: Config, seed: u64) -> World<Register> {
    let sites: Vec<SiteId> = config.topology.sites().collect();
    World::new(config, seed, move |me, incarnation| Register::new(me, incarnation, sites.clone()))
}

/// Traced, with [`LOCAL`] delays: the five regions of the paper.
pub fn five_regions() -> Config {
    let rtt = wan::profile("paper_replicated_commit_5").expect("it ships").matrix();
    Config { local: LOCAL, tracing: true, ..Config::new(rtt, 1) }
}

/// Traced, with [`LOCAL`] delays: one site.
pub fn one_site() -> Config {
    Config { local: LOCAL, tracing: true, ..Config::new(RttMatrix::uniform(vec!["a".into()], Span::ZERO), 1) }
}

/// The values that the store of `site` holds, in the order written.
pub fn kept(world: &World<Register>, site: SiteId) -> Vec<u64> {
    writes(world.store(site).load(&all()).expect("memory does not fail")).into_values().collect()
}

/// When each reply came, since `start`, and what it said.
pub fn replies(world: &mut World<Register>, start: Time) -> Vec<(u64, Option<Answer>)> {
    world.take_replies().into_iter().map(|reply| (reply.at.since(start).as_micros(), reply.answer)).collect()
}

/// The lines of the trace that hold `part`.
pub fn lines(world: &World<Register>, part: &str) -> Vec<String> {
    world.trace().lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
}
