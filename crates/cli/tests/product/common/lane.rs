//! Lanes: two demos at a time, each with ports of its own. A demo waits more than it works, and one that chose its ports beside another
//! would take those of a site that is dead for a while.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many demos run at a time.
const LANES: usize = 2;
/// More ports than the largest demo of a test has.
const PORTS: u32 = 60;
/// The ports of lanes lie below those that demos look for by themselves, and those of two test programs apart, as a rule.
const PORT_FIRST: u32 = 9_000;
const PROGRAMS: u32 = 100;

/// Of each lane: whether it is taken, and how many wait for that very one.
static LANES_NOW: Mutex<Lanes> = Mutex::new(Lanes { taken: [false; LANES], awaited: [0; LANES] });
static LEFT: Condvar = Condvar::new();

struct Lanes {
    taken: [bool; LANES],
    awaited: [usize; LANES],
}

/// One or all of the lanes, free again when this goes.
pub struct Lane {
    first: usize,
    count: usize,
}

impl Lane {
    /// One of them, once it is free and nobody waits for that very one.
    pub fn any() -> Lane {
        Lane::take(|lanes| (0..LANES).find(|&lane| !lanes.taken[lane] && lanes.awaited[lane] == 0).map(|lane| lane..lane + 1))
    }

    /// The first, for a demo under load: there is one of these at a time.
    pub fn of_load() -> Lane {
        Lane::take_first(1)
    }

    /// All, for a demo under load that is held to what it does in time.
    pub fn all() -> Lane {
        Lane::take_first(LANES)
    }

    fn take_first(count: usize) -> Lane {
        lanes().awaited[..count].iter_mut().for_each(|waiting| *waiting += 1);
        let lane = Lane::take(|lanes| lanes.taken[..count].iter().all(|taken| !taken).then_some(0..count));
        lanes().awaited[..count].iter_mut().for_each(|waiting| *waiting -= 1);
        lane
    }

    fn take(free: impl Fn(&Lanes) -> Option<Range<usize>>) -> Lane {
        let mut lanes = lanes();
        loop {
            if let Some(found) = free(&lanes) {
                lanes.taken[found.clone()].fill(true);
                return Lane { first: found.start, count: found.len() };
            }
            lanes = LEFT.wait(lanes).unwrap_or_else(PoisonError::into_inner);
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
        lanes().taken[self.first..self.first + self.count].fill(false);
        LEFT.notify_all();
    }
}

fn lanes() -> MutexGuard<'static, Lanes> {
    LANES_NOW.lock().unwrap_or_else(PoisonError::into_inner)
}
