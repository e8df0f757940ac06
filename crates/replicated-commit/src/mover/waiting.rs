//! Messages that wait until this site is settled. Who said them says them again each second: what was said last is kept.

use crate::message::{Attempt, Note, ReadId};
use rhumb_core::{SiteId, Table, Time, record};
use std::collections::BTreeMap;

/// How many wait at the most.
const WAITING_MAX: usize = 8_192;
/// How many bytes, as encoded.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// What a message is about: another one of the same sender about the same takes its place, for it may be of a later epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Vote(Attempt),
    High(Attempt),
    Read(ReadId),
}

#[derive(Clone, Debug)]
struct Held {
    since: Time,
    note: Note,
    bytes: usize,
}

/// The messages that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    notes: BTreeMap<(SiteId, Topic), Held>,
    bytes: usize,
}

impl Waiting {
    /// Keeps `note`, which came at `now`, unless there are too many. Its sender says it again.
    pub(super) fn keep(&mut self, from: SiteId, now: Time, note: Note) {
        let topic = match &note {
            Note::Accept { meta, .. } => Topic::Vote(meta.attempt),
            Note::AskHigh { attempt, .. } => Topic::High(*attempt),
            Note::Read(asked) => Topic::Read(asked.read),
            other => unreachable!("{other} waits for nothing"),
        };
        if let Some(earlier) = self.notes.remove(&(from, topic)) {
            self.bytes -= earlier.bytes;
        }
        let bytes = record::encoded_bytes(&note);
        if self.notes.len() < WAITING_MAX && self.bytes + bytes <= WAITING_BYTES_MAX {
            self.bytes += bytes;
            self.notes.insert((from, topic), Held { since: now, note, bytes });
        }
    }

    /// All of them: none waits any more.
    pub(super) fn take(&mut self) -> Vec<(SiteId, Note)> {
        let mut held: Vec<(Time, SiteId, Note)> =
            std::mem::take(self).notes.into_iter().map(|((from, _), held)| (held.since, from, held.note)).collect();
        held.sort_by_key(|(since, ..)| *since);
        held.into_iter().map(|(_, from, note)| (from, note)).collect()
    }

    /// Drops those that have not been said since `limit`.
    pub(super) fn drop_older(&mut self, limit: Time) {
        self.notes.retain(|_, held| held.since >= limit);
        self.bytes = self.notes.values().map(|held| held.bytes).sum();
    }

    /// Lists its tables.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("moving.waiting", self.notes.len(), WAITING_MAX));
        visit(Table::new("moving.waiting_bytes", self.bytes, WAITING_BYTES_MAX));
    }
}
