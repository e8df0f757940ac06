//! What a site counts and measures, in the format that `docs/metrics.md` names.
//!
//! Every handle here is an atomic shared with the registry: counting costs no lock on the paths of messages and commits.
//!
//! Protocols name their events, such as `commit.aborted_stale` (all causes of aborts: `replicated-commit/src/gateway/conclusion.rs`, in
//! `counted`). [`ActorMetrics::event`] makes series of them: `rhumb_aborts_total{cause="stale"}` of the events that begin with
//! `commit.aborted_`, `rhumb_handoffs_total` of `commit.handed_over`, and `rhumb_events_total{event="…"}` of all others.

pub mod resources;
mod tables;
pub mod vitals;

use crate::bounds::{MAILBOX_CLIENTS_MAX, MAILBOX_PEERS_MAX, PEER_QUEUE_MESSAGES_MAX};
use crate::service::Service;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use resources::Resources;
use rhumb_commit::transaction::{Committed, Operated, TxnError};
use std::sync::atomic::AtomicU64;
use vitals::VitalMetrics;

/// A measurement that is not a whole number.
pub type Measure = Gauge<f64, AtomicU64>;

/// Names another site.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PeerLabels {
    region: String,
    shard: u16,
}

/// Names another site and why a message to or from it was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DropLabels {
    region: String,
    shard: u16,
    cause: &'static str,
}

/// Names a service of the site.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServiceLabels {
    service: &'static str,
}

/// Names an event that the protocol of a service counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    service: &'static str,
    event: &'static str,
}

/// Names why a commit was given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AbortLabels {
    cause: &'static str,
}

/// Names how often a commit crossed the wide area.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommitLabels {
    rounds: u8,
}

/// Events that begin so are commits given up, by what follows.
const ABORTED: &str = "commit.aborted_";
/// Commits that another region's gateway runs.
const HANDED_OVER: &str = "commit.handed_over";

/// All metrics of a site.
pub struct Metrics {
    registry: Registry,
    sent: Family<PeerLabels, Counter>,
    sent_bytes: Family<PeerLabels, Counter>,
    received: Family<PeerLabels, Counter>,
    received_bytes: Family<PeerLabels, Counter>,
    dropped: Family<DropLabels, Counter>,
    queued: Family<PeerLabels, Gauge>,
    connects: Family<PeerLabels, Counter>,
    rtt: Family<PeerLabels, Measure>,
    clock_offset: Family<PeerLabels, Measure>,
    mailbox: Family<ServiceLabels, Gauge>,
    step: Family<ServiceLabels, Histogram, fn() -> Histogram>,
    requests: Family<ServiceLabels, Gauge>,
    requests_bound: Gauge,
    busy: Family<ServiceLabels, Counter>,
    events: Family<EventLabels, Counter>,
    aborts: Family<AbortLabels, Counter>,
    handoffs: Counter,
    sync: Family<ServiceLabels, Histogram, fn() -> Histogram>,
    batches: Family<ServiceLabels, Histogram, fn() -> Histogram>,
    /// Connections of other sites that were closed for what they sent.
    pub refused: Counter,
    /// Connections that were closed before they had proved to be of a site of the cluster.
    pub unproven: Counter,
    /// Commits of clients of this process.
    pub commits: CommitMetrics,
    /// Likewise, of Catenae.
    pub epochs: EpochMetrics,
    /// Likewise, of QuAD.
    pub quad: QuadMetrics,
    /// What the actors say of themselves.
    pub vitals: VitalMetrics,
}

/// What is counted about commits that write.
#[derive(Clone, Default)]
pub struct CommitMetrics {
    committed: Family<CommitLabels, Counter>,
    trips: Counter,
}

/// What is counted about transactions of Catenae that clients of this process committed, or tried to.
#[derive(Clone)]
pub struct EpochMetrics {
    outcomes: Family<OutcomeLabels, Counter>,
    /// The time from COMMIT to the answer, in seconds.
    pub wait: Histogram,
}

/// What is counted about transactions of QuAD of clients of this process.
#[derive(Clone)]
pub struct QuadMetrics {
    outcomes: Family<OutcomeLabels, Counter>,
}

/// Names what became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// Counters at zero: a rate is seen from the first event on only where there was a zero before.
fn outcomes<const N: usize>(names: [&'static str; N]) -> Family<OutcomeLabels, Counter> {
    let family = Family::default();
    for outcome in names {
        family.get_or_create_owned(&OutcomeLabels { outcome });
    }
    family
}

/// What is counted about a service.
#[derive(Clone)]
pub struct ServiceMetrics {
    /// What the actor thread counts.
    pub actor: ActorMetrics,
    /// What the writer thread counts.
    pub writer: WriterMetrics,
}

/// What the actor thread counts.
#[derive(Clone)]
pub struct ActorMetrics {
    /// Inputs waiting for the actor.
    pub mailbox: Gauge,
    /// The time of a step and of carrying out its effects, in seconds.
    pub step: Histogram,
    /// Requests of clients without an answer yet.
    pub requests: Gauge,
    /// Requests turned away because the site was busy.
    pub busy: Counter,
    service: &'static str,
    events: Family<EventLabels, Counter>,
    aborts: Family<AbortLabels, Counter>,
    handoffs: Counter,
}

/// What the writer thread counts.
#[derive(Clone)]
pub struct WriterMetrics {
    /// The time of a sync, in seconds.
    pub sync: Histogram,
    /// How many batches one sync made durable.
    pub batches: Histogram,
}

/// What is counted about the link to one peer.
#[derive(Clone)]
pub struct LinkMetrics {
    /// Messages written to its socket.
    pub sent: Counter,
    /// Their bytes.
    pub sent_bytes: Counter,
    /// Messages it sent.
    pub received: Counter,
    /// Their bytes.
    pub received_bytes: Counter,
    /// Messages waiting to leave.
    pub queued: Gauge,
    /// Connections made to it.
    pub connects: Counter,
    /// The measured round trip, in seconds.
    pub rtt: Measure,
    /// How far its clock is ahead, in seconds.
    pub clock_offset: Measure,
    /// Messages dropped because the queue was full.
    pub dropped_full: Counter,
    /// Messages dropped because there was no connection.
    pub dropped_down: Counter,
    /// Messages dropped because the link is cut or loses some, as it was told to.
    pub dropped_fault: Counter,
    /// Messages dropped because they exceed the size of a frame.
    pub dropped_large: Counter,
    /// Messages of the peer dropped because the service that they are for had no room for long.
    pub dropped_busy: Counter,
    /// Messages of the peer dropped because its clock is too far ahead, or this site's is not confirmed yet.
    pub dropped_clock: Counter,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// All metrics, at zero.
    pub fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("rhumb"),
            sent: Family::default(),
            sent_bytes: Family::default(),
            received: Family::default(),
            received_bytes: Family::default(),
            dropped: Family::default(),
            queued: Family::default(),
            connects: Family::default(),
            rtt: Family::default(),
            clock_offset: Family::default(),
            mailbox: Family::default(),
            step: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1e-6, 4.0, 10))),
            requests: Family::default(),
            requests_bound: Gauge::default(),
            busy: Family::default(),
            events: Family::default(),
            aborts: Family::default(),
            handoffs: Counter::default(),
            sync: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1e-4, 2.0, 14))),
            batches: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 2.0, 12))),
            refused: Counter::default(),
            unproven: Counter::default(),
            commits: CommitMetrics::default(),
            epochs: EpochMetrics {
                outcomes: outcomes(["committed", "conflict", "refused", "unknown"]),
                wait: Histogram::new(exponential_buckets(1e-3, 2.0, 14)),
            },
            quad: QuadMetrics { outcomes: outcomes(["committed", "conflict", "refused", "unavailable", "unknown"]) },
            vitals: VitalMetrics::default(),
        };
        metrics.register();
        metrics.register_bounds();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("peer_messages_sent", "Messages written to a peer's connection", self.sent.clone());
        registry.register_with_unit("peer_sent", "Bytes written to a peer's connection", Unit::Bytes, self.sent_bytes.clone());
        registry.register("peer_messages_received", "Messages that a peer sent", self.received.clone());
        registry.register_with_unit("peer_received", "Bytes of messages that a peer sent", Unit::Bytes, self.received_bytes.clone());
        registry.register("peer_messages_dropped", "Messages to or from a peer that were dropped, by cause", self.dropped.clone());
        registry.register("peer_queue_messages", "Messages waiting to leave for a peer", self.queued.clone());
        registry.register("peer_connects", "Connections made to a peer", self.connects.clone());
        registry.register_with_unit("peer_rtt", "Measured round trip to a peer, smoothed", Unit::Seconds, self.rtt.clone());
        registry.register_with_unit(
            "peer_clock_offset",
            "How far the clock of a peer is ahead, give or take half a round trip",
            Unit::Seconds,
            self.clock_offset.clone(),
        );
        registry.register("peer_connections_refused", "Connections of peers closed for what they sent", self.refused.clone());
        registry.register(
            "peer_connections_unproven",
            "Incoming connections closed before they had proved to be of a site of the cluster",
            self.unproven.clone(),
        );
        registry.register("mailbox_inputs", "Inputs waiting for the actor of a service", self.mailbox.clone());
        registry.register_with_unit("actor_step", "Time of a step and its effects", Unit::Seconds, self.step.clone());
        registry.register("requests_waiting", "Requests of clients without an answer yet", self.requests.clone());
        registry.register("requests_busy", "Requests turned away because the site was busy", self.busy.clone());
        registry.register("events", "What the protocol of a service counts, by event", self.events.clone());
        registry.register(
            "commits",
            "Transactions of clients here that committed writes, by wide-area rounds",
            self.commits.committed.clone(),
        );
        registry.register("commit_trips", "Wide-area round trips that these waited for, reads among them", self.commits.trips.clone());
        registry.register(
            "epoch_transactions",
            "Transactions of clients here that went into an epoch, by outcome",
            self.epochs.outcomes.clone(),
        );
        registry.register_with_unit("epoch_commit", "Time from such a commit to its answer", Unit::Seconds, self.epochs.wait.clone());
        registry.register("quad_transactions", "Transactions of clients here in databases of QuAD, by outcome", self.quad.outcomes.clone());
        registry.register("aborts", "Commits that this site ran and gave up, by cause", self.aborts.clone());
        registry.register("handoffs", "Commits handed over to another region", self.handoffs.clone());
        registry.register_with_unit("store_sync", "Time of a sync to disk", Unit::Seconds, self.sync.clone());
        registry.register("store_sync_batches", "Batches that one sync made durable", self.batches.clone());
        registry.register_collector(Box::new(self.vitals.clone()));
    }

    /// The most that queues may hold, under the names of those that say what they hold.
    fn register_bounds(&mut self) {
        let constant = |bound: usize| {
            let gauge = Gauge::<i64>::default();
            gauge.set(bound as i64);
            gauge
        };
        let registry = &mut self.registry;
        let peer_queue = constant(PEER_QUEUE_MESSAGES_MAX);
        registry.register("peer_queue_messages_bound", "How many messages may wait to leave for a peer", peer_queue);
        let mailbox = constant(MAILBOX_PEERS_MAX + MAILBOX_CLIENTS_MAX);
        registry.register("mailbox_inputs_bound", "How many inputs of peers and clients may wait for the actor of a service", mailbox);
        let requests = self.requests_bound.clone();
        registry.register("requests_waiting_bound", "How many requests of clients may wait at each service", requests);
    }

    /// What is counted about the link to the site `shard` of `region`.
    pub fn link(&self, region: &str, shard: u16) -> LinkMetrics {
        let peer = PeerLabels { region: region.to_owned(), shard };
        let dropped = |cause| self.dropped.get_or_create_owned(&DropLabels { region: region.to_owned(), shard, cause });
        LinkMetrics {
            sent: self.sent.get_or_create_owned(&peer),
            sent_bytes: self.sent_bytes.get_or_create_owned(&peer),
            received: self.received.get_or_create_owned(&peer),
            received_bytes: self.received_bytes.get_or_create_owned(&peer),
            queued: self.queued.get_or_create_owned(&peer),
            connects: self.connects.get_or_create_owned(&peer),
            rtt: self.rtt.get_or_create_owned(&peer),
            clock_offset: self.clock_offset.get_or_create_owned(&peer),
            dropped_full: dropped("full"),
            dropped_down: dropped("down"),
            dropped_fault: dropped("fault"),
            dropped_large: dropped("large"),
            dropped_busy: dropped("busy"),
            dropped_clock: dropped("clock"),
        }
    }

    /// What is counted about `service`.
    pub fn service(&self, service: Service) -> ServiceMetrics {
        let labels = ServiceLabels { service: service.name() };
        ServiceMetrics {
            actor: ActorMetrics {
                mailbox: self.mailbox.get_or_create_owned(&labels),
                step: self.step.get_or_create_owned(&labels),
                requests: self.requests.get_or_create_owned(&labels),
                busy: self.busy.get_or_create_owned(&labels),
                service: service.name(),
                events: self.events.clone(),
                aborts: self.aborts.clone(),
                handoffs: self.handoffs.clone(),
            },
            writer: WriterMetrics { sync: self.sync.get_or_create_owned(&labels), batches: self.batches.get_or_create_owned(&labels) },
        }
    }

    /// Shows what the site takes of its machine, too.
    pub fn measure(&mut self, resources: Resources) {
        self.registry.register_collector(Box::new(resources));
    }

    /// Shows how many requests of clients each service lets wait.
    pub fn bound_requests(&self, requests_max: usize) {
        self.requests_bound.set(requests_max as i64);
    }

    /// All metrics as text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).expect("a string takes all that is written");
        text
    }
}

impl ActorMetrics {
    /// The counter of `event`: one of its own for what operators watch.
    pub fn event(&self, event: &'static str) -> Counter {
        match event.strip_prefix(ABORTED) {
            Some(cause) => self.aborts.get_or_create_owned(&AbortLabels { cause }),
            None if event == HANDED_OVER => self.handoffs.clone(),
            None => self.events.get_or_create_owned(&EventLabels { service: self.service, event }),
        }
    }
}

impl EpochMetrics {
    /// Counts a transaction by what its client was told.
    pub fn count(&self, outcome: &Result<Operated, TxnError>) {
        let outcome = match outcome {
            Ok(Operated::Done(..)) => "committed",
            Ok(Operated::Failed { .. }) => "refused",
            Err(TxnError::Conflict(_)) => "conflict",
            Err(TxnError::Unknown(_)) => "unknown",
            Err(_) => "refused",
        };
        self.outcomes.get_or_create_owned(&OutcomeLabels { outcome }).inc();
    }
}

impl QuadMetrics {
    /// Counts a transaction by what its client was told.
    pub fn count(&self, outcome: Result<Committed, &TxnError>) {
        let outcome = match outcome {
            Ok(_) => "committed",
            Err(TxnError::Conflict(_)) => "conflict",
            Err(TxnError::Unknown(_)) => "unknown",
            Err(TxnError::Unavailable(_)) => "unavailable",
            Err(_) => "refused",
        };
        self.outcomes.get_or_create_owned(&OutcomeLabels { outcome }).inc();
    }
}

impl CommitMetrics {
    /// Counts a transaction that committed writes after so many wide-area trips, reads among them.
    pub fn count(&self, two_rounds: bool, trips: u32) {
        self.committed.get_or_create_owned(&CommitLabels { rounds: if two_rounds { 2 } else { 1 } }).inc();
        self.trips.inc_by(u64::from(trips));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aborts_are_counted_by_cause_and_handoffs_by_themselves() {
        let metrics = Metrics::new();
        let actor = metrics.service(Service::Commit).actor;
        for event in ["commit.aborted_stale", "commit.aborted_stale", "commit.aborted_locked", "commit.handed_over", "commit.withdrawn"] {
            actor.event(event).inc();
        }
        metrics.commits.count(false, 1);
        metrics.commits.count(true, 3);
        let text = metrics.render();
        let lines = [
            "rhumb_aborts_total{cause=\"stale\"} 2",
            "rhumb_aborts_total{cause=\"locked\"} 1",
            "rhumb_handoffs_total 1",
            "rhumb_events_total{service=\"commit\",event=\"commit.withdrawn\"} 1",
            "rhumb_commits_total{rounds=\"1\"} 1",
            "rhumb_commits_total{rounds=\"2\"} 1",
            "rhumb_commit_trips_total 4",
        ];
        lines.iter().for_each(|line| assert!(text.lines().any(|shown| shown == *line), "{line}: {text}"));
        assert_eq!(text.matches("rhumb_events_total{").count(), 1);
    }
}
