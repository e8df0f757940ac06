//! What each fault does to the world when it strikes, and how the world heals.

use super::World;
use super::drive::Event;
use crate::fault::Fault;
use crate::place::Place;
use rhumb_core::actor::Actor;
use rhumb_core::{RegionId, SiteId, Span, Time};

/// Until when a fault lasts that has no end of its own.
const FOREVER: Time = Time::from_micros(u64::MAX);

/// Sites lost for good are counted under this name.
pub(crate) const LOST: &str = "site.lost";

impl<A: Actor> World<A> {
    /// Lets `fault` strike now.
    pub fn strike(&mut self, fault: &Fault) {
        self.trace.line(self.now, format_args!("fault: {fault}"));
        match *fault {
            Fault::Crash { place, down } => self.sites_of(place).into_iter().for_each(|site| self.crash(site, down)),
            Fault::CrashMidStep { site, down } => {
                if let Some(process) = &mut self.site_mut(site).process {
                    process.crash_mid_step = Some(down);
                }
            }
            Fault::Restart { place } => self.restart(place),
            Fault::Cut { links, span } => self.network.cut(links, self.end_of(span)),
            Fault::Mend { links } => self.network.mend(links),
            Fault::Disturb { links, faults, span } => self.network.disturb(links, faults, self.end_of(span)),
            Fault::SlowDisk { site, factor, span } => {
                let until = self.now + span;
                self.site_mut(site).sync.slow_down(factor, until);
            }
            Fault::Stall { site, span } => self.stall(site, span),
            Fault::ClockJump { site, by_micros } => self.site_mut(site).clock.jump(by_micros),
            Fault::FailSync { site, down } => {
                if let Some(process) = &mut self.site_mut(site).process {
                    process.fail_sync = Some(down);
                }
            }
            Fault::Lose { place } => self.sites_of(place).into_iter().for_each(|site| self.lose(site)),
            Fault::TakeSnapshot { site } => self.take_snapshot(site),
            Fault::ReplaceFolder { site, with, down } => {
                self.replace_folder(site, with);
                self.plan_restart(site, Some(down));
            }
            Fault::Damage { site } => {
                let state = self.site_mut(site);
                (state.is_damaged, state.is_unfit) = (true, true);
            }
            Fault::GiveUp { region } => self.give_up(region),
            Fault::Heal => self.heal(),
        }
    }

    /// Starts every site that is down and not lost, and ends every fault, also those still to come. Clocks stay as they are, but for those so far off
    /// that others do not hear their sites.
    pub fn heal(&mut self) {
        self.healings += 1;
        self.network.heal();
        let (now, most) = (self.now, self.config.max_clock_offset);
        self.sites.values_mut().for_each(|state| state.clock.set_right(now, Span::from_micros(most.as_micros() / 2)));
        self.restart(Place::Everywhere);
        for (&site, state) in &mut self.sites {
            state.sync.heal();
            if let Some(process) = &mut state.process {
                (process.crash_mid_step, process.fail_sync) = (None, None);
            }
            if state.stalled_until > now {
                state.stalled_until = now;
                // What it was to take up after the stall it takes up now.
                if let Some(process) = &mut state.process {
                    process.turn = None;
                }
                self.schedule.push(now, Event::StallOver(site));
            }
        }
    }

    /// Ends the incarnation of `site`, if it is up, and plans its next one if it stays down only for some time.
    pub(crate) fn crash(&mut self, site: SiteId, down: Option<Span>) {
        let Some(state) = self.sites.get_mut(&site).filter(|state| state.is_running()) else { return };
        if state.awaits_clock.take().is_some() {
            return self.plan_restart(site, down);
        }
        let (kept, unsynced) = state.crash(&mut self.rng);
        self.trace.line(self.now, format_args!("{site} crashes, keeps {kept} of {unsynced} bytes not synced"));
        let lost: Vec<_> = self.outstanding().filter(|(_, asked)| *asked == site).map(|(id, _)| id).collect();
        for id in lost {
            self.lose_request(id);
        }
        self.plan_restart(site, down);
    }

    /// Ends `site` for good.
    fn lose(&mut self, site: SiteId) {
        *self.probes.entry(LOST).or_default() += u64::from(!self.site(site).is_lost);
        self.crash(site, None);
        self.site_mut(site).is_lost = true;
    }

    /// Ends `region` for good if one of its sites cannot go on.
    fn give_up(&mut self, region: RegionId) {
        let sites = self.sites_of(Place::Region(region));
        if sites.iter().any(|site| self.site(*site).is_unfit) {
            sites.into_iter().for_each(|site| self.lose(site));
        }
    }

    fn plan_restart(&mut self, site: SiteId, down: Option<Span>) {
        if let Some(down) = down {
            self.strike_at(self.now + down, Fault::Restart { place: Place::Site(site) });
        }
    }

    fn restart(&mut self, place: Place) {
        let down = self.sites_of(place).into_iter().filter(|site| !self.site(*site).is_running() && !self.is_lost(*site));
        let down = down.collect();
        self.start(down);
    }

    fn stall(&mut self, site: SiteId, span: Span) {
        let until = self.now + span;
        let state = self.site_mut(site);
        state.stalled_until = state.stalled_until.max(until);
        self.schedule.push(until, Event::StallOver(site));
    }

    fn sites_of(&self, place: Place) -> Vec<SiteId> {
        self.config.topology.sites().filter(|site| place.holds(*site)).collect()
    }

    fn end_of(&self, span: Option<Span>) -> Time {
        span.map_or(FOREVER, |span| self.now + span)
    }
}
