//! Broken invariants of a workload, as its clients find them.

use std::sync::Mutex;

use crate::lock::lock;

/// Broken invariants told in the report; more of them say nothing new.
const VIOLATIONS_MAX: usize = 16;

/// The first of them.
#[derive(Default)]
pub(super) struct Violations(Mutex<Vec<String>>);

impl Violations {
    /// Keeps `what`, unless there are enough.
    pub(super) fn add(&self, what: &str) {
        let mut known = lock(&self.0);
        if known.len() < VIOLATIONS_MAX {
            known.push(what.to_owned());
        }
    }

    /// Takes all that were kept.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.0))
    }
}
