//! An acceptor: what a voter has promised and accepted, on disk before it says so.
//!
//! Records, in the order of their keys: the promise, the last snapshot of the state, then one per slot accepted after
//! that snapshot.

use super::Effects;
use super::command::Entry;
use super::message::{Note, Promise};
use super::state::State;
use rhumb_core::actor::{Batch, Load, Loaded, Space};
use rhumb_core::record::{decode, encode};
use rhumb_core::{Ballot, SiteId};
use std::collections::BTreeMap;

const SPACE: Space = Space(201);
const PROMISED: [u8; 1] = [0];
const SNAPSHOT: [u8; 1] = [1];
const SLOT: u8 = 2;
/// A snapshot is written after so many slots, and the slots before it are removed.
const SNAPSHOT_EVERY: u64 = 256;
/// More slots than this are never found on disk: those since the last snapshot and those in flight.
const RECORDS_MAX: usize = 1 << 20;
/// Why a record decodes.
const WRITTEN: &str = "the store holds what was written to it";

/// A voter's durable part.
#[derive(Default)]
pub(super) struct Acceptor {
    promised: Option<Ballot>,
    /// Entries accepted in slots that are not applied here.
    accepted: BTreeMap<u64, (Ballot, Entry)>,
    /// The snapshot on disk covers the log up to here.
    snapshot: u64,
}

impl Acceptor {
    pub(super) fn load(token: u64, fx: &mut Effects) {
        fx.load(token, Load::Records { space: SPACE, from: PROMISED.to_vec().into(), limit: RECORDS_MAX, bytes: usize::MAX });
    }

    /// What was on disk, and the state of the last snapshot.
    pub(super) fn recover(loaded: Loaded) -> (Acceptor, State) {
        let (mut acceptor, mut state) = (Acceptor::default(), State::default());
        let Loaded::Records { records, .. } = loaded else { return (acceptor, state) };
        for (key, bytes) in records {
            match key.split_first() {
                Some((0, _)) => acceptor.promised = Some(decode(&bytes).expect(WRITTEN)),
                Some((1, _)) => state = decode(&bytes).expect(WRITTEN),
                Some((_, slot)) => {
                    let slot = u64::from_be_bytes(slot.try_into().expect("the key of a slot has eight bytes"));
                    acceptor.accepted.insert(slot, decode(&bytes).expect(WRITTEN));
                }
                None => unreachable!("no record has an empty key"),
            }
        }
        acceptor.snapshot = state.applied();
        acceptor.forget(&state);
        (acceptor, state)
    }

    pub(super) fn promised(&self) -> Option<Ballot> {
        self.promised
    }

    /// The entry accepted for `slot` of the leader of `ballot`.
    pub(super) fn entry(&self, slot: u64, ballot: Ballot) -> Option<&Entry> {
        self.accepted.get(&slot).filter(|(of, _)| *of == ballot).map(|(_, entry)| entry)
    }

    /// Answers a candidate.
    pub(super) fn prepare(&mut self, from: SiteId, ballot: Ballot, applied: u64, state: &State, fx: &mut Effects) {
        if let Some(promised) = self.promised.filter(|promised| *promised > ballot) {
            return fx.send(from, Note::Outdone { promised });
        }
        self.promised = Some(ballot);
        let mut batch = Batch::new();
        batch.put_record(SPACE, PROMISED.to_vec(), encode(&ballot));
        let accepted = self.accepted.range(applied + 1..).map(|(slot, (of, entry))| (*slot, *of, entry.clone())).collect();
        let state = (state.applied() > applied).then(|| state.clone());
        fx.persist(batch).send(from, Promise::Promised { ballot, accepted, state });
    }

    /// Stores an entry of a leader. One that is applied here is stored by a majority already: it is only said again.
    pub(super) fn accept(&mut self, from: SiteId, (ballot, slot, entry): (Ballot, u64, Entry), applied: u64, fx: &mut Effects) {
        if let Some(promised) = self.promised.filter(|promised| *promised > ballot) {
            return fx.send(from, Note::Outdone { promised });
        }
        let mut batch = Batch::new();
        if self.promised != Some(ballot) {
            self.promised = Some(ballot);
            batch.put_record(SPACE, PROMISED.to_vec(), encode(&ballot));
        }
        if slot > applied {
            let stored = (ballot, entry);
            batch.put_record(SPACE, key_of(slot), encode(&stored));
            self.accepted.insert(slot, stored);
        }
        fx.persist(batch).send(from, Promise::Accepted { ballot, slot });
    }

    /// The state has grown: what it covers need not be kept, and from time to time it is written itself.
    pub(super) fn applied(&mut self, state: &State, fx: &mut Effects) {
        if state.applied() >= self.snapshot + SNAPSHOT_EVERY {
            self.write_snapshot(state, fx);
        }
        self.forget(state);
    }

    /// Writes the state as it is and removes the slots that it covers.
    pub(super) fn write_snapshot(&mut self, state: &State, fx: &mut Effects) {
        let mut batch = Batch::new();
        batch.put_record(SPACE, SNAPSHOT.to_vec(), encode(state));
        for slot in self.snapshot + 1..=state.applied() {
            batch.delete_record(SPACE, key_of(slot));
        }
        self.snapshot = state.applied();
        fx.persist(batch);
        self.forget(state);
    }

    fn forget(&mut self, state: &State) {
        while self.accepted.first_key_value().is_some_and(|(slot, _)| *slot <= state.applied()) {
            self.accepted.pop_first();
        }
    }
}

fn key_of(slot: u64) -> Vec<u8> {
    [&[SLOT][..], &slot.to_be_bytes()].concat()
}
