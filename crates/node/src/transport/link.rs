//! The way to one peer: a bounded queue of frames, each with the instant it may leave at.
//!
//! Invariants: frames leave in the order they came; the instants never decrease, so that jitter does not reorder; a push
//! never blocks and never waits for the network.

use super::clocks::Clocks;
use super::faults::Faults;
use super::pulse::Pulse;
use super::throttle::Throttle;
use super::{Peer, PeerClock};
use crate::bounds::PEER_QUEUE_MESSAGES_MAX;
use crate::incarnation::Counts;
use crate::metrics::LinkMetrics;
use crate::transport::frame::{self, HEADER_BYTES, Kind, Ping};
use rhumb_config::Setup;
use rhumb_core::actor::MESSAGE_BYTES_MAX;
use rhumb_core::{Rng, SiteId, Span, Time};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// So many bytes of messages may wait to leave for one peer. Room for a few frames of the largest size.
pub const PEER_QUEUE_BYTES_MAX: usize = 64 << 20;
/// At most so many bytes are handed to the socket at once, unless a single frame is longer.
const WRITE_BYTES_MAX: usize = 256 << 10;
/// How often it is said that a peer's messages are refused for its clock.
const ALARM_EVERY: Duration = Duration::from_secs(60);

/// The way to one peer.
pub struct Link {
    /// Who is at its end.
    pub peer: SiteId,
    /// The peer's name as people know it.
    pub name: String,
    /// The peer's address.
    pub address: SocketAddr,
    /// Faults switched on at run time.
    pub faults: Faults,
    /// What is counted.
    pub metrics: LinkMetrics,
    one_way: Duration,
    jitter: Span,
    loss: f64,
    queue: Mutex<Queue>,
    pushed: Notify,
    pulse: Mutex<Pulse>,
    connected: AtomicBool,
    clocks: Arc<Clocks>,
    alarm: Throttle,
}

struct Queue {
    frames: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    /// When the newest frame may leave: none after it leaves earlier.
    last_release: Instant,
    rng: Rng,
}

impl Link {
    /// The link of the site of `setup` to `peer`; `rng` draws jitter and loss.
    pub fn new(setup: &Setup, peer: SiteId, mut rng: Rng, metrics: LinkMetrics, clocks: Arc<Clocks>) -> Link {
        let wan = setup.wan.as_ref().filter(|_| peer.region != setup.site.region);
        let one_way = wan.map_or(Span::ZERO, |wan| wan.matrix.one_way(setup.site.region, peer.region));
        Link {
            peer,
            name: setup.name(peer),
            address: setup.addresses[&peer],
            faults: Faults::default(),
            metrics,
            one_way: Duration::from_micros(one_way.as_micros()),
            jitter: wan.map_or(Span::ZERO, |wan| wan.jitter),
            loss: wan.map_or(0.0, |wan| wan.loss),
            pulse: Mutex::new(Pulse::new(rng.below(u64::MAX / 2))),
            queue: Mutex::new(Queue { frames: VecDeque::new(), bytes: 0, last_release: Instant::now(), rng }),
            pushed: Notify::new(),
            connected: AtomicBool::new(false),
            clocks,
            alarm: Throttle::new(ALARM_EVERY),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("nothing panics while it holds a queue")
    }

    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.pulse.lock().expect("nothing panics while it holds a pulse")
    }

    /// Queues an encoded frame, or drops and counts it.
    pub fn push(&self, frame: Vec<u8>) {
        if frame.len() > MESSAGE_BYTES_MAX + HEADER_BYTES {
            self.metrics.dropped_large.inc();
            tracing::error!("a message of {} bytes to {} was dropped: a frame holds {MESSAGE_BYTES_MAX}", frame.len(), self.name);
            return;
        }
        if self.faults.cuts_out() {
            self.metrics.dropped_fault.inc();
            return;
        }
        let mut queue = self.queue();
        if self.loss > 0.0 && queue.rng.chance(self.loss) {
            self.metrics.dropped_fault.inc();
            return;
        }
        if queue.frames.len() >= PEER_QUEUE_MESSAGES_MAX || queue.bytes + frame.len() > PEER_QUEUE_BYTES_MAX {
            self.metrics.dropped_full.inc();
            return;
        }
        let jitter = Duration::from_micros(queue.rng.below(self.jitter.as_micros() + 1));
        let release = (Instant::now() + self.one_way + jitter + self.faults.slow()).max(queue.last_release);
        queue.last_release = release;
        queue.bytes += frame.len();
        queue.frames.push_back((release, frame));
        self.metrics.queued.set(queue.frames.len() as i64);
        let first = queue.frames.len() == 1;
        drop(queue);
        // The task that writes looks at the queue again by itself as long as there is something in it.
        if first {
            self.pushed.notify_one();
        }
    }

    /// When the first frame may leave. Waits while there is none.
    pub async fn next_release(&self) -> Instant {
        loop {
            if let Some((release, _)) = self.queue().frames.front() {
                return *release;
            }
            self.pushed.notified().await;
        }
    }

    /// Moves frames that may leave by now to the end of `bytes`.
    pub fn take_due(&self, bytes: &mut Vec<u8>) {
        let now = Instant::now();
        let mut queue = self.queue();
        while let Some((release, frame)) = queue.frames.front() {
            if *release > now || (!bytes.is_empty() && bytes.len() + frame.len() > WRITE_BYTES_MAX) {
                break;
            }
            let length = frame.len();
            if self.faults.cuts_out() {
                self.metrics.dropped_fault.inc();
            } else {
                bytes.extend_from_slice(frame);
                self.metrics.sent.inc();
                self.metrics.sent_bytes.inc_by(length as u64);
            }
            queue.bytes -= length;
            queue.frames.pop_front();
        }
        self.metrics.queued.set(queue.frames.len() as i64);
    }

    /// Notes that there is, or no longer is, a connection. With none, what waits is dropped: a peer that returns should
    /// not be flooded with the past; and its clock is forgotten, as its next process may read another.
    pub fn set_connected(&self, connected: bool) {
        self.connected.store(connected, Ordering::Relaxed);
        if !connected {
            let mut queue = self.queue();
            self.metrics.dropped_down.inc_by(queue.frames.len() as u64);
            queue.frames.clear();
            queue.bytes = 0;
            self.metrics.queued.set(0);
            drop(queue);
            self.clocks.forget(self.peer);
        }
    }

    /// Queues a ping that tells how often this site's stores have synced, if there is a connection.
    pub fn ping(&self, counts: Counts) {
        if self.connected.load(Ordering::Relaxed) {
            let number = self.pulse().ping(Instant::now());
            self.push(self.control(Kind::Ping, &Ping { number, counts }.encode()));
        }
    }

    /// Answers a ping.
    pub fn answer_ping(&self, number: u64) {
        self.push(self.control(Kind::Pong, &number.to_le_bytes()));
    }

    /// Takes a peer's answer to a ping, said when its clock showed `theirs`.
    pub fn pong(&self, number: u64, theirs: Time) {
        let answered = self.pulse().pong(number, Instant::now());
        if let Some((sent, rtt)) = answered {
            self.metrics.rtt.set(rtt.as_micros() as f64 / 1e6);
            let offset = self.clocks.measured(self.peer, sent, theirs);
            self.metrics.clock_offset.set(offset.middle_micros() as f64 / 1e6);
        }
    }

    /// True if a message of a service may be taken that left when the peer's clock showed `sent`. If not it is counted, and the peer
    /// is named in the log.
    pub fn admits(&self, sent: Time) -> bool {
        if self.clocks.admits(sent) {
            return true;
        }
        self.metrics.dropped_clock.inc();
        if self.clocks.has_begun()
            && let Some(more) = self.alarm.pass(Instant::now())
        {
            let ahead = sent.since(self.clocks.now()).as_millis_f64() / 1e3;
            tracing::error!(
                "messages of {} are refused: its clock is {ahead:.1} s ahead of this site's, and {} is the most that is allowed \
                 (clock.max_offset_ms); set the clock of the machine that is wrong{more}",
                self.name,
                self.clocks.max_offset()
            );
        }
        false
    }

    /// Notes that `bytes` of a frame came from the peer.
    pub fn heard(&self, bytes: usize) {
        self.metrics.received.inc();
        self.metrics.received_bytes.inc_by(bytes as u64);
        self.pulse().heard(Instant::now());
    }

    /// The peer as this site sees it.
    pub fn status(&self) -> Peer {
        let pulse = self.pulse();
        Peer {
            site: self.peer,
            connected: self.connected.load(Ordering::Relaxed),
            rtt: pulse.rtt(),
            heard: pulse.silence(Instant::now()),
            clock: self.clocks.offset(self.peer).map(|(offset, apart)| PeerClock { ahead_micros: offset.middle_micros(), apart }),
        }
    }

    fn control(&self, kind: Kind, data: &[u8]) -> Vec<u8> {
        let written: Result<Vec<u8>, std::convert::Infallible> = frame::encode(kind, self.clocks.now(), |mut bytes| {
            bytes.extend_from_slice(data);
            Ok(bytes)
        });
        match written {
            Ok(bytes) => bytes,
        }
    }
}
