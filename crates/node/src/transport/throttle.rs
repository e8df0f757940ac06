//! Bounds how many lines a site writes to its log about unproven connections and wrong clocks.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lets one line pass in a while, and counts those that it does not.
pub struct Throttle {
    every: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: Option<Instant>,
    left_out: u64,
}

impl Throttle {
    /// One line `every` so long.
    pub fn new(every: Duration) -> Throttle {
        Throttle { every, state: Mutex::default() }
    }

    /// If a line may be written now: what to add to it about those left out since the last one.
    pub fn pass(&self, now: Instant) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last.is_some_and(|last| now.saturating_duration_since(last) < self.every) {
            state.left_out += 1;
            return None;
        }
        state.last = Some(now);
        match std::mem::take(&mut state.left_out) {
            0 => Some(String::new()),
            count => Some(format!(" ({count} more of the kind were not logged)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_passes_in_a_while_and_says_how_many_did_not() {
        let (throttle, start) = (Throttle::new(Duration::from_secs(1)), Instant::now());
        let after = |millis| throttle.pass(start + Duration::from_millis(millis));
        assert_eq!(after(0), Some(String::new()));
        assert_eq!([after(1), after(999)], [None, None]);
        assert_eq!(after(1_000).as_deref(), Some(" (2 more of the kind were not logged)"));
        assert_eq!(after(2_000), Some(String::new()));
    }
}
