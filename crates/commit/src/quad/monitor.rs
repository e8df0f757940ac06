//! What a site measures in each period, what the others tell of theirs, and who acts on it.
//!
//! ```text
//!   each tick:    Ping ──▶ Pong           the shortest round trip of the period
//!   each period:  Measured ──▶ all members    transactions, load over capacity, rows
//!   then:         the first member that is up plans (`manager.rs`) and, if something is due, changes the configuration
//! ```
//!
//! All members hear all reports, so that whoever comes first knows the past. Two that both take themselves for the first do no harm:
//! consensus decides. A report that cannot be is dropped and counted.

use super::config::{Adaptation, COUNTED_PAGE, LOAD_MAX_PERCENT, RTT_MAX};
use super::manager::{Known, plan};
use super::message::{Measured, Note};
use super::quorums::Forecast;
use super::site::{Loading, Site};
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::{Effects, Key, KeyRange, SiteId, Time, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What is measured at a site, and heard from others.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    /// Of the running period.
    now: Measured,
    /// Transactions that this site has worked for in it, as gateway or as replica.
    served: u64,
    /// Rows written in this epoch.
    pub(super) written: u64,
    /// Rows of the last count, and how far the next one has come.
    rows: u64,
    counted: (Option<Key>, u64),
    heard: BTreeMap<SiteId, Heard>,
    /// Sites that asked to join, and when.
    joining: BTreeMap<SiteId, u64>,
    /// This site asks to join.
    joins: bool,
}

#[derive(Debug, Default)]
struct Heard {
    forecast: Forecast,
    last: Measured,
    /// The tick at which it was heard.
    at: u64,
}

impl Monitor {
    /// A transaction begins here, or asks this replica for the first time.
    pub(super) fn serves(&mut self) {
        self.served += 1;
    }

    /// A transaction commits here as gateway.
    pub(super) fn commits(&mut self, writes: bool) {
        if writes { self.now.writes += 1 } else { self.now.reads += 1 }
    }

    /// This site asks to become a member, until it is one.
    pub(super) fn join(&mut self) {
        self.joins = true;
    }
}

impl Site {
    pub(super) fn on_ping(&mut self, from: SiteId, sent: Time, fx: &mut Effects<Site>) {
        if self.config.adaptation.is_some() {
            fx.send(from, self.configuration.epoch.says(Note::Pong { sent }));
        }
    }

    pub(super) fn on_pong(&mut self, now: Time, from: SiteId, sent: Time) {
        // A clock that was set meanwhile measures nothing.
        if sent <= now && now.since(sent) <= RTT_MAX {
            let micros = now.since(sent).as_micros();
            self.monitor.now.rtt_micros.entry(from).and_modify(|least| *least = micros.min(*least)).or_insert(micros);
        }
    }

    pub(super) fn on_join(&mut self, from: SiteId) {
        self.monitor.joining.insert(from, self.ticks);
    }

    pub(super) fn on_measured(&mut self, from: SiteId, measured: Measured, fx: &mut Effects<Site>) {
        if measured.load_percent > LOAD_MAX_PERCENT {
            fx.trace(|| format!("{from} reports a load of {} %, which cannot be", measured.load_percent));
            return fx.count("quad.absurd_load");
        }
        let heard = self.monitor.heard.entry(from).or_default();
        heard.forecast.observe(measured.load_percent as f64 / 100.0);
        (heard.last, heard.at) = (measured, self.ticks);
    }

    pub(super) fn tick_monitor(&mut self, fx: &mut Effects<Site>) {
        if self.monitor.joins && !self.is_member() {
            for site in self.configuration.bases.keys() {
                fx.send(*site, self.configuration.epoch.says(Note::Join));
            }
        }
        let Some(adaptation) = self.config.adaptation.clone() else { return };
        self.count_on(fx);
        let period = adaptation.period_ticks.max(1);
        if self.ticks.is_multiple_of(period) {
            self.end_period(&adaptation, fx);
        }
        // Reports of this period's end have come by then.
        let is_settled = self.ticks % period == (period / 2).min(self.config.silent_ticks);
        if is_settled || self.ticks.is_multiple_of(self.config.silent_ticks) {
            self.plan(&adaptation, is_settled, fx);
        }
    }

    fn end_period(&mut self, adaptation: &Adaptation, fx: &mut Effects<Site>) {
        let served = std::mem::take(&mut self.monitor.served);
        let measured = Measured {
            load_percent: served * 100 / adaptation.capacity.max(1),
            rows: self.monitor.rows,
            written: self.monitor.written,
            caught_up: self.is_caught_up(),
            ..std::mem::take(&mut self.monitor.now)
        };
        // The first period of a life is not a whole one.
        if self.ticks > adaptation.period_ticks && self.is_member() {
            for site in self.configuration.bases.keys() {
                fx.send(*site, self.configuration.epoch.says(Note::Measured { measured: measured.clone() }));
            }
        }
    }

    fn plan(&mut self, adaptation: &Adaptation, is_settled: bool, fx: &mut Effects<Site>) {
        let up = self.reachable();
        let is_first = self.configuration.bases.keys().find(|site| up.contains(site)) == Some(&self.me);
        // Right after a start nobody has been heard of yet.
        let is_ready = self.ticks > 2 * self.config.silent_ticks && self.sealed.is_none() && self.attempt.is_none();
        if !is_first || !is_ready {
            return;
        }
        let (ticks, lately) = (self.ticks, 2 * adaptation.period_ticks);
        self.monitor.joining.retain(|_, at| *at + self.config.silent_ticks >= ticks);
        let known =
            |heard: &Heard| Known { load: heard.forecast.next().filter(|_| heard.at + lately >= ticks), measured: heard.last.clone() };
        let known = self.monitor.heard.iter().map(|(site, heard)| (*site, known(heard))).collect();
        let joining: BTreeSet<SiteId> = self.monitor.joining.keys().copied().collect();
        if let Some(goal) = plan(&self.configuration, adaptation, &known, &up, &joining, is_settled) {
            fx.count("quad.planned");
            self.change(goal, None, fx);
        }
    }

    /// Counts the rows here, a page each tick.
    fn count_on(&mut self, fx: &mut Effects<Site>) {
        let everything = KeyRange::prefix(&[]);
        let range = match &self.monitor.counted.0 {
            Some(last) => KeyRange::new(last.successor(), everything.end),
            None => everything,
        };
        self.load(Loading::Counted, Load::Scan { range, at: Timestamp::MAX, limit: COUNTED_PAGE, reverse: false }, fx);
    }

    pub(super) fn on_counted(&mut self, loaded: Loaded) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        let counted = self.monitor.counted.1 + rows.len() as u64;
        if more {
            self.monitor.counted = (rows.last().map(|row| row.key.clone()), counted);
        } else {
            self.monitor.rows = counted;
            self.monitor.counted = (None, 0);
        }
    }
}
