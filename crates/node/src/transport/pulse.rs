//! What is known of a peer's being alive: when it was last heard, and the round trip that pings measure.

use rhumb_core::Span;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So many pings may be unanswered; older ones are forgotten. At a ping a second, round trips up to 16 s are measured.
const PINGS_OUT_MAX: usize = 16;

/// A peer's signs of life.
pub struct Pulse {
    heard: Option<Instant>,
    rtt: Option<Span>,
    /// Pings without a pong, oldest first.
    out: VecDeque<(u64, Instant)>,
    next: u64,
}

impl Pulse {
    /// Not heard from yet. Pings are numbered from `first`, a number that no incarnation before used, so that a late pong to one of
    /// those measures nothing.
    pub fn new(first: u64) -> Pulse {
        Pulse { heard: None, rtt: None, out: VecDeque::new(), next: first }
    }

    /// Notes that a ping leaves, and names it.
    pub fn ping(&mut self, now: Instant) -> u64 {
        if self.out.len() == PINGS_OUT_MAX {
            self.out.pop_front();
        }
        self.next += 1;
        self.out.push_back((self.next, now));
        self.next
    }

    /// Notes that something was heard.
    pub fn heard(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// Notes the answer to a ping. Returns when that left, and the round trip, smoothed over some four pings.
    pub fn pong(&mut self, ping: u64, now: Instant) -> Option<(Instant, Span)> {
        let place = self.out.iter().position(|&(out, _)| out == ping)?;
        let sent = self.out[place].1;
        let sample = Span::from_micros((now - sent).as_micros() as u64);
        self.out.drain(..=place);
        let smoothed = match self.rtt {
            None => sample,
            Some(rtt) => Span::from_micros((rtt.as_micros() * 3 + sample.as_micros()) / 4),
        };
        self.rtt = Some(smoothed);
        Some((sent, smoothed))
    }

    /// The round trip, smoothed.
    pub fn rtt(&self) -> Option<Span> {
        self.rtt
    }

    /// How long ago something was heard.
    pub fn silence(&self, now: Instant) -> Option<Duration> {
        self.heard.map(|heard| now.saturating_duration_since(heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pong_to_a_ping_of_this_incarnation_measures_anything() {
        let start = Instant::now();
        let mut pulse = Pulse::new(1_000);
        let ping = pulse.ping(start);
        let later = start + Duration::from_millis(40);
        assert_eq!(pulse.pong(ping - 1, later), None);
        assert_eq!(pulse.pong(ping, later), Some((start, Span::from_millis(40))));
        assert_eq!(pulse.pong(ping, later), None, "answered already");
        let ping = pulse.ping(later);
        assert_eq!(pulse.pong(ping, later + Duration::from_millis(80)), Some((later, Span::from_millis(50))));
    }

    #[test]
    fn unanswered_pings_are_bounded() {
        let mut pulse = Pulse::new(0);
        let now = Instant::now();
        let first = pulse.ping(now);
        for _ in 0..PINGS_OUT_MAX {
            pulse.ping(now);
        }
        assert_eq!(pulse.out.len(), PINGS_OUT_MAX);
        assert_eq!(pulse.pong(first, now), None);
    }
}
