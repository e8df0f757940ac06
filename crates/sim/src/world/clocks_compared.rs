//! How sites compare their clocks, by the rules of [`rhumb_core::clock_offset`], as the node does: before an incarnation begins, and
//! while it lasts.
//!
//! The node measures offsets by round trips; here two sites that reach each other know theirs exactly.

use super::World;
use super::drive::Event;
use crate::planted::Planted;
use rhumb_core::actor::Actor;
use rhumb_core::clock_offset::{ClockOffsets, Offset, Verdict};
use rhumb_core::{SiteId, Span, Time};

/// How often a site compares its clock.
const COMPARE_EVERY: Span = Span::from_millis(500);
/// A site that nobody confirms and nobody refutes for so long begins all the same.
const ALONE_MAX: Span = Span::from_secs(10);

impl<A: Actor> World<A> {
    /// Starts the processes of `sites`, which are down: the incarnation of each begins once its clock is confirmed.
    pub(crate) fn start(&mut self, sites: Vec<SiteId>) {
        let now = self.now;
        for &site in &sites {
            if self.open_folder(site) {
                let state = self.site_mut(site);
                state.awaits_clock = Some(now);
                state.processes += 1;
            }
        }
        for site in sites {
            self.compare_clocks(site, self.site(site).processes);
        }
    }

    /// Compares the clock of `site` with those of the sites in reach, and does what follows from that. Then again after a while, as long as
    /// this process of it runs.
    pub(crate) fn compare_clocks(&mut self, site: SiteId, process: u64) {
        let state = self.site(site);
        if !state.is_running() || state.processes != process {
            return;
        }
        if !self.greet(site) {
            return;
        }
        self.schedule.push(self.now + COMPARE_EVERY, Event::ComparesClocks { site, process });
        let offsets = self.offsets(site);
        let now = self.now;
        let verdict = if self.rules.breaks(Planted::ClocksBelieved) { Verdict::Confirmed } else { offsets.verdict() };
        match (verdict, self.site(site).awaits_clock) {
            (Verdict::Odd(disagreement), None) => {
                self.trace.line(now, format_args!("{site} stops: {disagreement}"));
                *self.probes.entry("clock.odd").or_default() += 1;
                self.crash(site, None);
                self.site_mut(site).awaits_clock = Some(now);
            }
            (Verdict::Confirmed, Some(_)) => self.begin_confirmed(site),
            // No majority is in reach, and nobody who is would be misled.
            (Verdict::Unconfirmed, Some(since)) if now.since(since) >= ALONE_MAX && offsets.is_uncontradicted() => {
                *self.probes.entry("clock.alone").or_default() += 1;
                self.begin_confirmed(site);
            }
            _ => {}
        }
    }

    fn begin_confirmed(&mut self, site: SiteId) {
        self.site_mut(site).awaits_clock = None;
        self.begin_incarnation(site);
    }

    /// True if `site` takes a message that left at `sent` by its sender's clock.
    pub(crate) fn admits(&self, site: SiteId, sent: Time) -> bool {
        self.rules.breaks(Planted::ClocksBelieved)
            || ClockOffsets::new(self.sites.len(), self.config.max_clock_offset).admits(sent, self.clock(site))
    }

    /// What `site` finds of the clocks of those that it reaches, and that reach it.
    fn offsets(&self, site: SiteId) -> ClockOffsets {
        let mut offsets = ClockOffsets::new(self.sites.len(), self.config.max_clock_offset);
        let own = self.clock(site);
        for peer in self.reached(site) {
            offsets.measured(peer, Offset::of_round_trip(own, self.clock(peer), own));
        }
        offsets
    }

    /// The sites that `site` reaches, and that reach it.
    pub(crate) fn reached(&self, site: SiteId) -> impl Iterator<Item = SiteId> + '_ {
        let others = self.sites.iter().filter(move |(peer, _)| **peer != site);
        let up = others.filter(|(_, state)| state.is_running() && state.stalled_until <= self.now).map(|(peer, _)| *peer);
        up.filter(move |peer| self.network.reaches(self.now, site, *peer) && self.network.reaches(self.now, *peer, site))
    }
}
