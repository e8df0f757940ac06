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
//! All members receive all reports, so that any of them can plan. Two members that both consider themselves the first do no harm, because consensus
//! decides. An implausible report is dropped and counted.
//!
//! **The load of a site is what its own clients have in progress**, not how much work it does. That depends on the quorums: cores work for others, so
//! every site would look like the wrong core as soon as it is one. Nor is it the number of transactions that its clients finish: those are faster
//! near cores, so the sites near cores would look loaded. Clients that wait for their answers have as many in progress under any quorums; the others
//! have fewer where they are served faster, so that a good choice looks better, not worse. While the configuration changes all that begins waits for
//! that, at every site: such a period counts for no load.
//!
//! Source: section III-B, "Load Prediction and Monitoring"; the load is that of equation 3.

use super::config::{Adaptation, COUNTED_PAGE, LOAD_MAX_PPM, PAGE_BYTES_MAX, RTT_MAX};
use super::configuration::{Cores, Epoch, Goal};
use super::context::{Context, Job, Shared};
use super::explanation::{Role, SiteFacts};
use super::gateway::Commits;
use super::links::Ears;
use super::manager::{Known, Plan, Scores, Situation};
use super::message::{Measured, Note};
use super::quorums::{Distance, Forecast, HeardDistance, LatencyModel};
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::{Key, KeyRange, SiteId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What is measured at a site, and heard from others.
#[derive(Clone, Debug, Default)]
pub(super) struct Monitor {
    /// The running one.
    period: Period,
    /// What had committed before it.
    committed: Commits,
    rows: RowCount,
    heard: BTreeMap<SiteId, Heard>,
    /// The epoch that it has seen last.
    epoch: Epoch,
    /// The tick of this incarnation at which that began.
    since: u64,
    due: Due,
    /// Sites that asked to join, and when.
    joining: BTreeMap<SiteId, u64>,
    /// This site asks to join.
    joins: bool,
}

/// Messages of a site to itself in a period: how often, and how long they took, in sum and at the least.
#[derive(Clone, Debug, Default)]
struct OwnPings {
    count: u64,
    sum: Span,
    least: Span,
}

/// The rows here, counted a page at a time.
#[derive(Clone, Debug, Default)]
struct RowCount {
    /// By the last count that came to its end.
    known: u64,
    /// By the running one, up to this row.
    counted: u64,
    last: Option<Key>,
    /// A page of it is being read.
    is_loading: bool,
}

/// How often in a row a change was due and did not come.
#[derive(Clone, Debug, Default)]
struct Due {
    /// At the end of a period.
    at_period: u64,
    /// In between.
    at_once: u64,
}

/// What the other roles of a site are at, as its monitor sees it at a tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    /// Transactions of its own clients.
    pub(super) in_progress: usize,
    /// What has committed in this incarnation.
    pub(super) committed: Commits,
    /// Percent of the capacity that work for others takes up.
    pub(super) injected_percent: u64,
    /// Rows written in this epoch.
    pub(super) written: u64,
    /// All that was committed before the epoch is here.
    pub(super) caught_up: bool,
    /// The epoch is sealed here.
    pub(super) sealed: bool,
    /// The site attempts a change.
    pub(super) moving: bool,
}

/// A period. All sites end theirs at the same times, by their clocks: ticks wait for the processor, so that a period counted in them would
/// be the longer the busier its site is. A clock that jumps ends one early.
#[derive(Clone, Debug, Default)]
struct Period {
    /// Counted from the clock's zero; none before the first tick.
    number: Option<u64>,
    /// Ticks of it so far.
    ticks: u64,
    /// It has been measured from its beginning.
    is_whole: bool,
    /// The configuration changed in it.
    changing: bool,
    /// Transactions in progress, summed over its ticks.
    in_progress: u64,
    /// Percent of the capacity that work for others took up, likewise.
    injected: u64,
    /// What the site sent itself.
    own: OwnPings,
    /// The shortest round trip to each site, microseconds.
    rtt_micros: BTreeMap<SiteId, u64>,
}

/// What was heard of a site.
#[derive(Clone, Debug, Default)]
struct Heard {
    forecast: Forecast,
    latency: LatencyModel,
    distances: BTreeMap<SiteId, Distance>,
    last: Measured,
    /// The tick at which it was heard.
    at: u64,
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

    /// The sites that asked to join lately.
    pub(super) fn joining(&self) -> BTreeSet<SiteId> {
        self.joining.keys().copied().collect()
    }

    /// Another configuration is there: nothing is due any more.
    pub(super) fn begin_epoch(&mut self) {
        self.due = Due::default();
        self.period.changing = true;
    }

    /// This site asks to become a member, until it is one.
    pub(super) fn join(&mut self) {
        self.joins = true;
    }

    pub(super) fn on_ping(&mut self, from: SiteId, sent: Time, cx: &mut Context<'_>) {
        if from != cx.me {
            let hears = cx.reachable().into_iter().collect();
            cx.send(from, Note::Pong { sent, hears });
        } else if let Some(took) = took(sent, cx.now) {
            let OwnPings { count, sum, least } = self.period.own;
            self.period.own = OwnPings { count: count + 1, sum: sum + took, least: if count == 0 { took } else { took.min(least) } };
        }
    }

    pub(super) fn on_pong(&mut self, from: SiteId, sent: Time, cx: &Shared) {
        if let Some(took) = took(sent, cx.now) {
            let micros = took.as_micros();
            self.period.rtt_micros.entry(from).and_modify(|least| *least = micros.min(*least)).or_insert(micros);
        }
    }

    pub(super) fn on_join(&mut self, from: SiteId, tick: u64) {
        self.joining.insert(from, tick);
    }

    pub(super) fn on_measured(&mut self, from: SiteId, measured: Measured, cx: &mut Context<'_>) {
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

    /// A site that is to join asks the members for that.
    pub(super) fn ask_to_join(&mut self, cx: &mut Context<'_>) {
        // A site that is removed later was not asked to rejoin.
        self.joins &= !cx.is_member();
        if self.joins {
            cx.send_members(&Note::Join);
        }
    }

    /// The change that is due, if it is this site's to bring it about.
    pub(super) fn tick(&mut self, activity: Activity, cx: &mut Context<'_>) -> Option<Goal> {
        let adaptation = cx.config.adaptation.clone()?;
        if self.epoch != cx.configuration.epoch {
            (self.epoch, self.since) = (cx.configuration.epoch, cx.ticks);
        }
        self.count_on(cx);
        cx.send(cx.me, Note::Ping { sent: cx.now });
        let number = cx.now.as_micros() / adaptation.period.as_micros().max(1);
        let period = &mut self.period;
        period.changing |= activity.sealed;
        period.in_progress += activity.in_progress as u64;
        period.injected += activity.injected_percent;
        period.ticks += 1;
        if *period.number.get_or_insert(number) != number {
            let ended = std::mem::replace(period, Period { number: Some(number), is_whole: true, ..Period::default() });
            self.end_period(ended, activity, &adaptation, cx);
        }
        // Reports of the last period have come by then.
        let settled = (ticks_of_a_period(cx, &adaptation) / 2).min(cx.config.silent_ticks);
        let is_settled = self.period.is_whole && self.period.ticks == settled;
        if is_settled || cx.ticks.is_multiple_of(cx.config.silent_ticks) {
            return self.change_due(activity, is_settled, cx);
        }
        None
    }

    fn end_period(&mut self, ended: Period, activity: Activity, adaptation: &Adaptation, cx: &mut Context<'_>) {
        let Period { ticks, is_whole, changing, in_progress, injected, own, rtt_micros, .. } = ended;
        let before = std::mem::replace(&mut self.committed, activity.committed);
        let measured = Measured {
            load_ppm: (in_progress * 1_000_000 / (ticks * adaptation.capacity.max(1)) + injected * 10_000 / ticks).min(LOAD_MAX_PPM),
            latency_micros: own.sum.as_micros() / own.count.max(1),
            queue_micros: own.least.as_micros(),
            reads: activity.committed.reads - before.reads,
            writes: activity.committed.writes - before.writes,
            rows: self.rows.known,
            written: activity.written,
            caught_up: activity.caught_up,
            changing,
            rtt_micros,
        };
        if is_whole && cx.is_member() {
            cx.send_members(&Note::Measured { measured });
        }
    }

    fn change_due(&mut self, activity: Activity, is_settled: bool, cx: &mut Context<'_>) -> Option<Goal> {
        let up = cx.reachable();
        let before_me = cx.configuration.bases.keys().take_while(|site| **site != cx.me).filter(|site| up.contains(site)).count();
        // Right after a start nobody has been heard of yet.
        let is_ready = cx.ticks > 2 * cx.config.silent_ticks && !activity.sealed && !activity.moving;
        if !cx.is_member() || !is_ready {
            return None;
        }
        let lately = cx.ticks.saturating_sub(cx.config.silent_ticks);
        self.joining.retain(|_, at| *at >= lately);
        let situation = Situation { up: fit(&up, cx), ..self.situation(cx)? };
        // Of a silence not all learn in the same tick: that looks like a cut link for a moment.
        let may_pass = cx.configuration.members().intersection(&up).any(|site| !situation.up.contains(site));
        let scores = if is_settled && self.has_measured(&situation.up, cx) { Scores::Compared } else { Scores::Awaited };
        let goal = situation.plan(scores).and_then(|plan| plan.goal);
        let due = if is_settled { &mut self.due.at_period } else { &mut self.due.at_once };
        *due = if goal.is_some() { *due + 1 } else { 0 };
        let goal = goal.filter(|_| *due > (before_me + usize::from(may_pass)) as u64)?;
        *due = 0;
        cx.fx.count("quad.planned");
        cx.fx.trace(|| format!("plans a change: {}", goal.why));
        Some(goal)
    }

    /// True if each of these members has measured a whole period of this configuration: what is expected of them else may be so old that sites
    /// which heard different reports would undo each other's changes for ever.
    fn has_measured(&self, up: &BTreeSet<SiteId>, cx: &Shared) -> bool {
        let has = |site: &SiteId| self.heard.get(site).is_some_and(|heard| heard.observed > self.since);
        cx.configuration.members().intersection(up).all(has)
    }

    /// What a choice of quorums follows from, where every site in reach may be a core; none if quorums do not follow what is measured.
    pub(super) fn situation<'a>(&self, cx: &'a Shared) -> Option<Situation<'a>> {
        let adaptation = cx.config.adaptation.as_ref()?;
        let (ticks, period) = (cx.ticks, ticks_of_a_period(cx, adaptation));
        let known = |heard: &Heard| {
            let load = heard.forecast.next().filter(|_| heard.at + 2 * period >= ticks);
            Known { load, latency_ms: load.and_then(|load| heard.latency.expect_ms(load)), measured: heard.measured() }
        };
        Some(Situation {
            old: &cx.configuration,
            age: ticks.saturating_sub(self.since) / period,
            adaptation,
            known: self.heard.iter().map(|(site, heard)| (*site, known(heard))).collect(),
            up: cx.reachable(),
            joining: self.joining(),
        })
    }

    /// What would change at the end of a period; none if quorums do not follow what is measured.
    pub(super) fn plan(&self, cx: &Shared) -> Option<Plan> {
        let situation = self.situation(cx)?;
        Situation { up: fit(&situation.up, cx), ..situation }.plan(Scores::Compared)
    }

    /// What is known of `site`, which has this score.
    pub(super) fn facts(&self, site: SiteId, score: Option<f64>, cx: &Shared) -> SiteFacts {
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

    /// Counts the rows here, a page each tick, or fewer where the disk is slower.
    fn count_on(&mut self, cx: &mut Context<'_>) {
        if std::mem::replace(&mut self.rows.is_loading, true) {
            return;
        }
        let everything = KeyRange::prefix(&[]);
        let range = match &self.rows.last {
            Some(last) => KeyRange::new(last.successor(), everything.end),
            None => everything,
        };
        cx.load(Job::Counted, Load::ScanStamps { range, limit: COUNTED_PAGE, bytes: PAGE_BYTES_MAX });
    }

    pub(super) fn on_counted(&mut self, loaded: Loaded) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        let RowCount { known, counted, .. } = self.rows;
        let counted = counted + rows.len() as u64;
        self.rows = if more {
            RowCount { known, counted, last: rows.last().map(|row| row.key.clone()), is_loading: false }
        } else {
            RowCount { known: counted, ..RowCount::default() }
        };
    }
}

/// How long a message was under way. A clock that was set meanwhile measures nothing.
fn took(sent: Time, now: Time) -> Option<Span> {
    (sent <= now).then(|| now.since(sent)).filter(|took| *took <= RTT_MAX)
}

/// How many ticks a period has where nothing waits.
fn ticks_of_a_period(cx: &Shared, adaptation: &Adaptation) -> u64 {
    (adaptation.period.as_micros() / cx.config.tick.as_micros().max(1)).max(1)
}

/// The sites that may be cores: those that all hear, if they are enough. Otherwise every site that is alive keeps its place, and only a core that
/// finds no quorum decides by what it hears itself.
fn fit(up: &BTreeSet<SiteId>, cx: &Shared) -> BTreeSet<SiteId> {
    let (members, quorums) = (cx.configuration.members(), &cx.configuration.quorums);
    let ears = Ears { me: cx.me, up, hears: cx.peers.hears() };
    let (alive, fit) = (ears.alive(&members), ears.heard_by_all(&members));
    let wanted = match cx.configuration.cores {
        Cores::Fixed(cores) => cores,
        Cores::Auto => quorums.cores().len(),
    };
    let found = if fit.len() >= wanted.min(alive.len()) {
        fit
    } else if quorums.cores().contains(&cx.me) && quorums.write(cx.me, up, 0).is_none() {
        up.clone()
    } else {
        alive
    };
    found.union(&up.difference(&members).copied().collect()).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::quorums::{CostWeights, Policy, ScoreWeights, Settings};
    use super::super::testing::{Bench, site};
    use super::super::{Availability, Config, INJECTED_LOAD_MAX_PERCENT, Stamped};
    use super::*;
    use rhumb_core::Timestamp;
    use rhumb_core::actor::Effect;

    fn bench() -> (Bench, Monitor) {
        (Bench::new(2, 2, Config::default()), Monitor::default())
    }

    #[test]
    fn a_load_that_no_site_can_have_is_not_heard() {
        let (mut bench, mut monitor) = bench();
        let mut heard = |load_ppm| {
            bench.step(|cx| monitor.on_measured(site(1), Measured { load_ppm, ..Measured::default() }, cx));
            (monitor.heard[&site(1)].last.load_ppm, bench.effects().len())
        };
        let injected = INJECTED_LOAD_MAX_PERCENT * 10_000;
        assert_eq!(heard(injected), (injected, 0), "what one can load a site with is believed");
        for absurd in [LOAD_MAX_PPM + 1, u64::MAX] {
            assert_eq!(heard(absurd), (injected, 1), "{absurd} ppm are counted, and nothing else");
        }
    }

    #[test]
    fn what_a_round_trip_waited_at_either_end_is_no_distance() {
        let (mut bench, mut monitor) = bench();
        // Both report how long messages wait, in either order, and one its round trip to the other.
        let mut distance = |queues: [u64; 2], micros| {
            bench.shared.ticks += 1;
            for from in if bench.shared.ticks.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
                let rtt_micros = BTreeMap::from([(site(1 - from), micros)]).into_iter().filter(|_| from == 0).collect();
                let measured = Measured { queue_micros: queues[usize::from(from)], rtt_micros, ..Measured::default() };
                bench.step(|cx| monitor.on_measured(site(from), measured, cx));
            }
            monitor.heard[&site(0)].measured().rtt_micros.get(&site(1)).copied()
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
        let (mut bench, mut monitor) = bench();
        let mut expected = |load_ppm, changing| {
            bench.step(|cx| monitor.on_measured(site(1), Measured { load_ppm, changing, ..Measured::default() }, cx));
            monitor.heard[&site(1)].forecast.next().map(|expected| expected.value)
        };
        assert_eq!(expected(900_000, true), None);
        assert_eq!(expected(100_000, false), Some(0.1));
        assert_eq!((expected(900_000, true), expected(900_000, true)), (Some(0.1), Some(0.1)), "however often");
    }

    #[test]
    fn scores_are_compared_once_all_have_measured_the_configuration() {
        let (mut bench, mut monitor) = bench();
        monitor.since = 10;
        let mut reports = |from: u16, tick: u64, changing| {
            bench.shared.ticks = tick;
            let measured = Measured { load_ppm: 500_000, changing, ..Measured::default() };
            bench.step(|cx| monitor.on_measured(site(from), measured, cx));
            monitor.has_measured(&BTreeSet::from([0, 1].map(site)), &bench.shared)
        };
        assert!(!reports(0, 9, false) && !reports(1, 9, false), "that was another configuration");
        assert!(!reports(0, 20, true) && !reports(1, 20, true), "it changed in that period");
        assert!(!reports(0, 30, false) && reports(1, 30, false));
    }

    #[test]
    fn a_period_lasts_as_long_however_late_ticks_come() {
        let settings = Settings { policy: Policy::Quad, cores: 1, score: ScoreWeights::default(), cost: CostWeights::default() };
        let (period, availability) = (Span::from_secs(10), Availability::default());
        let adaptation = Some(Adaptation { period, capacity: 100, settings, auto: false, availability });
        let told = |tick_ms: u64| {
            let mut bench = Bench::new(1, 1, Config { adaptation: adaptation.clone(), ..Config::default() });
            let (mut monitor, mut told) = (Monitor::default(), Vec::new());
            for now_ms in (1..=120).map(|tick| tick * tick_ms).take_while(|now_ms| *now_ms <= 35_000) {
                bench.shared.now = Time::ZERO + Span::from_millis(now_ms);
                let activity = Activity { injected_percent: 50, ..Activity::default() };
                assert_eq!(bench.step(|cx| monitor.tick(activity, cx)), None, "there is one site");
                for effect in bench.effects() {
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
        let (mut bench, mut monitor) = bench();
        for more in [true, false] {
            bench.step(|cx| monitor.count_on(cx));
            assert_eq!(bench.effects().len(), 1);
            bench.step(|cx| monitor.count_on(cx));
            assert_eq!(bench.effects().len(), 0, "the disk has not answered yet");
            let row = rhumb_core::Row { key: "k".into(), version: Timestamp::ZERO, value: None };
            monitor.on_counted(Loaded::Rows { rows: vec![row], more });
        }
        assert_eq!(monitor.rows.known, 2);
    }

    #[test]
    fn commits_count_for_the_period_in_which_they_come() {
        let (mut bench, mut monitor) = bench();
        let settings = Settings { policy: Policy::Quad, cores: 2, score: ScoreWeights::default(), cost: CostWeights::default() };
        let availability = Availability::default();
        bench.shared.config.adaptation =
            Some(Adaptation { period: Span::from_secs(10), capacity: 100, settings, auto: false, availability });
        let mut told = Vec::new();
        for (second, reads) in [(1, 3), (9, 5), (11, 8), (21, 9)] {
            bench.shared.now = Time::ZERO + Span::from_secs(second);
            let activity = Activity { committed: Commits { reads, writes: 2 }, ..Activity::default() };
            bench.step(|cx| monitor.tick(activity, cx));
            told.extend(bench.effects().into_iter().find_map(|effect| match effect {
                Effect::Send { note: Stamped { said: Note::Measured { measured }, .. }, .. } => Some((measured.reads, measured.writes)),
                _ => None,
            }));
        }
        assert_eq!(told, [(1, 0)], "of the second period; the first is not a whole one");
    }
}
