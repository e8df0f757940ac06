//! The work meter: how much the loops of a protocol have handled, so that a driver can charge processor time for it.
//!
//! One *unit* is one thing that a loop visits: a lock or a range compared, a pending transaction looked at, a key, row, record or log entry
//! handled. Whatever a step does once per message is not counted; whatever grows with tables or with the size of a transaction is.
//! Rows and records that the store loads or writes are known to the driver, which charges them itself.
//!
//! The meter belongs to the thread. Protocol code only adds to it and never reads it, so no decision depends on it; a driver that wants to
//! know what a step costs runs it within [`measure`]. The simulator lets the site be busy for that long and fails a run in which one step
//! takes too long; the node does not read it.

use std::cell::Cell;

thread_local!(static UNITS: Cell<u64> = const { Cell::new(0) });

/// Adds `units` of work done.
pub fn add(units: usize) {
    UNITS.set(UNITS.get().wrapping_add(units as u64));
}

/// Runs `step`; returns what it returns and the units of work that it has added in this thread.
pub fn measure<T>(step: impl FnOnce() -> T) -> (T, u64) {
    let before = UNITS.get();
    let result = step();
    (result, UNITS.get().wrapping_sub(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_done_within_is_measured() {
        add(5);
        let ((), outer) = measure(|| {
            add(2);
            assert_eq!(measure(|| add(3)), ((), 3));
        });
        assert_eq!(outer, 5);
    }
}
