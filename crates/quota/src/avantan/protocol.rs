//! Either version of Avantan behind one face: a quota chooses its own.

use super::{AccountPort, Any, Call, Majority, Outbox, Patience, any, majority};
use crate::cluster::Cluster;
use crate::list::List;
use crate::planted::Planted;
use crate::spec::{ProtocolKind, Reallocation};
use bytes::Bytes;
use rhumb_core::record::{decode, encode};
use rhumb_core::{Rules, SiteId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A message that promises nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Note {
    Majority(majority::Note),
    Any(any::Note),
}

/// A message that promises what is on the sender's disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    Majority(majority::Promise),
    Any(any::Promise),
}

/// What a protocol wants done.
pub type Out = Outbox<Note, Promise>;

/// One quota's part in its protocol at one site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Protocol {
    Majority(Majority),
    Any(Any),
}

impl Protocol {
    /// The part of `cluster.me`.
    pub fn new(kind: ProtocolKind, cluster: Cluster, reallocation: Reallocation) -> Protocol {
        match kind {
            ProtocolKind::Majority => Protocol::Majority(Majority::new(cluster, reallocation)),
            ProtocolKind::Any => Protocol::Any(Any::new(cluster, reallocation)),
        }
    }

    /// Takes up what an earlier incarnation had on disk.
    ///
    /// # Panics
    /// If the bytes are not those of [`Protocol::state`] and [`Protocol::lists`].
    pub fn recover(&mut self, state: Option<&Bytes>, lists: Option<&Bytes>, port: &mut dyn AccountPort, out: &mut Out) {
        const READ: &str = "records are read by the version that wrote them";
        fn read<T: Default + serde::de::DeserializeOwned>(bytes: Option<&Bytes>) -> T {
            bytes.map(|bytes| decode(bytes).expect(READ)).unwrap_or_default()
        }
        match self {
            Protocol::Majority(part) => out.of_majority(|out| part.recover(read(state), read(lists), port, out)),
            Protocol::Any(part) => out.of_any(|out| part.recover(read(state), read(lists), port, out)),
        }
    }

    /// What must be on disk before a promise leaves.
    pub fn state(&self) -> Bytes {
        match self {
            Protocol::Majority(part) => encode(part.state()),
            Protocol::Any(part) => encode(part.state()),
        }
    }

    /// The decided lists that others may lack; on disk with the state.
    pub fn lists(&self) -> Bytes {
        match self {
            Protocol::Majority(part) => encode(part.recent()),
            Protocol::Any(part) => encode(part.recent()),
        }
    }

    /// The decided lists that are remembered.
    pub fn decided(&self) -> Vec<&List> {
        match self {
            Protocol::Majority(part) => part.recent().lists().collect(),
            Protocol::Any(part) => part.recent().lists().collect(),
        }
    }

    /// True if the site may lead a redistribution.
    pub fn is_idle(&self) -> bool {
        match self {
            Protocol::Majority(part) => part.is_idle(),
            Protocol::Any(part) => part.is_idle(),
        }
    }

    /// Leads a redistribution. The site must be idle.
    pub fn start(&mut self, call: Call, port: &mut dyn AccountPort, out: &mut Out) {
        match self {
            Protocol::Majority(part) => out.of_majority(|out| part.start(call, port, out)),
            Protocol::Any(part) => out.of_any(|out| part.start(call, port, out)),
        }
    }

    /// Takes a note; one of the other protocol belongs to no quota of this id.
    pub fn on_note(&mut self, from: SiteId, note: Note, port: &mut dyn AccountPort, out: &mut Out) {
        match (self, note) {
            (Protocol::Majority(part), Note::Majority(note)) => out.of_majority(|out| part.on_note(from, note, port, out)),
            (Protocol::Any(part), Note::Any(note)) => out.of_any(|out| part.on_note(from, note, port, out)),
            _ => {}
        }
    }

    /// Takes a promise.
    pub fn on_promise(&mut self, from: SiteId, promise: Promise, port: &mut dyn AccountPort, out: &mut Out) {
        match (self, promise) {
            (Protocol::Majority(part), Promise::Majority(promise)) => out.of_majority(|out| part.on_promise(from, promise, port, out)),
            (Protocol::Any(part), Promise::Any(promise)) => out.of_any(|out| part.on_promise(from, promise, port, out)),
            _ => {}
        }
    }

    /// More sites were declared lost: those of `cluster`.
    pub fn lose(&mut self, cluster: &Cluster, port: &mut dyn AccountPort, out: &mut Out) {
        match self {
            Protocol::Majority(part) => out.of_majority(|out| part.lose(cluster, port, out)),
            Protocol::Any(part) => out.of_any(|out| part.lose(cluster, port, out)),
        }
    }

    /// Time passes.
    pub fn tick(&mut self, patience: &Patience, port: &mut dyn AccountPort, out: &mut Out) {
        match self {
            Protocol::Majority(part) => out.of_majority(|out| part.tick(patience, port, out)),
            Protocol::Any(part) => out.of_any(|out| part.tick(patience, port, out)),
        }
    }

    /// The same part by other rules.
    pub fn with_rules(mut self, rules: Rules<Planted>) -> Protocol {
        match &mut self {
            Protocol::Majority(part) => part.rules = rules,
            Protocol::Any(part) => part.rules = rules,
        }
        self
    }
}

impl Out {
    fn of_majority(&mut self, run: impl FnOnce(&mut Outbox<majority::Note, majority::Promise>)) {
        let mut out = Outbox::default();
        run(&mut out);
        self.take_over(out, Note::Majority, Promise::Majority);
    }

    fn of_any(&mut self, run: impl FnOnce(&mut Outbox<any::Note, any::Promise>)) {
        let mut out = Outbox::default();
        run(&mut out);
        self.take_over(out, Note::Any, Promise::Any);
    }

    fn take_over<N, P>(&mut self, out: Outbox<N, P>, note: fn(N) -> Note, promise: fn(P) -> Promise) {
        self.notes.extend(out.notes.into_iter().map(|(to, message)| (to, note(message))));
        self.promises.extend(out.promises.into_iter().map(|(to, message)| (to, promise(message))));
        self.changed |= out.changed;
        self.called |= out.called;
        self.remembered |= out.remembered;
        self.endings.extend(out.endings);
    }
}

impl Promise {
    /// True for an offer, in answer to a call.
    pub fn is_offer(&self) -> bool {
        matches!(self, Promise::Majority(majority::Promise::ElectionOk { .. }) | Promise::Any(any::Promise::ElectionOk { .. }))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Majority(note) => note.fmt(f),
            Note::Any(note) => note.fmt(f),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Majority(promise) => promise.fmt(f),
            Promise::Any(promise) => promise.fmt(f),
        }
    }
}
