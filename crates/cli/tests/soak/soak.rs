//! What all parts of the soak share: when it is over, what has gone wrong, and which regions are being harmed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// More findings than these say nothing new.
const FOUND_MAX: usize = 50;

/// See the file's first lines.
#[derive(Debug, Default)]
pub struct Soak {
    over: AtomicBool,
    found: Mutex<Vec<String>>,
    harmed: Mutex<BTreeSet<usize>>,
}

impl Soak {
    /// True once clients are to stop.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Has the clients stop.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Something is not as it must be.
    pub fn found(&self, what: String) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() < FOUND_MAX {
            println!("FOUND: {what}");
            found.push(what);
        }
    }

    /// All that is not as it must be.
    pub fn all_found(&self) -> Vec<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This region's site is being harmed so that nothing is to be expected of it.
    pub fn harm(&self, region: usize) {
        self.harmed.lock().unwrap_or_else(PoisonError::into_inner).insert(region);
    }

    /// No region is any more.
    pub fn heal(&self) {
        self.harmed.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The regions of which nothing is to be expected.
    pub fn harmed(&self) -> BTreeSet<usize> {
        self.harmed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
