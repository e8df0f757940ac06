//! Lanes: two demos at a time, each with ports of its own. A demo waits more than it works, and one that chose its ports beside another
//! would take those of a site that is dead for a while.

use std::sync::{Condvar, Mutex, PoisonError};

/// How many demos run at a time.
const LANES: usize = 2;
/// More ports than the largest demo of a test has.
const PORTS: u32 = 60;
/// The ports of lanes lie below those that demos look for by themselves, and those of two test programs apart, as a rule.
const PORT_FIRST: u32 = 9_000;
const PROGRAMS: u32 = 100;

/// Which lanes are taken.
static TAKEN: Mutex<[bool; LANES]> = Mutex::new([false; LANES]);
static LEFT: Condvar = Condvar::new();

/// One or all of the lanes, free again when this goes.
pub struct Lane {
    first: usize,
    count: usize,
}

impl Lane {
    /// One of them, once it is free.
    pub fn any() -> Lane {
        Lane::take(1, LANES)
    }

    /// The first, for a demo under load: there is one of these at a time.
    pub fn of_load() -> Lane {
        Lane::take(1, 1)
    }

    /// All, for a demo under load that is held to what it does in time.
    pub fn all() -> Lane {
        Lane::take(LANES, LANES)
    }

    /// So many of the first `among`.
    fn take(count: usize, among: usize) -> Lane {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let free = taken[..among].windows(count).position(|lanes| lanes.iter().all(|lane| !lane));
            if let Some(first) = free {
                taken[first..first + count].fill(true);
                return Lane { first, count };
            }
            taken = LEFT.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The first of its ports.
    pub fn port(&self) -> String {
        let program = std::process::id() % PROGRAMS;
        (PORT_FIRST + (program * LANES as u32 + self.first as u32) * PORTS).to_string()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner)[self.first..self.first + self.count].fill(false);
        LEFT.notify_all();
    }
}
