//! A pass over all versions, in small steps: removes the garbage that the engine has not dropped by itself.
//!
//! An engine drops garbage when it rewrites what it holds ([`Engine::collect`]). What became garbage after it was rewritten for the last time would
//! stay for ever, so somebody passes over all versions now and then. Nothing depends on how fast.

use crate::engine::{Engine, Write};
use crate::error::StoreError;
use crate::layout;
use crate::sieve::Sieve;
use crate::store::Store;
use rhumb_core::Timestamp;

/// A step ends once it has passed so many bytes.
const STEP_BYTES: usize = 1 << 20;

/// How far a pass has come.
#[derive(Debug)]
pub struct Pass {
    next: Vec<u8>,
    sieve: Sieve,
}

impl Pass {
    /// A pass that removes of each key's versions at or below `horizon` all but the newest.
    pub fn new(horizon: Timestamp) -> Pass {
        Pass { next: layout::all_versions().0.to_vec(), sieve: Sieve::new(horizon) }
    }

    /// From this horizon on, some of what it has left is garbage.
    pub fn ripens(&self) -> Timestamp {
        self.sieve.ripens()
    }
}

/// What one call of [`Store::pass`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Versions removed.
    pub versions: usize,
    /// True if there are more to pass: call again.
    pub more: bool,
}

impl<E: Engine> Store<E> {
    /// Goes on with `pass` over at most `limit` (at least 1) versions, and about a mebibyte of them. What it removes nobody reads, whoever puts it
    /// again meanwhile.
    pub fn pass(&self, pass: &mut Pass, limit: usize) -> Result<Passed, StoreError> {
        let mut writes = Vec::new();
        let (mut left, mut bytes) = (limit.max(1), 0);
        let mut more = false;
        for entry in self.engine().view().range(&pass.next, layout::all_versions().1, false) {
            let (stored, value) = entry?;
            if left == 0 || bytes >= STEP_BYTES {
                (pass.next, more) = (stored.to_vec(), true);
                break;
            }
            left -= 1;
            bytes += stored.len() + value.len();
            if pass.sieve.is_garbage(&stored) {
                writes.push(Write::Remove { key: stored });
            }
        }
        let versions = writes.len();
        self.engine().write(writes)?;
        Ok(Passed { versions, more })
    }

    /// So many versions were put since the store was opened.
    pub fn puts(&self) -> u64 {
        self.lock().puts()
    }
}
