//! What the sites report: loads, latencies and distances, and what follows for the next period.

use super::{Monitor, ticks_of_a_period};
use crate::config::{LOAD_MAX_PPM, RTT_MAX};
use crate::context::{Context, Shared};
use crate::explanation::{Role, SiteFacts};
use crate::message::Measured;
use crate::quorums::{Distance, Forecast, HeardDistance, LatencyModel};
use rhumb_core::SiteId;
use std::collections::{BTreeMap, BTreeSet};

/// What was heard of a site.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    pub(super) forecast: Forecast,
    pub(super) latency: LatencyModel,
    pub(super) distances: BTreeMap<SiteId, Distance>,
    pub(super) last: Measured,
    /// The tick at which it was heard.
    pub(super) at: u64,
    /// The tick at which what is expected of it last followed a report: it follows none of a period in which the configuration changed.
    pub(super) observed: u64,
}

impl Heard {
    /// Its last report with the distances that are taken for true.
    pub(super) fn measured(&self) -> Measured {
        let rtt_micros = self.distances.iter().map(|(to, distance)| (*to, distance.micros())).collect();
        Measured { rtt_micros, ..self.last.clone() }
    }
}

impl Monitor {
    pub(crate) fn on_measured(&mut self, from: SiteId, measured: Measured, cx: &mut Context<'_>) {
        if measured.load_ppm > LOAD_MAX_PPM || measured.latency_micros.max(measured.queue_micros) > RTT_MAX.as_micros() {
            cx.fx.trace(|| format!("{from} reports a load of {} ppm, which cannot be", measured.load_ppm));
            return cx.fx.count("quad.absurd_load");
        }
        let half = cx.config.adaptation.as_ref().map_or(0, |adaptation| ticks_of_a_period(cx, adaptation) / 2);
        let heard = self.heard.entry(from).or_default();
        let load = measured.load_ppm as f64 / 1e6;
        if !measured.changing {
            heard.forecast.observe(load);
            heard.latency.observe(load, measured.latency_micros as f64 / 1e3);
            heard.observed = cx.ticks;
        }
        heard.distances.retain(|to, _| measured.rtt_micros.contains_key(to));
        (heard.last, heard.at) = (measured, cx.ticks);
        self.measure_distances(from, cx.ticks.saturating_sub(half));
    }

    /// What a report of `from` that has just come, and those of the same period that came before it, from tick `since` on, say of the
    /// distances. A round trip waits for both processors, so it takes what both ends say; where it was most of the time in queues, what is left
    /// says nothing.
    fn measure_distances(&mut self, from: SiteId, since: u64) {
        let others: Vec<SiteId> =
            self.heard.iter().filter(|(site, heard)| **site != from && heard.at >= since).map(|(site, _)| *site).collect();
        for (one, to) in others.into_iter().flat_map(|other| [(from, other), (other, from)]) {
            let margin = self.heard[&one].last.queue_micros + self.heard[&to].last.queue_micros;
            let heard = self.heard.get_mut(&one).expect("it has reported");
            let micros = heard.last.rtt_micros.get(&to).map_or(0, |micros| micros.saturating_sub(margin));
            if micros > margin {
                let said = HeardDistance { micros, margin };
                heard.distances.entry(to).and_modify(|distance| distance.observe(said)).or_insert(Distance::new(said));
            }
        }
    }

    /// True if each of these members has measured a whole period of this configuration: what is expected of them else may be so old that sites
    /// which heard different reports would undo each other's changes for ever.
    pub(super) fn has_measured(&self, up: &BTreeSet<SiteId>, cx: &Shared) -> bool {
        let has = |site: &SiteId| self.heard.get(site).is_some_and(|heard| heard.observed > self.since);
        cx.configuration.members().intersection(up).all(has)
    }

    /// What is known of `site`, which has this score.
    pub(crate) fn facts(&self, site: SiteId, score: Option<f64>, cx: &Shared) -> SiteFacts {
        let (configuration, up) = (&cx.configuration, cx.reachable());
        let role = match configuration.bases.contains_key(&site) {
            false => Role::NonMember,
            true if configuration.quorums.cores().contains(&site) => Role::Core,
            true => Role::Slave,
        };
        let quorum = |found: Option<BTreeSet<SiteId>>| found.filter(|_| role != Role::NonMember).unwrap_or_default();
        let unknown = Heard::default();
        let heard = self.heard.get(&site).unwrap_or(&unknown);
        SiteFacts {
            site,
            role,
            up: up.contains(&site),
            load: (heard.at > 0).then(|| heard.last.load_ppm as f64 / 1e6),
            forecast: heard.forecast.next().map(|expected| expected.value).zip(heard.forecast.alpha()),
            score,
            reads: quorum(configuration.quorums.read(site, &up, 0)),
            writes: quorum(configuration.quorums.write(site, &up, 0)),
            caught_up: configuration.bases.get(&site) == Some(&configuration.epoch) || heard.last.caught_up,
            rows: heard.last.rows,
            written: heard.last.written,
        }
    }
}
