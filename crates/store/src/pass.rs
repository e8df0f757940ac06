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

/// How far a pass has come.
#[derive(Debug)]
pub struct Pass {
    next: Vec<u8>,
    sieve: Sieve,
    highest: Timestamp,
}

impl Pass {
    /// A pass that removes of each key's versions at or below `horizon` all but the newest.
    pub fn new(horizon: Timestamp) -> Pass {
        Pass { next: layout::all_versions().0.to_vec(), sieve: Sieve::new(horizon), highest: Timestamp::ZERO }
    }

    /// The highest version that it has passed: above its horizon, some of what it left may be garbage one day.
    pub fn highest(&self) -> Timestamp {
        self.highest
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
    /// Goes on with `pass` over at most `limit` (at least 1) versions. What it removes nobody reads, whoever puts it again meanwhile.
    pub fn pass(&self, pass: &mut Pass, limit: usize) -> Result<Passed, StoreError> {
        let mut writes = Vec::new();
        let mut left = limit.max(1);
        let mut more = false;
        for entry in self.engine().view().range(&pass.next, layout::all_versions().1, false) {
            let (stored, _) = entry?;
            if left == 0 {
                (pass.next, more) = (stored.to_vec(), true);
                break;
            }
            left -= 1;
            let (_, at) = layout::split_version(&stored)?;
            pass.highest = pass.highest.max(at);
            if pass.sieve.is_garbage(&stored) {
                writes.push(Write::Remove { key: stored });
            }
        }
        let versions = writes.len();
        self.engine().write(writes)?;
        Ok(Passed { versions, more })
    }

    /// The highest version put since the store was opened.
    pub fn highest_put(&self) -> Timestamp {
        self.lock().highest()
    }
}
