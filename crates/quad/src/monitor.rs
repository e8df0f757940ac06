//! What a site measures in each period, what the others tell of theirs, and who acts on it.
//!
//! ```text
//!   each tick:    Ping ──▶ Pong           who is up; the shortest round trip of the period; to itself: how long what arrives has to wait,
//!                                         which is no part of the distance
//!   each period:  Measured ──▶ all members    transactions, load over capacity, latency, rows
//!   then:         all members plan (`manager.rs`); if something is due, the first that is up changes the configuration, and if it has
//!                 not the next time, the second, and so on
//! ```
//!
//! All members hear all reports, so that whoever it is knows the past. Two that both take themselves for the first do no harm:
//! consensus decides. A report that cannot be is dropped and counted.
//!
//! **The load of a site is what its own clients have in progress**, not how much it does. What it does hangs on the quorums: cores work for
//! others, so that each would seem the wrong one as soon as it is a core. Nor is it how many transactions its clients end: near cores these
//! go faster, and the sites that are near would seem the loaded ones. Clients that wait for their answers have as many in progress
//! under any quorums; the others have fewer where they are served faster, so that a good choice looks better, not worse. While the
//! configuration changes all that begins waits for that, at every site: such a period counts for no load.

use super::config::{Adaptation, COUNTED_PAGE, LOAD_MAX_PPM, PAGE_BYTES_MAX, RTT_MAX};
use super::configuration::{Cores, Epoch};
use super::links::Ears;
use super::manager::{Known, plan, plan_cores};
use super::message::{Measured, Note};
use super::quorums::{Distance, Forecast, HeardDistance, LatencyModel};
use super::site::{Loading, Site};
use crate::message::Answer;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{Load, Loaded, RequestId};
use rhumb_core::{Effects, Key, KeyRange, SiteId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What is measured at a site, and heard from others.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    /// Of the running period.
    now: Measured,
    /// Which one that is; none before the first tick.
    period: Option<Period>,
    /// Transactions in progress, summed over the ticks of it.
    in_progress: u64,
    /// Percent of the capacity that work for others took up, likewise.
    burden: u64,
    /// What it sent itself: how often, and how long it took, in sum and at the least.
    own: (u64, Span, Span),
    /// Rows written in this epoch.
    pub(super) written: u64,
    /// Rows of the last count, and how far the next one has come.
    rows: u64,
    counted: (Option<Key>, u64),
    /// A page of it is being read.
    counting: bool,
    heard: BTreeMap<SiteId, Heard>,
    /// The epoch, and at which tick of this life it began.
    since: (Epoch, u64),
    /// How often in a row a change was due and did not come: of those for which scores are compared, and of those at once.
    due: [u64; 2],
    /// Sites that asked to join, and when.
    joining: BTreeMap<SiteId, u64>,
    /// This site asks to join.
    joins: bool,
}

/// A period. All sites end theirs at the same times, by their clocks: ticks wait for the processor, so that a period counted in them would
/// be the longer the busier its site is. A clock that jumps ends one early.
#[derive(Clone, Copy, Debug)]
struct Period {
    /// Counted from the clock's zero.
    number: u64,
    /// Ticks of it so far.
    ticks: u64,
    /// It has been measured from its beginning.
    is_whole: bool,
}

/// What was heard of a site.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) forecast: Forecast,
    latency: LatencyModel,
    distances: BTreeMap<SiteId, Distance>,
    pub(super) last: Measured,
    /// The tick at which it was heard.
    pub(super) at: u64,
    /// The tick at which what is expected of it last followed a report: it follows none of a period in which the configuration changed.
    observed: u64,
}

impl Heard {
    /// Its last report with the distances that are taken for true.
    fn measured(&self) -> Measured {
        let rtt_micros = self.distances.iter().map(|(to, distance)| (*to, distance.micros())).collect();
        Measured { rtt_micros, ..self.last.clone() }
    }
}

impl Monitor {
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

    /// What was heard of `site`.
    pub(super) fn heard(&self, site: SiteId) -> Option<&Heard> {
        self.heard.get(&site)
    }

    /// The sites that asked to join lately.
    pub(super) fn joining(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.joining.keys().copied()
    }

    /// A transaction commits here as gateway.
    pub(super) fn commits(&mut self, writes: bool) {
        if writes { self.now.writes += 1 } else { self.now.reads += 1 }
    }

    /// Another configuration is there: nothing is due any more.
    pub(super) fn begin_epoch(&mut self) {
        (self.written, self.due) = (0, [0; 2]);
        self.now.changing = true;
    }

    /// This site asks to become a member, until it is one.
    pub(super) fn join(&mut self) {
        self.joins = true;
    }
}

impl Site {
    pub(super) fn on_ping(&mut self, now: Time, from: SiteId, sent: Time, fx: &mut Effects<Site>) {
        if from == self.me {
            if sent <= now && now.since(sent) <= RTT_MAX {
                let ((count, sum, least), took) = (self.monitor.own, now.since(sent));
                self.monitor.own = (count + 1, sum + took, if count == 0 { took } else { took.min(least) });
            }
        } else {
            let hears = self.reachable().into_iter().collect();
            fx.send(from, self.configuration.epoch.says(Note::Pong { sent, hears }));
        }
    }

    pub(super) fn on_pong(&mut self, now: Time, from: SiteId, sent: Time, hears: Vec<SiteId>) {
        self.answered.insert(from, self.ticks);
        self.hears.insert(from, hears);
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
        if measured.load_ppm > LOAD_MAX_PPM || measured.latency_micros.max(measured.queue_micros) > RTT_MAX.as_micros() {
            fx.trace(|| format!("{from} reports a load of {} ppm, which cannot be", measured.load_ppm));
            return fx.count("quad.absurd_load");
        }
        let half = self.config.adaptation.as_ref().map_or(0, |adaptation| self.ticks_of_a_period(adaptation) / 2);
        let heard = self.monitor.heard.entry(from).or_default();
        let load = measured.load_ppm as f64 / 1e6;
        if !measured.changing {
            heard.forecast.observe(load);
            heard.latency.observe(load, measured.latency_micros as f64 / 1e3);
            heard.observed = self.ticks;
        }
        heard.distances.retain(|to, _| measured.rtt_micros.contains_key(to));
        (heard.last, heard.at) = (measured, self.ticks);
        self.monitor.measure_distances(from, self.ticks.saturating_sub(half));
    }

    pub(super) fn tick_monitor(&mut self, now: Time, fx: &mut Effects<Site>) {
        // Who is taken out later was not asked to come again.
        self.monitor.joins &= !self.is_member();
        if self.monitor.joins {
            for site in self.configuration.bases.keys() {
                fx.send(*site, self.configuration.epoch.says(Note::Join));
            }
        }
        self.tick_burden(fx);
        let Some(adaptation) = self.config.adaptation.clone() else { return };
        if self.monitor.since.0 != self.configuration.epoch {
            self.monitor.since = (self.configuration.epoch, self.ticks);
        }
        self.count_on(fx);
        self.monitor.now.changing |= self.sealed.is_some();
        self.monitor.in_progress += (self.gateway.in_progress() + self.burdened.begins()) as u64;
        self.monitor.burden += self.burdened.percent;
        fx.send(self.me, self.configuration.epoch.says(Note::Ping { sent: now }));
        let number = now.as_micros() / adaptation.period.as_micros().max(1);
        let period = self.monitor.period.get_or_insert(Period { number, ticks: 0, is_whole: false });
        period.ticks += 1;
        if period.number != number {
            let ended = std::mem::replace(period, Period { number, ticks: 0, is_whole: true });
            self.end_period(ended, &adaptation, fx);
        }
        // Reports of the last period have come by then.
        let settled = (self.ticks_of_a_period(&adaptation) / 2).min(self.config.silent_ticks);
        let is_settled = self.monitor.period.is_some_and(|period| period.is_whole && period.ticks == settled);
        if is_settled || self.ticks.is_multiple_of(self.config.silent_ticks) {
            self.plan(&adaptation, is_settled, fx);
        }
    }

    /// How many ticks a period has where nothing waits.
    fn ticks_of_a_period(&self, adaptation: &Adaptation) -> u64 {
        (adaptation.period.as_micros() / self.config.tick.as_micros().max(1)).max(1)
    }

    fn end_period(&mut self, ended: Period, adaptation: &Adaptation, fx: &mut Effects<Site>) {
        let in_progress = std::mem::take(&mut self.monitor.in_progress);
        let (ticks, burden) = (ended.ticks, std::mem::take(&mut self.monitor.burden));
        let (count, own, least) = std::mem::take(&mut self.monitor.own);
        let measured = Measured {
            load_ppm: (in_progress * 1_000_000 / (ticks * adaptation.capacity.max(1)) + burden * 10_000 / ticks).min(LOAD_MAX_PPM),
            latency_micros: own.as_micros() / count.max(1),
            queue_micros: least.as_micros(),
            rows: self.monitor.rows,
            written: self.monitor.written,
            caught_up: self.is_caught_up(),
            ..std::mem::take(&mut self.monitor.now)
        };
        if ended.is_whole && self.is_member() {
            for site in self.configuration.bases.keys() {
                fx.send(*site, self.configuration.epoch.says(Note::Measured { measured: measured.clone() }));
            }
        }
    }

    /// The sites that may be cores: those that all hear, if they are enough. Else whoever is alive stays in its place, and only a core
    /// that finds no quorum goes by its own ears.
    pub(super) fn fit(&self, up: &BTreeSet<SiteId>) -> BTreeSet<SiteId> {
        let (members, quorums) = (self.configuration.members(), &self.configuration.quorums);
        let ears = Ears { me: self.me, up, hears: &self.hears };
        let (alive, fit) = (ears.alive(&members), ears.heard_by_all(&members));
        let wanted = match self.configuration.cores {
            Cores::Fixed(cores) => cores,
            Cores::Auto => quorums.cores().len(),
        };
        let found = if fit.len() >= wanted.min(alive.len()) {
            fit
        } else if quorums.cores().contains(&self.me) && quorums.write(self.me, up, 0).is_none() {
            up.clone()
        } else {
            alive
        };
        found.union(&up.difference(&members).copied().collect()).copied().collect()
    }

    fn plan(&mut self, adaptation: &Adaptation, is_settled: bool, fx: &mut Effects<Site>) {
        let up = self.reachable();
        let before_me = self.configuration.bases.keys().take_while(|site| **site != self.me).filter(|site| up.contains(site)).count();
        // Right after a start nobody has been heard of yet.
        let is_ready = self.ticks > 2 * self.config.silent_ticks && self.sealed.is_none() && self.attempt.is_none();
        if !self.is_member() || !is_ready {
            return;
        }
        let (ticks, silent_ticks) = (self.ticks, self.config.silent_ticks);
        self.monitor.joining.retain(|_, at| *at + silent_ticks >= ticks);
        let (known, age) = (self.known(adaptation), self.age(adaptation));
        let joining: BTreeSet<SiteId> = self.monitor.joining().collect();
        let fit = self.fit(&up);
        // Of a silence not all learn in the same tick: that looks like a cut link for a moment.
        let may_pass = self.configuration.members().intersection(&up).any(|site| !fit.contains(site));
        let compares = is_settled && self.has_measured(&fit);
        let plan = plan(&self.configuration, age, adaptation, &known, &fit, &joining, compares);
        let due = &mut self.monitor.due[usize::from(is_settled)];
        let Some(goal) = plan.and_then(|plan| plan.goal) else {
            *due = 0;
            return;
        };
        *due += 1;
        if *due > (before_me + usize::from(may_pass)) as u64 {
            *due = 0;
            fx.count("quad.planned");
            fx.trace(|| format!("plans a change: {}", goal.why));
            self.change(goal, None, fx);
        }
    }

    /// True if each of these members has measured a whole period of this configuration: what is expected of them else may be so old that sites
    /// which heard different reports would undo each other's changes for ever.
    fn has_measured(&self, up: &BTreeSet<SiteId>) -> bool {
        let has = |site: &SiteId| self.monitor.heard.get(site).is_some_and(|heard| heard.observed > self.monitor.since.1);
        self.configuration.members().intersection(up).all(has)
    }

    /// What was heard of each site lately.
    pub(super) fn known(&self, adaptation: &Adaptation) -> BTreeMap<SiteId, Known> {
        let (ticks, lately) = (self.ticks, 2 * self.ticks_of_a_period(adaptation));
        let known = |heard: &Heard| {
            let load = heard.forecast.next().filter(|_| heard.at + lately >= ticks);
            Known { load, latency_ms: load.and_then(|load| heard.latency.expect_ms(load)), measured: heard.measured() }
        };
        self.monitor.heard.iter().map(|(site, heard)| (*site, known(heard))).collect()
    }

    /// How many periods of this life the configuration has lasted.
    pub(super) fn age(&self, adaptation: &Adaptation) -> u64 {
        self.ticks.saturating_sub(self.monitor.since.1) / self.ticks_of_a_period(adaptation)
    }

    /// An operator wants so many cores.
    pub(super) fn on_cores(&mut self, id: RequestId, cores: Cores, fx: &mut Effects<Site>) {
        if let Some(flaw) = cores.flaw(self.configuration.bases.len()) {
            return fx.answer(id, Answer::Failed(TxnError::Invalid(flaw)));
        }
        if cores == self.configuration.cores {
            return fx.answer(id, Answer::Done);
        }
        let goal = self.config.adaptation.as_ref().and_then(|adaptation| {
            let (known, up) = (self.known(adaptation), self.reachable());
            plan_cores(&self.configuration, adaptation, &known, &up, cores)
        });
        match goal {
            Some(goal) => self.change(goal, Some(id), fx),
            None => fx.answer(id, Answer::Failed(TxnError::Invalid("quorums do not follow what is measured here".into()))),
        }
    }

    /// Counts the rows here, a page each tick, or fewer where the disk is slower.
    fn count_on(&mut self, fx: &mut Effects<Site>) {
        if std::mem::replace(&mut self.monitor.counting, true) {
            return;
        }
        let everything = KeyRange::prefix(&[]);
        let range = match &self.monitor.counted.0 {
            Some(last) => KeyRange::new(last.successor(), everything.end),
            None => everything,
        };
        self.load(Loading::Counted, Load::ScanStamps { range, limit: COUNTED_PAGE, bytes: PAGE_BYTES_MAX }, fx);
    }

    pub(super) fn on_counted(&mut self, loaded: Loaded) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        self.monitor.counting = false;
        let counted = self.monitor.counted.1 + rows.len() as u64;
        if more {
            self.monitor.counted = (rows.last().map(|row| row.key.clone()), counted);
        } else {
            self.monitor.rows = counted;
            self.monitor.counted = (None, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::quorums::{CostWeights, Policy, Quorums, ScoreWeights, Settings};
    use super::super::{Availability, BURDEN_MAX_PERCENT, Config, Stamped};
    use super::*;
    use rhumb_core::Timestamp;
    use rhumb_core::actor::Effect;

    #[test]
    fn a_load_that_no_site_can_have_is_not_heard() {
        let sites = vec![SiteId::new(0, 0), SiteId::new(1, 0)];
        let mut site = Site::new(sites[0], Quorums::WriteAll { sites: sites.clone() }, Config::default());
        let mut heard = |load_ppm| {
            let mut fx = Effects::new(false);
            site.on_measured(sites[1], Measured { load_ppm, ..Measured::default() }, &mut fx);
            (site.monitor.heard[&sites[1]].last.load_ppm, fx.take().len())
        };
        let burden = BURDEN_MAX_PERCENT * 10_000;
        assert_eq!(heard(burden), (burden, 0), "what one can load a site with is believed");
        for absurd in [LOAD_MAX_PPM + 1, u64::MAX] {
            assert_eq!(heard(absurd), (burden, 1), "{absurd} ppm are counted, and nothing else");
        }
    }

    #[test]
    fn what_a_round_trip_waited_at_either_end_is_no_distance() {
        let sites = vec![SiteId::new(0, 0), SiteId::new(1, 0)];
        let mut site = Site::new(sites[0], Quorums::WriteAll { sites: sites.clone() }, Config::default());
        // Both report how long messages wait, in either order, and one its round trip to the other.
        let mut distance = |queues: [u64; 2], micros| {
            site.ticks += 1;
            for from in if site.ticks.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
                let rtt_micros = BTreeMap::from([(sites[1 - from], micros)]).into_iter().filter(|_| from == 0).collect();
                let measured = Measured { queue_micros: queues[from], rtt_micros, ..Measured::default() };
                site.on_measured(sites[from], measured, &mut Effects::new(false));
            }
            site.monitor.heard[&sites[0]].measured().rtt_micros.get(&sites[1]).copied()
        };
        assert_eq!(distance([0, 15_000], 20_000), None, "so busy from the start");
        assert_eq!(distance([0, 0], 20_000), Some(20_000));
        for queues in [[9_000, 0], [0, 9_000], [5_000, 4_000]] {
            for _ in 0..2 {
                assert_eq!(distance(queues, 29_000), Some(20_000), "either is busy, or both are");
            }
        }
        for _ in 0..2 {
            assert_eq!(distance([0, 30_000], 10_000), Some(20_000), "queues longer than the whole round trip say nothing, however often");
            assert_eq!(distance([15_000, 15_000], 55_000), Some(20_000), "nor do those that are most of it");
        }
        assert_eq!((distance([0, 0], 40_000), distance([0, 0], 40_000)), (Some(20_000), Some(40_000)), "what is measured well counts");
    }

    #[test]
    fn a_period_in_which_the_configuration_changed_tells_nothing_of_the_load() {
        let sites = vec![SiteId::new(0, 0), SiteId::new(1, 0)];
        let mut site = Site::new(sites[0], Quorums::WriteAll { sites: sites.clone() }, Config::default());
        let mut expected = |load_ppm, changing| {
            site.on_measured(sites[1], Measured { load_ppm, changing, ..Measured::default() }, &mut Effects::new(false));
            site.monitor.heard[&sites[1]].forecast.next().map(|expected| expected.value)
        };
        assert_eq!(expected(900_000, true), None);
        assert_eq!(expected(100_000, false), Some(0.1));
        assert_eq!((expected(900_000, true), expected(900_000, true)), (Some(0.1), Some(0.1)), "however often");
    }

    #[test]
    fn scores_are_compared_once_all_have_measured_the_configuration() {
        let sites = vec![SiteId::new(0, 0), SiteId::new(1, 0)];
        let mut site = Site::new(sites[0], Quorums::WriteAll { sites: sites.clone() }, Config::default());
        site.monitor.since.1 = 10;
        let mut reports = |from: usize, tick: u64, changing| {
            site.ticks = tick;
            site.on_measured(sites[from], Measured { load_ppm: 500_000, changing, ..Measured::default() }, &mut Effects::new(false));
            site.has_measured(&sites.iter().copied().collect())
        };
        assert!(!reports(0, 9, false) && !reports(1, 9, false), "that was another configuration");
        assert!(!reports(0, 20, true) && !reports(1, 20, true), "it changed in that period");
        assert!(!reports(0, 30, false) && reports(1, 30, false));
    }

    #[test]
    fn a_period_lasts_as_long_however_late_ticks_come() {
        let sites = vec![SiteId::new(0, 0)];
        let settings = Settings { policy: Policy::Quad, cores: 1, score: ScoreWeights::default(), cost: CostWeights::default() };
        let (period, availability) = (Span::from_secs(10), Availability::default());
        let adaptation = Some(Adaptation { period, capacity: 100, settings, auto: false, availability });
        let told = |tick_ms: u64| {
            let mut site = Site::new(
                sites[0],
                Quorums::WriteAll { sites: sites.clone() },
                Config { adaptation: adaptation.clone(), ..Config::default() },
            );
            let mut fx = Effects::new(false);
            let mut told = Vec::new();
            for now_ms in (1..=120).map(|tick| tick * tick_ms).take_while(|now_ms| *now_ms <= 35_000) {
                site.burdened.percent = 50;
                site.tick_monitor(Time::ZERO + Span::from_millis(now_ms), &mut fx);
                for effect in fx.take() {
                    if let Effect::Send { note: Stamped { said: Note::Measured { measured }, .. }, .. } = effect {
                        told.push((now_ms, measured.load_ppm));
                    }
                }
            }
            told
        };
        assert_eq!(told(250), [(20_000, 500_000), (30_000, 500_000)], "the first is not a whole one");
        assert_eq!(told(300), [(20_100, 500_000), (30_000, 500_000)]);
        assert_eq!(told(700), [(20_300, 500_000), (30_100, 500_000)]);
    }

    #[test]
    fn rows_are_counted_a_page_at_a_time() {
        let sites = vec![SiteId::new(0, 0), SiteId::new(1, 0)];
        let mut site = Site::new(sites[0], Quorums::WriteAll { sites }, Config::default());
        let mut fx = Effects::new(false);
        for more in [true, false] {
            site.count_on(&mut fx);
            assert_eq!(fx.take().len(), 1);
            site.count_on(&mut fx);
            assert_eq!(fx.take().len(), 0, "the disk has not answered yet");
            let row = rhumb_core::Row { key: "k".into(), version: Timestamp::ZERO, value: None };
            site.on_counted(Loaded::Rows { rows: vec![row], more });
        }
        assert_eq!(site.monitor.rows, 2);
    }
}
