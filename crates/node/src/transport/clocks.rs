//! This site's clock beside those of its peers: the rules of [`rhumb_core::clock_offset`], kept.
//!
//! ```text
//!   waiting ── a majority is near, or nobody is in reach for long ──▶ begun ── a majority is apart ──▶ the site ends
//!      │ a majority is apart: says so, and waits
//!      │ the system's clock was set: measures anew
//! ```
//!
//! Offsets come of pings, which are answered before an incarnation has begun and whatever the clocks show; messages of services are refused then.
//!
//! Invariants: no service takes a step, and none is given a message, before the incarnation has begun; from then on the clock is not set any more.

use super::throttle::Throttle;
use crate::clock::Clock;
use crate::failure::Failure;
use rhumb_core::clock_offset::{ClockOffsets, Offset, Verdict};
use rhumb_core::{SiteId, Span, Time};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often a site compares its clock, besides whenever a ping is answered.
pub const COMPARE_EVERY: Duration = Duration::from_millis(500);
/// A site that nobody confirms and nobody refutes for so long begins all the same.
const ALONE_MAX: Duration = Duration::from_secs(10);
/// A site that waits for its clock says so after a while, in which most begin,
const SAID_AFTER: Duration = Duration::from_secs(2);
/// and then so often.
const SAID_EVERY: Duration = Duration::from_secs(30);

/// The clocks of a cluster, as one site knows them.
pub struct Clocks {
    clock: Clock,
    sites: usize,
    state: Mutex<State>,
    begun: watch::Sender<bool>,
    failure: Failure,
    said: Throttle,
}

struct State {
    offsets: ClockOffsets,
    /// Since when the clock has been what it is, and waited for others to confirm it.
    waits_since: Instant,
}

impl Clocks {
    /// Those of a cluster of `sites` sites, of which nothing is known yet. The site ends with `failure` if its clock is odd.
    pub fn new(clock: Clock, sites: usize, max_offset: Span, failure: Failure) -> Clocks {
        let state = State { offsets: ClockOffsets::new(sites, max_offset), waits_since: Instant::now() };
        let clocks =
            Clocks { clock, sites, state: Mutex::new(state), begun: watch::Sender::new(false), failure, said: Throttle::new(SAID_EVERY) };
        // A site without peers confirms itself.
        clocks.compare();
        clocks
    }

    /// What this site's clock shows.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Tells when the site's incarnation begins.
    pub fn begun(&self) -> watch::Receiver<bool> {
        self.begun.subscribe()
    }

    /// True once it has.
    pub fn has_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// True if a message may be taken that left when its sender's clock showed `sent`.
    pub fn admits(&self, sent: Time) -> bool {
        self.has_begun() && self.lock().offsets.admits(sent, self.now())
    }

    /// Notes that a ping of `sent` was answered by `peer` when its clock showed `theirs`. Returns how far that is ahead.
    pub fn measured(&self, peer: SiteId, sent: Instant, theirs: Time) -> Offset {
        let mut state = self.lock();
        let offset = Offset::of_round_trip(self.clock.at(sent), theirs, self.now());
        state.offsets.measured(peer, offset);
        drop(state);
        self.compare();
        offset
    }

    /// Forgets the clock of `peer`, which is out of reach or has another process by now.
    pub fn forget(&self, peer: SiteId) {
        self.lock().offsets.forget(peer);
    }

    /// How far the clock of `peer` is ahead, and whether that is more than is allowed, either way.
    pub fn offset(&self, peer: SiteId) -> Option<(Offset, bool)> {
        self.lock().offsets.offset(peer)
    }

    /// The maximum offset.
    pub fn max_offset(&self) -> Span {
        self.lock().offsets.max_offset()
    }

    /// Why the incarnation of the site does not begin, if it has not.
    pub fn waits(&self) -> Option<String> {
        let waiting = || "the site waits for a majority of sites to confirm its clock".to_owned();
        (!self.has_begun()).then(|| self.contradicted().unwrap_or_else(waiting))
    }

    /// What a majority of sites has against the clock of this site, whose incarnation does not begin for that.
    pub fn contradicted(&self) -> Option<String> {
        match self.lock().offsets.verdict() {
            Verdict::Odd(disagreement) if !self.has_begun() => Some(format!(
                "{disagreement}: set the clock of this machine; the site begins by itself once a majority of sites confirms it"
            )),
            _ => None,
        }
    }

    /// Compares the clocks, and does what follows.
    pub fn compare(&self) {
        let mut state = self.lock();
        let begun = self.has_begun();
        if !begun && self.clock.set_again() {
            tracing::info!("the system's clock was set; the site compares it anew");
            *state = State { offsets: ClockOffsets::new(self.sites, state.offsets.max_offset()), waits_since: Instant::now() };
        }
        match state.offsets.verdict() {
            Verdict::Odd(disagreement) if begun => self.failure.report(format!(
                "{disagreement}, and {} is the most that is allowed (clock.max_offset_ms): set the clock of this machine, have it kept right by \
                 NTP, and start the site again",
                state.offsets.max_offset()
            )),
            Verdict::Confirmed if !begun => {
                self.begun.send_replace(true);
            }
            // No majority is in reach, and nobody who is would be misled.
            Verdict::Unconfirmed if !begun && state.waits_since.elapsed() >= ALONE_MAX && state.offsets.is_uncontradicted() => {
                tracing::warn!("no majority of sites is in reach to confirm this site's clock, and nobody contradicts it: it begins all the same");
                self.begun.send_replace(true);
            }
            _ => {}
        }
        let waits_long = state.waits_since.elapsed() >= SAID_AFTER;
        drop(state);
        if waits_long
            && let Some(why) = self.waits()
            && let Some(more) = self.said.pass(Instant::now())
        {
            tracing::warn!("{why}{more}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the clocks")
    }
}
