//! The clock of a site: microseconds since the Unix epoch, monotone within a life of the process.
//!
//! Read from the system once; from then on the monotonic clock is added. So it never runs backwards and never stands
//! still when somebody sets the system's clock, and a timer's span is the same on both. The protocols bear any skew.

use rhumb_core::Time;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The clock of a site.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Time,
    began: Instant,
}

impl Clock {
    /// A clock that begins at the system's time.
    pub fn start() -> Clock {
        // A system clock before 1970 is a skew like any other.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { origin: Time::from_micros(since_epoch.as_micros() as u64), began: Instant::now() }
    }

    /// What it shows now.
    pub fn now(&self) -> Time {
        Time::from_micros(self.origin.as_micros() + self.began.elapsed().as_micros() as u64)
    }
}
