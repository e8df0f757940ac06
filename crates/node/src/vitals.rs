//! What the actor says of itself when an operator asks: transactions under way, commits in doubt, how far behind it is.
//!
//! It is asked anew for every view, through the same mailbox as clients. A site that recovers, stops or is stuck says
//! nothing, and nothing is shown for it: an old number would look like a healthy one.

use crate::runtime::{Handle, Hosted};
use crate::status::Status;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rhumb_core::{RegionId, Span, Time, Timestamp};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An actor that does not answer within this time is shown as saying nothing.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// What an actor says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    /// Transactions that clients of this site have open.
    pub open: usize,
    /// Attempts to commit that are prepared here and hold locks, their outcome not known yet.
    pub prepared: usize,
    /// Attempts that have waited long for the vote of a region that does not answer.
    pub in_doubt: usize,
    /// Up to this timestamp every commit of the cluster is applied here; zero if that is not known yet.
    pub safe: Timestamp,
    /// The regions whose sites all answered lately.
    pub reachable: Vec<RegionId>,
}

impl Vitals {
    /// How far the safe timestamp lies behind `now`, if there is one.
    pub fn safe_lag(&self, now: Time) -> Option<Span> {
        (self.safe > Timestamp::ZERO).then(|| now.since(self.safe.time()))
    }
}

/// Asks the actor. `None` if it does not answer.
pub async fn ask<A: Hosted>(handle: &Handle<A>, status: &Status) -> Option<Vitals> {
    // What is asked of a site that recovers would wait until it has.
    if !status.is_recovered() {
        return None;
    }
    let answer = tokio::time::timeout(ANSWER_WITHIN, handle.ask(A::inquiry())).await.ok()?.ok()?;
    A::vitals(answer)
}

/// What the actor last said, as metrics; without an answer there are none of these.
#[derive(Clone, Debug, Default)]
pub struct VitalMetrics(Arc<Mutex<Option<(Vitals, Time)>>>);

impl VitalMetrics {
    /// Shows what the actor said at `now`.
    pub fn show(&self, vitals: Option<Vitals>, now: Time) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = vitals.map(|vitals| (vitals, now));
    }
}

impl Collector for VitalMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((vitals, now)) = shown else { return Ok(()) };
        let counts = [
            ("transactions_open", "Transactions that clients of this site have open.", vitals.open),
            ("attempts_prepared", "Attempts to commit that hold locks here, outcome not known yet.", vitals.prepared),
            ("attempts_in_doubt", "Attempts that have waited long for the vote of a region that does not answer.", vitals.in_doubt),
            ("regions_reachable", "Regions whose sites all answered lately.", vitals.reachable.len()),
        ];
        for (name, help, count) in counts {
            let gauge = ConstGauge::new(count as i64);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        if let Some(lag) = vitals.safe_lag(now) {
            let help = "How far this site's clock is ahead of the timestamp up to which it has applied every commit.";
            let gauge = ConstGauge::new(lag.as_millis_f64() / 1_000.0);
            gauge.encode(encoder.encode_descriptor("safe_timestamp_lag", help, Some(&Unit::Seconds), gauge.metric_type())?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn what_the_actor_says_is_shown_until_it_says_nothing() {
        let metrics = Metrics::new();
        let shown = || {
            let text = metrics.render();
            let ours = |line: &&str| {
                ["transactions_", "attempts_", "safe_", "regions_"].iter().any(|name| line.contains(&format!("rhumb_{name}")))
            };
            text.lines().filter(ours).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(shown(), [""; 0]);
        let now = Time::from_micros(10_000_000);
        let safe = Timestamp::from_time(now.minus(Span::from_millis(1_250)));
        let vitals = Vitals { open: 3, prepared: 2, in_doubt: 1, safe, reachable: vec![RegionId(0), RegionId(2)] };
        metrics.vitals.show(Some(vitals.clone()), now);
        let expected = [
            "# HELP rhumb_transactions_open Transactions that clients of this site have open.",
            "# TYPE rhumb_transactions_open gauge",
            "rhumb_transactions_open 3",
            "# HELP rhumb_attempts_prepared Attempts to commit that hold locks here, outcome not known yet.",
            "# TYPE rhumb_attempts_prepared gauge",
            "rhumb_attempts_prepared 2",
            "# HELP rhumb_attempts_in_doubt Attempts that have waited long for the vote of a region that does not answer.",
            "# TYPE rhumb_attempts_in_doubt gauge",
            "rhumb_attempts_in_doubt 1",
            "# HELP rhumb_regions_reachable Regions whose sites all answered lately.",
            "# TYPE rhumb_regions_reachable gauge",
            "rhumb_regions_reachable 2",
            "# HELP rhumb_safe_timestamp_lag_seconds How far this site's clock is ahead of the timestamp up to which it has applied every commit.",
            "# TYPE rhumb_safe_timestamp_lag_seconds gauge",
            "# UNIT rhumb_safe_timestamp_lag_seconds seconds",
            "rhumb_safe_timestamp_lag_seconds 1.25",
        ];
        assert_eq!(shown(), expected);
        // A site that has applied nothing yet knows no lag.
        metrics.vitals.show(Some(Vitals { safe: Timestamp::ZERO, ..vitals }), now);
        assert_eq!(shown(), expected[..12]);
        metrics.vitals.show(None, now);
        assert_eq!(shown(), [""; 0]);
    }
}
