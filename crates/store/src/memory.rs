//! The engine of the simulator: ordered maps in memory, and a write-ahead log that a crash tears like a real one.
//!
//! ```text
//!   current = what views see = base + every record of the log
//!   base    = synced records folded in · log = the records since, the first `synced` bytes of which are durable
//! ```
//!
//! Garbage is dropped as soon as it may be: once all is durable that was written before the horizon was given. An engine on disk takes its time, so what
//! a reader must not miss is gone here earlier than anywhere.
//!
//! A crash keeps the base, the synced log and as many bytes of the unsynced log as the caller says, and recovers from
//! those bytes alone. Invariant: the log up to `synced` ends at the end of a record.

use crate::engine::{Engine, Entries, View, Write};
use crate::error::StoreError;
use crate::log;
use crate::sieve::Sieve;
use bytes::Bytes;
use rhumb_core::Timestamp;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A synced log longer than this is folded into the base, so that memory stays in proportion to the data.
const LOG_BYTES_MAX: usize = 1 << 20;

type Map = BTreeMap<Bytes, Bytes>;

/// An engine in memory.
#[derive(Default)]
pub struct MemoryEngine {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    current: Map,
    base: Map,
    log: Vec<u8>,
    synced: usize,
    /// The highest that was given, and whether garbage up to there is still to be dropped.
    horizon: Timestamp,
    collects: bool,
}

impl State {
    /// Folds a log that is all durable into the base, if it is long or garbage is to be dropped.
    fn fold(&mut self) {
        if self.synced < self.log.len() || !self.collects && self.log.len() <= LOG_BYTES_MAX {
            return;
        }
        let folded = replay(&self.log, &mut self.base);
        assert_eq!(folded, self.log.len(), "every record in the log is whole");
        self.log = Vec::new();
        self.synced = 0;
        if std::mem::take(&mut self.collects) {
            for map in [&mut self.base, &mut self.current] {
                let mut sieve = Sieve::new(self.horizon);
                map.retain(|key, _| !sieve.is_garbage(key));
            }
        }
    }
}

impl MemoryEngine {
    /// An empty engine.
    pub fn new() -> MemoryEngine {
        MemoryEngine::default()
    }

    /// The bytes written since the last sync: the most that a crash can tear.
    pub fn unsynced_bytes(&self) -> usize {
        let state = self.read();
        state.log.len() - state.synced
    }

    /// What a snapshot of the disk holds: all that is durable, and nothing else.
    pub fn durable(&self) -> MemoryEngine {
        let state = self.read();
        let (base, log) = (state.base.clone(), state.log[..state.synced].to_vec());
        let mut current = base.clone();
        replay(&log, &mut current);
        MemoryEngine { state: RwLock::new(State { current, base, synced: log.len(), log, ..State::default() }) }
    }

    /// Crashes and recovers. What was not synced is gone, except its first `torn` bytes, which reached the disk: whole
    /// batches among them survive, and a batch cut in the middle is discarded by its checksum.
    pub fn crash(&mut self, torn: usize) {
        let state = self.state.get_mut().expect("no thread panics while it holds the lock");
        let kept = state.log.len().min(state.synced.saturating_add(torn));
        state.log.truncate(kept);
        state.current = state.base.clone();
        let recovered = replay(&state.log, &mut state.current);
        assert!(recovered >= state.synced, "what was synced is whole");
        state.log.truncate(recovered);
        state.synced = recovered;
        (state.horizon, state.collects) = (Timestamp::ZERO, false);
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("no thread panics while it holds the lock")
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect("no thread panics while it holds the lock")
    }
}

/// Carries out the whole records of `log` on `map`; returns the length of those.
fn replay(log: &[u8], map: &mut Map) -> usize {
    let mut rest = log;
    while let Some((writes, behind)) = log::next(rest) {
        carry_out(writes, map);
        rest = behind;
    }
    log.len() - rest.len()
}

fn carry_out(writes: Vec<Write>, map: &mut Map) {
    for write in writes {
        match write {
            Write::Put { key, value } => map.insert(key, value),
            Write::Remove { key } => map.remove(&key),
        };
    }
}

impl Engine for MemoryEngine {
    fn view(&self) -> Box<dyn View + '_> {
        Box::new(MemoryView(self.read()))
    }

    fn write(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        if !writes.is_empty() {
            let mut state = self.write_state();
            log::append(&mut state.log, &writes);
            carry_out(writes, &mut state.current);
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let mut guard = self.write_state();
        let state = &mut *guard;
        state.synced = state.log.len();
        state.fold();
        Ok(())
    }

    fn collect(&self, horizon: Timestamp) {
        let mut state = self.write_state();
        if horizon > state.horizon {
            (state.horizon, state.collects) = (horizon, true);
            state.fold();
        }
    }
}

/// Keeps writers out while it lives.
struct MemoryView<'a>(RwLockReadGuard<'a, State>);

impl View for MemoryView<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.0.current.get(key).cloned())
    }

    fn range(&self, start: &[u8], end: &[u8], reverse: bool) -> Entries<'_> {
        let range = self.0.current.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)));
        let entries = range.map(|(key, value)| Ok((key.clone(), value.clone())));
        if reverse { Box::new(entries.rev()) } else { Box::new(entries) }
    }
}
