//! The clock of a site: microseconds since the Unix epoch, monotone once the site's incarnation has begun.
//!
//! Set by its source, the system's clock, again and again until the incarnation begins: so it is right by then if somebody has put the system's
//! right meanwhile. From then on the monotonic clock alone is added. So it never runs backwards and never stands still when somebody sets the
//! system's clock, and a timer's span is the same on both. How far it may be from the clocks of others: [`rhumb_core::clock_offset`].

use rhumb_core::{Span, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source that has moved by less was not set anew.
const SET_ANEW: Span = Span::from_millis(100);

/// The clock of a site. Clones share it.
#[derive(Clone)]
pub struct Clock {
    inner: Arc<Inner>,
}

struct Inner {
    source: Box<dyn Fn() -> Time + Send + Sync>,
    began: Instant,
    /// What it showed then, in microseconds.
    origin: AtomicU64,
}

impl Clock {
    /// A clock set by the system's.
    pub fn start() -> Clock {
        // A system clock before 1970 is as wrong as any other.
        Clock::set_by(|| Time::from_micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64))
    }

    /// A clock set by `source`.
    pub fn set_by(source: impl Fn() -> Time + Send + Sync + 'static) -> Clock {
        let origin = AtomicU64::new(source().as_micros());
        Clock { inner: Arc::new(Inner { source: Box::new(source), began: Instant::now(), origin }) }
    }

    /// What it shows now.
    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// What it shows at `instant`.
    pub fn at(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.inner.began).as_micros() as u64;
        Time::from_micros(self.inner.origin.load(Ordering::Relaxed) + since)
    }

    /// Sets it again, if its source was set anew; true if so. Only before the incarnation of the site begins.
    pub(crate) fn set_again(&self) -> bool {
        let (shown, right) = (self.now(), (self.inner.source)());
        if shown.since(right) < SET_ANEW && right.since(shown) < SET_ANEW {
            return false;
        }
        let since = self.inner.began.elapsed().as_micros() as u64;
        self.inner.origin.store(right.as_micros().saturating_sub(since), Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_follows_its_source_only_when_it_is_set_again() {
        let source = Arc::new(AtomicU64::new(5_000_000_000));
        let read = Arc::clone(&source);
        let clock = Clock::set_by(move || Time::from_micros(read.load(Ordering::Relaxed)));
        let first = clock.now();
        assert!(first >= Time::from_micros(5_000_000_000));
        assert!(!clock.set_again(), "it is what it was");
        source.store(9_000_000_000, Ordering::Relaxed);
        assert!(clock.now().since(first) < Span::from_secs(1_000));
        assert!(clock.set_again());
        assert!(clock.now() >= Time::from_micros(9_000_000_000));
        source.store(1_000_000_000, Ordering::Relaxed);
        assert!(clock.set_again());
        assert!(clock.now() < first);
    }
}
