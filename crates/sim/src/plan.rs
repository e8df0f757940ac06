//! A plan of faults drawn from a seed: what strikes when, at given rates.
//!
//! A run in which everything goes wrong at once explores little, so each plan leaves out kinds of faults at random
//! ("swarm testing", Groce et al., ISSTA 2012): over many seeds every combination of kinds occurs.

use crate::clock::ClockSkew;
use crate::doom;
use crate::fault::Fault;
use crate::network::LinkFaults;
use crate::place::{Links, Place};
use rhumb_core::{RegionId, Rng, SiteId, Span, Time, Topology};
use std::collections::BTreeMap;

/// How likely a plan leaves out a kind of fault.
const OMITTED: f64 = 0.4;

/// How likely a slow disk ends in a crash.
const FAILING: f64 = 0.5;

/// A slow disk takes so many times as long.
const SLOW_DISK_FACTOR: u64 = 300;

/// How far a wrong clock is off.
const WRONG_CLOCKS: [Span; 4] = [Span::from_secs(60), Span::from_secs(3_600), Span::from_secs(86_400), Span::from_secs(400 * 86_400)];

/// How often what goes wrong, and how badly at the most. Frequencies are per minute of true time in the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultRates {
    /// Crashes of one site.
    pub crashes: f64,
    /// Crashes of one site in the middle of a step's effects.
    pub crashes_mid_step: f64,
    /// Crashes of all sites of a region at once.
    pub region_crashes: f64,
    /// Power failures of the whole cluster.
    pub blackouts: f64,
    /// Cuts of a region or a site from all others, in both directions.
    pub isolations: f64,
    /// Cuts between two regions, in one direction or in both.
    pub cuts: f64,
    /// Disks that become slow.
    pub slow_disks: f64,
    /// Sites that stand still.
    pub stalls: f64,
    /// Links between two regions that become slow and lossy.
    pub bad_links: f64,
    /// Clocks that are set anew.
    pub clock_jumps: f64,
    /// Sites that come back from a crash, or from a suspended machine, with a clock that is minutes to years off, until somebody sets it
    /// right.
    pub wrong_clocks: f64,
    /// Sites that crash and are away until the world is healed: beyond what others remember for them.
    pub absences: f64,
    /// Syncs that fail.
    pub sync_failures: f64,
    /// How likely a region is lost for good, at once or because a site of it has lost its folder, was given another, or has a damaged disk.
    /// Only for runs in which nothing is demanded of that region.
    pub losses: f64,
    /// The longest that any of these lasts.
    pub span_max: Span,
    /// The worst that all links do at all times.
    pub links: LinkFaults,
    /// How far clocks are off, to either side, and jump, at the most.
    pub skew_max: Span,
    /// How fast clocks drift, to either side, at the most.
    pub drift_ppm_max: u32,
}

impl FaultRates {
    /// Every kind of fault, often.
    pub fn stormy() -> FaultRates {
        FaultRates {
            crashes: 12.0,
            crashes_mid_step: 12.0,
            region_crashes: 2.0,
            blackouts: 3.0,
            isolations: 4.0,
            cuts: 8.0,
            slow_disks: 4.0,
            stalls: 8.0,
            bad_links: 6.0,
            clock_jumps: 4.0,
            wrong_clocks: 2.0,
            absences: 1.0,
            sync_failures: 6.0,
            losses: 0.0,
            span_max: Span::from_secs(8),
            links: LinkFaults {
                delay: Span::ZERO,
                jitter: Span::from_millis(20),
                loss: 0.05,
                duplicate: 0.05,
                duplicate_after: Span::from_secs(5),
                reorder: 0.05,
                reorder_by: Span::from_millis(500),
            },
            skew_max: Span::from_millis(250),
            drift_ppm_max: 200,
        }
    }

    /// Sites that crash all the time and are back at once, over links that lose, double and hold back a great part of all
    /// messages: what one incarnation said arrives in the next.
    pub fn flaky() -> FaultRates {
        FaultRates {
            crashes: 60.0,
            crashes_mid_step: 60.0,
            cuts: 6.0,
            span_max: Span::from_millis(1_500),
            links: LinkFaults {
                loss: 0.2,
                duplicate: 0.5,
                duplicate_after: Span::from_secs(3),
                reorder: 0.2,
                reorder_by: Span::from_secs(1),
                ..LinkFaults::default()
            },
            skew_max: Span::from_millis(50),
            ..FaultRates::none()
        }
    }

    /// The same, and in many runs a region is lost for good.
    pub fn with_losses(self) -> FaultRates {
        FaultRates { losses: 0.4, ..self }
    }

    /// Nothing goes wrong.
    pub fn none() -> FaultRates {
        FaultRates {
            crashes: 0.0,
            crashes_mid_step: 0.0,
            region_crashes: 0.0,
            blackouts: 0.0,
            isolations: 0.0,
            cuts: 0.0,
            slow_disks: 0.0,
            stalls: 0.0,
            bad_links: 0.0,
            clock_jumps: 0.0,
            wrong_clocks: 0.0,
            absences: 0.0,
            sync_failures: 0.0,
            losses: 0.0,
            span_max: Span::ZERO,
            links: LinkFaults::default(),
            skew_max: Span::ZERO,
            drift_ppm_max: 0,
        }
    }
}

/// What goes wrong in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// How clocks differ from true time.
    pub clocks: BTreeMap<SiteId, ClockSkew>,
    /// What strikes when, in order of time.
    pub faults: Vec<(Time, Fault)>,
}

impl FaultPlan {
    /// Draws a plan for the first `span` of a run.
    pub fn draw(rates: &FaultRates, topology: &Topology, span: Span, rng: &mut Rng) -> FaultPlan {
        let mut draw =
            Draw { rates: *rates, sites: topology.sites().collect(), regions: topology.regions().collect(), span, rng: rng.fork() };
        let clocks = draw.clocks();
        let mut faults = draw.background_faults();
        let kinds: [(f64, Kind); 13] = [
            (rates.crashes, Draw::crash),
            (rates.crashes_mid_step, Draw::crash_mid_step),
            (rates.region_crashes, Draw::region_crash),
            (rates.blackouts, Draw::blackout),
            (rates.isolations, Draw::isolation),
            (rates.cuts, Draw::cut),
            (rates.slow_disks, Draw::slow_disk),
            (rates.stalls, Draw::stall),
            (rates.bad_links, Draw::bad_link),
            (rates.clock_jumps, Draw::clock_jump),
            (rates.wrong_clocks, Draw::wrong_clock),
            (rates.absences, Draw::absence),
            (rates.sync_failures, Draw::sync_failure),
        ];
        for (per_minute, kind) in kinds {
            faults.extend(draw.kind(per_minute, kind));
        }
        faults.extend(draw.loss());
        faults.sort_by_key(|(at, _)| *at);
        FaultPlan { clocks, faults }
    }

    /// The regions that are lost for good, and when; unless it turns out that all sites of one can go on with their folders.
    pub fn losses(&self) -> impl Iterator<Item = (Time, RegionId)> {
        self.faults.iter().filter_map(|(at, fault)| match fault {
            Fault::Lose { place: Place::Region(region) } | Fault::GiveUp { region } => Some((*at, *region)),
            _ => None,
        })
    }

    /// The first of them.
    pub fn loss(&self) -> Option<(Time, RegionId)> {
        self.losses().next()
    }

    /// Another region of `topology` is lost as well within the first `span` of a run.
    pub fn with_another_loss(mut self, topology: &Topology, span: Span, rng: &mut Rng) -> FaultPlan {
        let lost: Vec<RegionId> = self.losses().map(|(_, region)| region).collect();
        let others: Vec<SiteId> = topology.sites().filter(|site| !lost.contains(&site.region)).collect();
        if let Some(site) = rng.pick(&others).copied() {
            self.faults.extend(doom::draw(site.region, site, span, rng));
            self.faults.sort_by_key(|(at, _)| *at);
        }
        self
    }

    /// Loses no region: for a cluster that could not go on without it.
    pub fn without_loss(mut self) -> FaultPlan {
        let is_of_loss = |fault: &Fault| {
            matches!(
                fault,
                Fault::Lose { .. } | Fault::GiveUp { .. } | Fault::TakeSnapshot { .. } | Fault::ReplaceFolder { .. } | Fault::Damage { .. }
            )
        };
        self.faults.retain(|(_, fault)| !is_of_loss(fault));
        self
    }
}

/// Draws one occurrence of a kind of fault: what strikes, each so long after the first.
type Kind = fn(&mut Draw) -> Vec<(Span, Fault)>;

fn at_once<const N: usize>(faults: [Fault; N]) -> Vec<(Span, Fault)> {
    faults.into_iter().map(|fault| (Span::ZERO, fault)).collect()
}

struct Draw {
    rates: FaultRates,
    sites: Vec<SiteId>,
    regions: Vec<RegionId>,
    span: Span,
    rng: Rng,
}

impl Draw {
    fn kind(&mut self, per_minute: f64, kind: Kind) -> Vec<(Time, Fault)> {
        if self.rng.chance(OMITTED) {
            return Vec::new();
        }
        let expected = per_minute * self.span.as_millis_f64() / Span::from_secs(60).as_millis_f64();
        let count = expected.floor() as u64 + u64::from(self.rng.chance(expected.fract()));
        let mut faults = Vec::new();
        for _ in 0..count {
            let at = Time::from_micros(self.rng.below(self.span.as_micros()));
            faults.extend(kind(self).into_iter().map(|(after, fault)| (at + after, fault)));
        }
        faults.retain(|(at, _)| at.since(Time::ZERO) < self.span);
        faults
    }

    fn clocks(&mut self) -> BTreeMap<SiteId, ClockSkew> {
        if self.rng.chance(OMITTED) {
            return BTreeMap::new();
        }
        let drift_max = self.rates.drift_ppm_max;
        let skewed = self.sites.clone().into_iter().map(|site| {
            let offset_micros = self.skew();
            let drift_ppm = self.rng.between(0, u64::from(2 * drift_max)) as i32 - drift_max as i32;
            (site, ClockSkew { offset_micros, drift_ppm })
        });
        skewed.collect()
    }

    /// What all links do at all times: each kind at a level of its own, up to the worst.
    fn background_faults(&mut self) -> Vec<(Time, Fault)> {
        let worst = self.rates.links;
        if worst == LinkFaults::default() {
            return Vec::new();
        }
        let faults = LinkFaults {
            delay: self.upto(worst.delay),
            jitter: self.upto(worst.jitter),
            loss: self.level(worst.loss),
            duplicate: self.level(worst.duplicate),
            reorder: self.level(worst.reorder),
            ..worst
        };
        vec![(Time::ZERO, Fault::Disturb { links: Links::ALL, faults, span: None })]
    }

    fn level(&mut self, worst: f64) -> f64 {
        if self.rng.chance(OMITTED) { 0.0 } else { worst * self.rng.unit() }
    }

    fn upto(&mut self, most: Span) -> Span {
        Span::from_micros(self.rng.between(0, most.as_micros()))
    }

    /// Mostly short: the length is as likely below a tenth of the longest as above.
    fn lasting(&mut self) -> Span {
        let most = self.rates.span_max;
        let most = if self.rng.chance(0.5) { Span::from_micros(most.as_micros() / 10) } else { most };
        self.upto(most)
    }

    fn skew(&mut self) -> i64 {
        let most = self.rates.skew_max.as_micros();
        self.rng.between(0, 2 * most) as i64 - most as i64
    }

    fn site(&mut self) -> SiteId {
        *self.rng.pick(&self.sites).expect("a cluster has a site")
    }

    fn region(&mut self) -> RegionId {
        *self.rng.pick(&self.regions).expect("a cluster has a region")
    }

    fn crash(&mut self) -> Vec<(Span, Fault)> {
        at_once([Fault::Crash { place: Place::Site(self.site()), down: Some(self.lasting()) }])
    }

    fn crash_mid_step(&mut self) -> Vec<(Span, Fault)> {
        at_once([Fault::CrashMidStep { site: self.site(), down: Some(self.lasting()) }])
    }

    fn region_crash(&mut self) -> Vec<(Span, Fault)> {
        at_once([Fault::Crash { place: Place::Region(self.region()), down: Some(self.lasting()) }])
    }

    fn isolation(&mut self) -> Vec<(Span, Fault)> {
        let place = if self.rng.chance(0.5) { Place::Site(self.site()) } else { Place::Region(self.region()) };
        let links = Links::new(place, Place::Everywhere);
        let span = Some(self.lasting());
        at_once([Fault::Cut { links, span }, Fault::Cut { links: links.reversed(), span }])
    }

    fn cut(&mut self) -> Vec<(Span, Fault)> {
        let links = self.link();
        let span = Some(self.lasting());
        let there = Fault::Cut { links, span };
        let back = Fault::Cut { links: links.reversed(), span };
        if self.rng.chance(0.5) { at_once([there, back]) } else { at_once([there]) }
    }

    fn link(&mut self) -> Links {
        Links::new(Place::Region(self.region()), Place::Region(self.region()))
    }

    /// Some slow disks are about to fail, and take their site along.
    fn slow_disk(&mut self) -> Vec<(Span, Fault)> {
        let (site, span) = (self.site(), self.lasting());
        let mut faults = at_once([Fault::SlowDisk { site, factor: SLOW_DISK_FACTOR, span }]);
        if self.rng.chance(FAILING) {
            faults.push((self.upto(span), Fault::Crash { place: Place::Site(site), down: Some(self.lasting()) }));
        }
        faults
    }

    /// All disks become slow, and soon after the power fails everywhere: what was not synced is nowhere.
    fn blackout(&mut self) -> Vec<(Span, Fault)> {
        let span = Span::from_secs(1);
        let slow = |site: &SiteId| (Span::ZERO, Fault::SlowDisk { site: *site, factor: SLOW_DISK_FACTOR, span });
        let mut faults: Vec<(Span, Fault)> = self.sites.iter().map(slow).collect();
        faults.push((self.upto(span), Fault::Crash { place: Place::Everywhere, down: Some(self.lasting()) }));
        faults
    }

    fn stall(&mut self) -> Vec<(Span, Fault)> {
        at_once([Fault::Stall { site: self.site(), span: self.lasting() }])
    }

    fn bad_link(&mut self) -> Vec<(Span, Fault)> {
        let faults = LinkFaults { delay: self.upto(Span::from_millis(500)), loss: self.rng.unit() * 0.5, ..self.rates.links };
        at_once([Fault::Disturb { links: self.link(), faults, span: Some(self.lasting()) }])
    }

    fn clock_jump(&mut self) -> Vec<(Span, Fault)> {
        at_once([Fault::ClockJump { site: self.site(), by_micros: self.skew() }])
    }

    fn wrong_clock(&mut self) -> Vec<(Span, Fault)> {
        let (site, down, wrong) = (self.site(), self.lasting(), self.lasting());
        let off = i64::try_from(self.rng.pick(&WRONG_CLOCKS).expect("there are some to pick from").as_micros()).expect("years fit");
        let by_micros = if self.rng.chance(0.5) { off } else { -off };
        let right = (down + wrong, Fault::ClockJump { site, by_micros: -by_micros });
        if by_micros < 0 && self.rng.chance(0.5) {
            // A machine that was suspended: its clock stood still meanwhile.
            return vec![(Span::ZERO, Fault::ClockJump { site, by_micros }), right];
        }
        vec![
            (Span::ZERO, Fault::Crash { place: Place::Site(site), down: Some(down) }),
            (Span::ZERO, Fault::ClockJump { site, by_micros }),
            right,
        ]
    }

    fn absence(&mut self) -> Vec<(Span, Fault)> {
        at_once([Fault::Crash { place: Place::Site(self.site()), down: None }])
    }

    fn sync_failure(&mut self) -> Vec<(Span, Fault)> {
        at_once([Fault::FailSync { site: self.site(), down: Some(self.lasting()) }])
    }

    fn loss(&mut self) -> Vec<(Time, Fault)> {
        if !self.rng.chance(self.rates.losses) {
            return Vec::new();
        }
        let site = self.site();
        doom::draw(site.region, site, self.span, &mut self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Replacement;

    fn topology() -> Topology {
        Topology::new(vec!["a".into(), "b".into(), "c".into()], 2)
    }

    fn plan(rates: &FaultRates, seed: u64) -> FaultPlan {
        FaultPlan::draw(rates, &topology(), Span::from_secs(60), &mut Rng::seeded(seed))
    }

    #[test]
    fn a_seed_always_gives_the_same_plan_in_order_of_time() {
        let first = plan(&FaultRates::stormy(), 3);
        assert_eq!(first, plan(&FaultRates::stormy(), 3));
        assert_ne!(first, plan(&FaultRates::stormy(), 4));
        assert!(first.faults.is_sorted_by_key(|(at, _)| *at));
        assert!(first.faults.iter().all(|(at, _)| *at < Time::ZERO + Span::from_secs(60)));
    }

    #[test]
    fn no_rates_no_faults() {
        for seed in 0..20 {
            let plan = plan(&FaultRates::none(), seed);
            assert!(plan.faults.is_empty());
            assert!(plan.clocks.values().all(|skew| *skew == ClockSkew::default()));
        }
    }

    #[test]
    fn a_region_is_lost_in_many_plans_in_each_way_and_only_where_that_is_asked_for() {
        let plans: Vec<FaultPlan> = (0..200).map(|seed| plan(&FaultRates::stormy().with_losses(), seed)).collect();
        let count = |kind: &dyn Fn(&Fault) -> bool| plans.iter().flat_map(|plan| &plan.faults).filter(|(_, fault)| kind(fault)).count();
        assert!((20..60).contains(&count(&|fault| matches!(fault, Fault::Lose { .. }))));
        assert!((5..40).contains(&count(&|fault| matches!(fault, Fault::Damage { .. }))));
        for each in Replacement::ALL {
            let replaced = count(&|fault| matches!(fault, Fault::ReplaceFolder { with, .. } if *with == each));
            assert!((3..30).contains(&replaced), "{each:?}: {replaced}");
        }
        assert!(plans.iter().all(|plan| plan.clone().without_loss().loss().is_none()));
        assert!((0..200).all(|seed| plan(&FaultRates::stormy(), seed).loss().is_none()));
    }

    #[test]
    fn every_kind_is_in_some_plans_and_left_out_of_others() {
        let plans: Vec<FaultPlan> = (0..40).map(|seed| plan(&FaultRates::stormy(), seed)).collect();
        let wrong = |by_micros: i64| by_micros.unsigned_abs() >= WRONG_CLOCKS[0].as_micros() / 2;
        let kinds: [&dyn Fn(&Fault) -> bool; 11] = [
            &|fault| matches!(fault, Fault::Crash { place: Place::Everywhere, .. }),
            &|fault| matches!(fault, Fault::Crash { place: Place::Site(_), down: None }),
            &|fault| matches!(fault, Fault::Crash { place: Place::Region(_), .. }),
            &|fault| matches!(fault, Fault::CrashMidStep { .. }),
            &|fault| matches!(fault, Fault::Cut { .. }),
            &|fault| matches!(fault, Fault::SlowDisk { .. }),
            &|fault| matches!(fault, Fault::Stall { .. }),
            &|fault| matches!(fault, Fault::ClockJump { by_micros, .. } if !wrong(*by_micros)),
            &|fault| matches!(fault, Fault::ClockJump { by_micros, .. } if wrong(*by_micros)),
            &|fault| matches!(fault, Fault::Disturb { span: Some(_), .. }),
            &|fault| matches!(fault, Fault::FailSync { .. }),
        ];
        for (index, kind) in kinds.into_iter().enumerate() {
            let with = plans.iter().filter(|plan| plan.faults.iter().any(|(_, fault)| kind(fault))).count();
            assert!((5..40).contains(&with), "kind {index} is in {with} of 40 plans");
        }
    }
}
