//! Which configuration is to come, from what was measured: a function of the members' last reports.
//!
//! ```text
//!   a core is not heard by all ──────────────────────▶ its place is filled, at once
//!   a site asks to join ─────────────────────────────▶ it becomes a slave
//!   a period ends: fewer cores than are asked for ───▶ as many as are
//!   a period ends: scores, cores, assignment ────────▶ if the gain is worth the reconciliation and the interruption
//! ```
//!
//! Source: section III-B. The paper's QuAD-Manager also measures and leads two-phase commit (IV): here `monitor/` and `mover.rs` do. A change interrupts all sites, which equation 10 does not count, so that noise alone would move roles
//! to and fro. Here a gain must be a named share of the score that there is, and be one even if the forecasts err as they have erred
//! so far, and against it: those who would be asked more have that much more to do than expected, those who would be asked less that much less.

use super::config::{Adaptation, Availability};
use super::configuration::{Cause, Configuration, Cores, Goal};
use super::message::Measured;
use super::quorums::{Demand, Estimate, Kappa, Measures, Quorums, Scoring, Settings, Verdict};
use super::quorums::{asked_more_and_less, kappa_between, mean_score, reconciliation_cost, weigh};
use rhumb_commit::reason::Reason;
use rhumb_core::SiteId;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a site.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// The load expected in the next period, over its capacity; none if it has not run for a whole one lately.
    pub(super) load: Option<Estimate>,
    /// The latency to expect under it, milliseconds.
    pub(super) latency_ms: Option<Estimate>,
    /// Its last report.
    pub(super) measured: Measured,
}

impl Known {
    /// How busy it will be.
    fn busy(&self, scoring: Scoring) -> Option<Estimate> {
        match scoring {
            Scoring::Load => self.load,
            Scoring::Latency => self.latency_ms,
        }
    }
}

/// Gains below this share of the score that there is are not worth an interruption.
pub const GAIN_MIN: f64 = 0.05;

/// What is due, and how it was weighed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The change that is due; none: all stays as it is.
    pub goal: Option<Goal>,
    /// For people: why it is due, or why nothing is.
    pub why: Reason,
    /// The quorums that the measures ask for.
    pub best: Quorums,
    /// The score of each site, by what is expected.
    pub scores: BTreeMap<SiteId, f64>,
    /// The mean score of all quorums that there are (equation 9), if what is expected errs against the change.
    pub before: f64,
    /// What they gain, and what the change costs (equation 10), likewise.
    pub verdict: Verdict,
    /// Lower gains are not worth an interruption.
    pub gain_min: f64,
    /// Why so many cores, if their number follows from what is measured.
    pub kappa: Option<Kappa>,
}

/// What a choice of quorums follows from.
pub(super) struct Situation<'a> {
    /// The configuration that there is.
    pub(super) old: &'a Configuration,
    /// So many periods it has lasted.
    pub(super) age: u64,
    pub(super) adaptation: &'a Adaptation,
    pub(super) known: BTreeMap<SiteId, Known>,
    /// The sites that may be cores.
    pub(super) up: BTreeSet<SiteId>,
    /// The sites that ask to join.
    pub(super) joining: BTreeSet<SiteId>,
}

/// Whether scores are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scores {
    /// A period has ended, and all have measured it.
    Compared,
    /// Some of the sites' reports are older than the configuration, or still to come.
    Awaited,
}

impl Situation<'_> {
    /// What is due; none if nothing can be planned from what is known.
    pub(super) fn plan(&self, comparison: Scores) -> Option<Plan> {
        let Situation { old, age, adaptation, known, up, joining } = self;
        let newcomers: BTreeSet<SiteId> =
            joining.iter().copied().filter(|site| up.contains(site) && !old.bases.contains_key(site)).collect();
        let members: BTreeSet<SiteId> = old.members().union(&newcomers).copied().collect();
        let Best { failed, measures, kappa, settings, quorums: best } = self.best(&members, old.cores)?;
        let scored =
            |measures: &Measures| measures.sites().iter().copied().zip(settings.scores(measures)).collect::<BTreeMap<SiteId, f64>>();
        let (more, less) = asked_more_and_less(&old.quorums, &best);
        let against = |site: &SiteId| {
            busy(known, &failed, adaptation, site).map(|Estimate { value, error }| match (more.contains(site), less.contains(site)) {
                (true, _) => value + error,
                (_, true) => (value - error).max(0.0),
                _ => value,
            })
        };
        let against = scored(&self::measures(&members, known, against)?);
        let before = mean_score(&old.quorums, &against);
        let verdict = weigh(&old.quorums, &best, &against, &costs(old, *age, &members, known));
        let gain_min = GAIN_MIN * before;
        let gone: Vec<SiteId> = old.quorums.cores().iter().copied().filter(|core| failed.contains(core)).collect();
        let is_due = || {
            if !newcomers.is_empty() {
                return Ok((Cause::Join, Reason::list(&newcomers).then(" joins")));
            }
            if best == old.quorums {
                return Err("the quorums are those that the measures ask for".into());
            }
            if !gone.is_empty() && settings.policy.replaces_failed() {
                let is_better = !best.cores().iter().any(|core| failed.contains(core));
                let silent = Reason::list(&gone).then(" is silent to some or all");
                return if is_better { Ok((Cause::Silence, silent)) } else { Err(silent.then(", and no site is up to take its place")) };
            }
            if comparison == Scores::Awaited || !settings.policy.is_adaptive() {
                return Err("scores are not compared now".into());
            }
            let (wanted, there) = (best.cores().len(), old.quorums.cores().len());
            if wanted > there {
                return Ok((Cause::Cores, format!("{wanted} cores are to be there, and {there} are").into()));
            }
            let said = format!("the mean score rises by {:.3}, at a cost of {:.3}", verdict.gain, verdict.cost);
            if verdict.is_worth_it() && verdict.gain > gain_min {
                Ok((Cause::Gain, said.into()))
            } else {
                Err(format!("{said}; a change must gain more than it costs, and more than {gain_min:.3}").into())
            }
        };
        let (goal, why) = match is_due() {
            Ok((cause, why)) => {
                let (quorums, lost) = (best.clone(), BTreeSet::new());
                (Some(Goal { quorums, members, lost, cores: None, cause, why: why.clone() }), why)
            }
            Err(why) => (None, why),
        };
        Some(Plan { goal, why, scores: scored(&measures), best, before, verdict, gain_min, kappa })
    }

    /// The change to so many cores, by the same measures.
    fn plan_cores(&self, cores: Cores) -> Option<Goal> {
        let (members, lost, why) = (self.old.members(), BTreeSet::new(), format!("cores = {cores} was asked for").into());
        let quorums = self.best(&members, cores)?.quorums;
        Some(Goal { quorums, members, lost, cores: Some(cores), cause: Cause::Cores, why })
    }

    /// The quorums that the measures ask for among these members; none if nothing is known of them.
    pub(super) fn best(&self, members: &BTreeSet<SiteId>, cores: Cores) -> Option<Best> {
        let Situation { old, adaptation, known, up, .. } = self;
        let wanted = Wanted { cores, there: old.quorums.cores().len() };
        let failed: BTreeSet<SiteId> = members.difference(up).copied().collect();
        let measures = measures(members, known, |site| busy(known, &failed, adaptation, site).map(|expected| expected.value))?;
        let (cores, kappa) = self::cores(wanted, adaptation, members.len() - failed.len(), known);
        let settings = Settings { cores, ..adaptation.settings };
        Some(Best { quorums: settings.quorums(&measures, &failed), settings, measures, kappa, failed })
    }
}

/// How many cores somebody asked for, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    cores: Cores,
    there: usize,
}

/// The quorums that the measures ask for, and what they follow from.
pub(super) struct Best {
    pub(super) quorums: Quorums,
    settings: Settings,
    measures: Measures,
    kappa: Option<Kappa>,
    /// The members that are not up.
    failed: BTreeSet<SiteId>,
}

/// The change to so many cores that an operator asks for; none if there are to be so many already.
pub(super) fn with_cores(cores: Cores, situation: Option<Situation<'_>>, old: &Configuration) -> Result<Option<Goal>, Reason> {
    if let Some(error) = cores.validation_error(old.bases.len()) {
        return Err(error.into());
    }
    if cores == old.cores {
        return Ok(None);
    }
    let goal = situation.and_then(|situation| situation.plan_cores(cores));
    goal.map(Some).ok_or_else(|| "quorums do not follow what is measured here".into())
}

/// How busy a site will be; none if that is not known, or it is not up.
fn busy(known: &BTreeMap<SiteId, Known>, failed: &BTreeSet<SiteId>, adaptation: &Adaptation, site: &SiteId) -> Option<Estimate> {
    known.get(site).filter(|_| !failed.contains(site)).and_then(|known| known.busy(adaptation.settings.score.scoring))
}

/// What it costs to have each site take over what it lacks, should it be promoted: its share of all rows.
fn costs(old: &Configuration, age: u64, members: &BTreeSet<SiteId>, known: &BTreeMap<SiteId, Known>) -> BTreeMap<SiteId, f64> {
    let written = old.quorums.cores().iter().filter_map(|core| known.get(core)).map(|known| known.measured.written).max().unwrap_or(0);
    let cost = |site: &SiteId| {
        let rows = known.get(site).map_or(0, |known| known.measured.rows).max(written);
        let is_behind = old.bases.get(site) != Some(&old.epoch) && known.get(site).is_none_or(|known| !known.measured.caught_up);
        let cost = if is_behind { 1.0 } else { reconciliation_cost(written as usize, rows as usize) };
        // A reconciliation comes once, and its gain with every period of the new configuration: as many are expected as the old one had.
        cost / age.max(1) as f64
    };
    members.iter().map(|site| (*site, cost(site))).collect()
}

/// How many cores there are to be; and why, if that follows from what is measured. `sites`: so many members are up.
fn cores(wanted: Wanted, adaptation: &Adaptation, sites: usize, known: &BTreeMap<SiteId, Known>) -> (usize, Option<Kappa>) {
    if let Cores::Fixed(cores) = wanted.cores {
        return (cores, None);
    }
    let sum = |of: fn(&Measured) -> u64| known.values().map(|known| of(&known.measured) as f64).sum::<f64>();
    let (reads, writes) = (sum(|measured| measured.reads), sum(|measured| measured.writes));
    let loads = || known.values().filter_map(|known| known.load);
    let (load, error): (f64, f64) = (loads().map(|load| load.value).sum(), loads().map(|load| load.error).sum());
    let demand = |load: f64| {
        let share = |of: f64| if of > 0.0 { load.max(0.0) * of / (reads + writes) } else { 0.0 };
        let Availability { wanted: availability, of_site: site_availability } = adaptation.availability;
        Demand { availability, site_availability, reads: share(reads), writes: share(writes) }
    };
    let kappa = kappa_between(sites, demand(load - error), demand(load + error), wanted.there);
    (kappa.cores, Some(kappa))
}

/// `busy`: how busy each site is, in whatever unit.
fn measures(members: &BTreeSet<SiteId>, known: &BTreeMap<SiteId, Known>, busy: impl Fn(&SiteId) -> Option<f64>) -> Option<Measures> {
    let reported = |from: &SiteId, to: &SiteId| known.get(from).and_then(|known| known.measured.rtt_micros.get(to)).copied();
    let between = |from: &SiteId, to: &SiteId| reported(from, to).or_else(|| reported(to, from));
    let farthest = members.iter().flat_map(|from| members.iter().filter_map(move |to| between(from, to))).max().unwrap_or(0);
    // Sites that have not reported yet are rated worst.
    let rtt_ms = |from: &SiteId, to: &SiteId| if from == to { 0.0 } else { between(from, to).unwrap_or(farthest) as f64 / 1_000.0 };
    let rtt_ms: Vec<Vec<f64>> = members.iter().map(|from| members.iter().map(|to| rtt_ms(from, to)).collect()).collect();
    Measures::new(members.iter().copied().collect(), members.iter().map(busy).collect(), &rtt_ms).ok()
}

#[cfg(test)]
mod tests {
    use super::super::Epoch;
    use super::super::quorums::{CostWeights, Policy, ScoreWeights};
    use super::super::testing::{set, site};
    use super::*;
    use rhumb_core::Span;

    fn adaptation() -> Adaptation {
        let settings = Settings { policy: Policy::Quad, cores: 2, score: ScoreWeights::default(), cost: CostWeights::default() };
        Adaptation { period: Span::from_secs(10), capacity: 1_000, settings, auto: false, availability: Availability::default() }
    }

    fn expected(value: f64) -> Option<Estimate> {
        Some(Estimate { value, error: 0.0 })
    }

    /// Sites as far from one another as all, with these loads, a thousand rows, ten of which were written.
    fn known(loads: &[f64]) -> BTreeMap<SiteId, Known> {
        let rtt_micros: BTreeMap<SiteId, u64> = (0..loads.len() as u16).map(|n| (site(n), 40_000)).collect();
        let measured = Measured { rows: 1_000, written: 10, caught_up: true, rtt_micros, ..Measured::default() };
        let known = |load: &f64| Known { load: expected(*load), latency_ms: None, measured: measured.clone() };
        loads.iter().enumerate().map(|(n, load)| (site(n as u16), known(load))).collect()
    }

    fn first(loads: &[f64]) -> Configuration {
        let members = (0..loads.len() as u16).map(site).collect();
        let measures = measures(&members, &known(loads), |site| Some(loads[site.region.0 as usize])).expect("sound");
        Configuration::first(adaptation().settings.quorums(&measures, &set(&[])))
    }

    /// That of these sites, all up, in the first period.
    fn situation<'a>(old: &'a Configuration, adaptation: &'a Adaptation, known: BTreeMap<SiteId, Known>) -> Situation<'a> {
        let up = known.keys().copied().collect();
        Situation { old, age: 1, adaptation, known, up, joining: set(&[]) }
    }

    fn planned(old: &Configuration, loads: &[f64], up: &[u16]) -> Option<Goal> {
        Situation { up: set(up), ..situation(old, &adaptation(), known(loads)) }.plan(Scores::Compared)?.goal
    }

    #[test]
    fn a_core_that_is_loaded_makes_place_for_a_slave_that_is_not() {
        let old = first(&[0.1, 0.1, 0.5, 0.9]);
        assert_eq!(old.quorums.cores(), [site(0), site(1)]);
        let goal = planned(&old, &[0.9, 0.1, 0.1, 0.9], &[0, 1, 2, 3]).expect("the load was swapped");
        assert_eq!(goal.quorums.cores(), [site(1), site(2)]);
        let then = Configuration { quorums: goal.quorums, ..old };
        assert_eq!(planned(&then, &[0.9, 0.1, 0.1, 0.9], &[0, 1, 2, 3]), None, "once");
    }

    #[test]
    fn noise_moves_nobody() {
        let old = first(&[0.50, 0.51, 0.52, 0.53]);
        for noise in 0..200_u32 {
            let load = |n: u32| 0.5 + 0.01 * f64::from((noise * 7 + n * 13) % 5);
            assert_eq!(planned(&old, &[load(0), load(1), load(2), load(3)], &[0, 1, 2, 3]), None);
        }
    }

    #[test]
    fn a_difference_that_may_be_an_error_moves_nobody() {
        let old = first(&[0.1, 0.1, 0.5, 0.9]);
        let planned = |error: f64| {
            let mut known = known(&[0.3, 0.1, 0.2, 0.9]);
            known.values_mut().for_each(|known| known.load.iter_mut().for_each(|load| load.error = error));
            situation(&old, &adaptation(), known).plan(Scores::Compared)?.goal
        };
        assert!(planned(0.02).is_some());
        assert_eq!(planned(0.06), None, "0.24 and 0.26 are as likely");
    }

    #[test]
    fn what_costs_more_than_it_gains_is_not_done() {
        let old = first(&[0.1, 0.1, 0.5, 0.9]);
        let mut dear = known(&[0.9, 0.1, 0.1, 0.9]);
        dear.values_mut().for_each(|known| known.measured.written = 990);
        let adaptation = adaptation();
        let planned = |age| {
            let situation = Situation { age, ..situation(&old, &adaptation, dear.clone()) };
            situation.plan(Scores::Compared).expect("it can be weighed")
        };
        let not_yet = planned(1);
        assert_eq!(not_yet.goal, None);
        assert!(not_yet.verdict.gain > not_yet.gain_min && not_yet.verdict.gain < not_yet.verdict.cost, "{not_yet:?}");
        assert!(not_yet.why.to_string().contains("must gain more than it costs"), "{}", not_yet.why);
        assert!(planned(20).goal.is_some(), "what has lasted for long is expected to last again");
    }

    #[test]
    fn a_silent_core_is_replaced_and_a_silent_slave_is_not() {
        let old = first(&[0.1, 0.1, 0.5, 0.9]);
        let goal = planned(&old, &[0.1, 0.1, 0.5, 0.9], &[1, 2, 3]).expect("a core is silent");
        assert_eq!((goal.quorums.cores(), goal.why.to_string().as_str()), (&[site(1), site(2)][..], "r0.0 is silent to some or all"));
        assert_eq!(goal.members, set(&[0, 1, 2, 3]), "it is a member still");
        assert_eq!(planned(&old, &[0.1, 0.1, 0.5, 0.9], &[0, 1, 2]), None);
    }

    #[test]
    fn a_newcomer_is_a_slave_until_it_is_scored() {
        let old = first(&[0.1, 0.1, 0.5]);
        let mut with = known(&[0.1, 0.1, 0.5]);
        with.insert(site(3), Known::default());
        let adaptation = adaptation();
        let situation = Situation { joining: set(&[3]), ..situation(&old, &adaptation, with) };
        let goal = situation.plan(Scores::Awaited).and_then(|plan| plan.goal).expect("it joins");
        assert_eq!((goal.quorums.cores(), goal.members), (&[site(0), site(1)][..], set(&[0, 1, 2, 3])));
        let bases = goal.quorums.members().into_iter().map(|site| (site, Epoch::FIRST)).collect();
        let then = Configuration { quorums: goal.quorums, bases, ..old };
        let goal = planned(&then, &[0.9, 0.1, 0.5, 0.0], &[0, 1, 2, 3]).expect("it is the strongest");
        assert_eq!(goal.quorums.cores(), [site(3), site(1)]);
    }

    #[test]
    fn cores_are_as_many_as_availability_takes() {
        let adaptation = Adaptation { availability: Availability { wanted: 0.9999, of_site: 0.99 }, ..adaptation() };
        let old = Configuration { cores: Cores::Auto, ..first(&[0.1, 0.1, 0.1, 0.1, 0.1]) };
        let plan = situation(&old, &adaptation, known(&[0.1; 5])).plan(Scores::Compared).expect("it can be planned");
        assert_eq!(plan.kappa.map(|kappa| kappa.cores), Some(5), "three cores of which each is up 99 % are 99.97 %");
        let goal = plan.goal.expect("two cores are too few");
        assert_eq!((goal.quorums.cores().len(), goal.cause), (5, Cause::Cores));
    }

    #[test]
    fn a_load_about_what_cores_can_bear_does_not_move_their_number() {
        let adaptation = Adaptation { availability: Availability { wanted: 0.98, of_site: 0.99 }, ..adaptation() };
        let planned = |there: &[f64], load: f64, error: f64| {
            let mut known = known(&[load; 5]);
            known.values_mut().for_each(|known| {
                known.load = Some(Estimate { value: load, error });
                known.measured.reads = 10;
            });
            let old = Configuration { cores: Cores::Auto, ..first(there) };
            let there = old.quorums.cores().len();
            cores(Wanted { cores: old.cores, there }, &adaptation, 5, &known).0
        };
        let two = [0.1, 0.1, 0.5, 0.9, 0.9];
        assert_eq!(planned(&two, 0.1, 0.0), 1, "half of what one can do");
        assert_eq!(planned(&two, 0.1, 0.15), 2, "or more than that: as many as there are");
        assert_eq!(planned(&two, 0.28, 0.0), 3, "1.4 times what one can do");
        assert_eq!(planned(&two, 0.28, 0.1), 2, "or less than that");
    }

    #[test]
    fn the_number_of_cores_is_that_of_the_configuration() {
        let old = Configuration { cores: Cores::Fixed(4), ..first(&[0.1; 5]) };
        let goal = planned(&old, &[0.1; 5], &[0, 1, 2, 3, 4]).expect("two are there");
        assert_eq!((goal.quorums.cores().len(), goal.cores), (4, None), "as many as before are to be there");
        let adaptation = adaptation();
        let asked = |cores| with_cores(cores, Some(situation(&old, &adaptation, known(&[0.1; 5]))), &old);
        let goal = asked(Cores::Fixed(1)).expect("so many can be").expect("so many are not there");
        assert_eq!((goal.quorums.cores().len(), goal.cores, goal.cause), (1, Some(Cores::Fixed(1)), Cause::Cores));
        assert_eq!(asked(Cores::Fixed(4)), Ok(None), "so many are to be there already");
        assert_eq!(asked(Cores::Fixed(6)), Err("6 cores are asked for; 5 sites can have 1 to 5".into()));
        assert_eq!(with_cores(Cores::Fixed(1), None, &old), Err("quorums do not follow what is measured here".into()));
    }
}
