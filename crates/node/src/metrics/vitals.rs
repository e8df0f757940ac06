//! What the actors say of themselves when an operator asks: transactions under way, commits in doubt, how far behind the
//! site is; quotas, and who waits for tokens.
//!
//! They are asked anew for every view, through the same mailboxes as clients. A site that recovers, stops or is stuck
//! says nothing, and nothing is shown for it: an old number would look like a healthy one.

use super::tables;
use crate::service::Service;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rhumb_catenae::Status as CatenaeVitals;
use rhumb_commit::placement::Placement;
use rhumb_core::{RegionId, Span, Table, Time, Timestamp};
use rhumb_quad::{Explanation, Role};
use rhumb_quota::request::Status as QuotaVitals;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What an actor that commits transactions says of itself.
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
    /// The placement that it has adopted, if it has such a thing.
    pub placement: Option<Placement>,
    /// How full its tables and queues are.
    pub tables: Vec<Table>,
}

impl Vitals {
    /// How far the safe timestamp lies behind `now`, if there is one.
    pub fn safe_lag(&self, now: Time) -> Option<Span> {
        (self.safe > Timestamp::ZERO).then(|| now.since(self.safe.time()))
    }
}

/// What the actors last said, as metrics; without an answer there are none of these.
#[derive(Clone, Debug, Default)]
pub struct VitalMetrics(Arc<Mutex<Shown>>);

#[derive(Clone, Debug, Default)]
struct Shown {
    commits: Option<(Vitals, Time)>,
    quotas: Option<QuotaVitals>,
    catenae: Option<CatenaeVitals>,
    quad: Option<Explanation>,
}

/// What the actors of a site say, each if it answers.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// That of Replicated Commit.
    pub commits: Option<Vitals>,
    /// That of quotas.
    pub quotas: Option<QuotaVitals>,
    /// That of Catenae.
    pub catenae: Option<CatenaeVitals>,
    /// That of QuAD.
    pub quad: Option<Explanation>,
}

impl VitalMetrics {
    /// Shows what the actors said at `now`.
    pub fn show(&self, said: Said, now: Time) {
        let Said { commits, quotas, catenae, quad } = said;
        let shown = Shown { commits: commits.map(|vitals| (vitals, now)), quotas, catenae, quad };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }
}

impl Collector for VitalMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Shown { commits, quotas, catenae, quad } = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let tables = [
            (Service::Commit, commits.as_ref().map(|(vitals, _)| vitals.tables.clone())),
            (Service::Quotas, quotas.as_ref().map(|quotas| quotas.tables.clone())),
            (Service::Catenae, catenae.as_ref().map(|vitals| vitals.tables.clone())),
            (Service::Quad, quad.as_ref().map(|quad| quad.tables.clone())),
        ];
        tables::encode(&mut encoder, &tables)?;
        if let Some((vitals, now)) = commits {
            let counts = [
                ("transactions_open", "Transactions that clients of this site have open.", vitals.open),
                ("attempts_prepared", "Attempts to commit that hold locks here, outcome not known yet.", vitals.prepared),
                ("attempts_in_doubt", "Attempts that have waited long for the vote of a region that does not answer.", vitals.in_doubt),
                ("regions_reachable", "Regions whose sites all answered lately.", vitals.reachable.len()),
            ];
            encode_counts(&mut encoder, counts)?;
            if let Some(lag) = vitals.safe_lag(now) {
                let help = "How far this site's clock is ahead of the timestamp up to which it has applied every commit.";
                let gauge = ConstGauge::new(lag.as_millis_f64() / 1_000.0);
                gauge.encode(encoder.encode_descriptor("safe_timestamp_lag", help, Some(&Unit::Seconds), gauge.metric_type())?)?;
            }
        }
        if let Some(vitals) = quotas {
            let counts = [
                ("quotas", "Quotas known.", vitals.quotas),
                ("quota_operations_waiting", "Operations that wait for tokens.", vitals.waiting),
                ("quotas_redistributing", "Quotas with a redistribution under way at this site.", vitals.redistributing),
                ("quota_sites_lost", "Sites declared lost, which have no part in quotas any more.", vitals.lost.len()),
                ("quotas_unsettled", "Quotas in which it is not settled yet what lost sites have.", vitals.unsettled),
            ];
            encode_counts(&mut encoder, counts)?;
        }
        if let Some(vitals) = catenae {
            let counts = [
                ("epochs_behind", "Epochs that this site has sealed and not yet settled.", vitals.behind() as usize),
                ("epoch_transactions_unsettled", "Transactions agreed on and not yet settled here.", vitals.unsettled),
                ("epoch_regions_passed_over", "Regions for which another site speaks.", vitals.passed_over.len()),
            ];
            encode_counts(&mut encoder, counts)?;
            let help = "Epochs that clients here waited for, sealed here and settled.";
            let epochs = ConstCounter::new(vitals.settling.epochs);
            epochs.encode(encoder.encode_descriptor("epochs_settled", help, None, epochs.metric_type())?)?;
            let help = "Time from the end of these epochs until they were settled here, all together.";
            let time = ConstCounter::new(vitals.settling.sum.as_millis_f64() / 1_000.0);
            time.encode(encoder.encode_descriptor("epoch_settle", help, Some(&Unit::Seconds), time.metric_type())?)?;
        }
        quad.map_or(Ok(()), |quad| encode_quad(&mut encoder, &quad))
    }
}

fn encode_quad(encoder: &mut DescriptorEncoder, quad: &Explanation) -> fmt::Result {
    let own = quad.sites.iter().find(|facts| facts.site == quad.site);
    let counts = [
        ("quad_epoch", "The epoch of the configuration of quorums.", quad.epoch.0 as usize),
        ("quad_is_sealed", "1 while the configuration is being changed here.", usize::from(quad.sealed)),
        ("quad_is_caught_up", "1 if all is here that was committed before the epoch.", usize::from(own.is_some_and(|own| own.caught_up))),
        ("quad_unresolved", "Transactions that wait for an outcome here, or are decided and not known to all.", quad.unresolved),
    ];
    encode_counts(encoder, counts)?;
    let mut roles = encoder.encode_descriptor("quad_role", "1 at what this site is in the quorums.", None, MetricType::Gauge)?;
    for role in [Role::Core, Role::Slave, Role::NonMember] {
        let is_it = own.is_some_and(|own| own.role == role);
        ConstGauge::new(i64::from(is_it)).encode(roles.encode_family(&[("role", role.to_string())])?)?;
    }
    let expected = own.and_then(|own| own.forecast).map(|(expected, _)| expected);
    let measures = [
        ("quad_load", "What clients of this site had in progress in the last period, over its capacity.", own.and_then(|own| own.load)),
        ("quad_load_expected", "The same as expected of the next period.", expected),
        ("quad_score", "How strong this site is, near to others and with little to do.", own.and_then(|own| own.score)),
    ];
    for (name, help, measure) in measures {
        if let Some(measure) = measure {
            let gauge = ConstGauge::new(measure);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
    }
    let help = "Configurations that this site adopted, by what brought them about.";
    let mut changes = encoder.encode_descriptor("quad_changes", help, None, MetricType::Counter)?;
    for (cause, count) in &quad.tally.changes {
        ConstCounter::new(*count).encode(changes.encode_family(&[("cause", cause.to_string())])?)?;
    }
    for (name, help, count) in [
        ("quad_seals", "How often this site stopped serving an epoch, for a change.", quad.tally.sealed),
        ("quad_reconciled_rows", "Rows that this site got from others because it lacked them.", quad.tally.copied),
    ] {
        let counter = ConstCounter::new(count);
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
    }
    Ok(())
}

fn encode_counts<const N: usize>(encoder: &mut DescriptorEncoder, counts: [(&str, &str, usize); N]) -> fmt::Result {
    for (name, help, count) in counts {
        let gauge = ConstGauge::new(count as i64);
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use rhumb_catenae::Settling;
    use rhumb_catenae::epoch::Epoch;

    const NOW: Time = Time::from_micros(10_000_000);
    /// How the names of what is tested here begin.
    const NAMES: [&str; 9] = [
        "transactions_",
        "attempts_",
        "safe_",
        "regions_",
        "quota",
        "epochs_",
        "epoch_transactions_unsettled",
        "epoch_regions_",
        "epoch_settle",
    ];

    fn shown(metrics: &Metrics) -> Vec<String> {
        let text = metrics.render();
        let is_ours = |line: &&str| NAMES.iter().any(|name| line.contains(&format!("rhumb_{name}")));
        text.lines().filter(is_ours).map(str::to_owned).collect()
    }

    #[test]
    fn what_the_site_says_is_shown() {
        let metrics = Metrics::new();
        assert_eq!(shown(&metrics), [""; 0]);
        let safe = Timestamp::from_time(NOW.minus(Span::from_millis(1_250)));
        let vitals = Vitals { open: 3, prepared: 2, in_doubt: 1, safe, reachable: vec![RegionId(0), RegionId(2)], ..Vitals::default() };
        metrics.vitals.show(Said { commits: Some(vitals.clone()), ..Said::default() }, NOW);
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
        assert_eq!(shown(&metrics), expected);
        // A site that has applied nothing yet knows no lag.
        metrics.vitals.show(Said { commits: Some(Vitals { safe: Timestamp::ZERO, ..vitals }), ..Said::default() }, NOW);
        assert_eq!(shown(&metrics), expected[..12]);
    }

    #[test]
    fn what_quotas_say_is_shown() {
        let metrics = Metrics::new();
        let quotas = QuotaVitals { serving: true, quotas: 5, waiting: 2, redistributing: 1, ..QuotaVitals::default() };
        metrics.vitals.show(Said { quotas: Some(quotas), ..Said::default() }, NOW);
        let expected = [
            "# HELP rhumb_quotas Quotas known.",
            "# TYPE rhumb_quotas gauge",
            "rhumb_quotas 5",
            "# HELP rhumb_quota_operations_waiting Operations that wait for tokens.",
            "# TYPE rhumb_quota_operations_waiting gauge",
            "rhumb_quota_operations_waiting 2",
            "# HELP rhumb_quotas_redistributing Quotas with a redistribution under way at this site.",
            "# TYPE rhumb_quotas_redistributing gauge",
            "rhumb_quotas_redistributing 1",
            "# HELP rhumb_quota_sites_lost Sites declared lost, which have no part in quotas any more.",
            "# TYPE rhumb_quota_sites_lost gauge",
            "rhumb_quota_sites_lost 0",
            "# HELP rhumb_quotas_unsettled Quotas in which it is not settled yet what lost sites have.",
            "# TYPE rhumb_quotas_unsettled gauge",
            "rhumb_quotas_unsettled 0",
        ];
        assert_eq!(shown(&metrics), expected);
    }

    #[test]
    fn what_catenae_says_is_shown_until_it_says_nothing() {
        let metrics = Metrics::new();
        let settling = Settling { epochs: 4, sum: Span::from_millis(350), last: Span::from_millis(90) };
        let catenae = CatenaeVitals { coordinator: Epoch(9), settled: Epoch(5), unsettled: 3, settling, ..CatenaeVitals::default() };
        metrics.vitals.show(Said { catenae: Some(catenae), ..Said::default() }, NOW);
        let expected = [
            "# HELP rhumb_epochs_behind Epochs that this site has sealed and not yet settled.",
            "# TYPE rhumb_epochs_behind gauge",
            "rhumb_epochs_behind 4",
            "# HELP rhumb_epoch_transactions_unsettled Transactions agreed on and not yet settled here.",
            "# TYPE rhumb_epoch_transactions_unsettled gauge",
            "rhumb_epoch_transactions_unsettled 3",
            "# HELP rhumb_epoch_regions_passed_over Regions for which another site speaks.",
            "# TYPE rhumb_epoch_regions_passed_over gauge",
            "rhumb_epoch_regions_passed_over 0",
            "# HELP rhumb_epochs_settled Epochs that clients here waited for, sealed here and settled.",
            "# TYPE rhumb_epochs_settled counter",
            "rhumb_epochs_settled_total 4",
            "# HELP rhumb_epoch_settle_seconds Time from the end of these epochs until they were settled here, all together.",
            "# TYPE rhumb_epoch_settle_seconds counter",
            "# UNIT rhumb_epoch_settle_seconds seconds",
            "rhumb_epoch_settle_seconds_total 0.35",
        ];
        assert_eq!(shown(&metrics), expected);
        metrics.vitals.show(Said::default(), NOW);
        assert_eq!(shown(&metrics), [""; 0]);
    }
}
