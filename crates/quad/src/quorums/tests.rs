//! Quorums of every policy under failures: that they intersect, and that assignments are the cheapest.

use super::*;
use proptest::prelude::*;
use rhumb_core::{Rng, SiteId};
use std::collections::{BTreeMap, BTreeSet};

fn site(n: usize) -> SiteId {
    SiteId::new(n as u16, 0)
}

fn sites(n: usize) -> Vec<SiteId> {
    (0..n).map(site).collect()
}

fn set(of: &[usize]) -> BTreeSet<SiteId> {
    of.iter().copied().map(site).collect()
}

fn measures(load: &[f64], rtt_ms: &[&[f64]]) -> Measures {
    let rtt_ms: Vec<Vec<f64>> = rtt_ms.iter().map(|row| row.to_vec()).collect();
    Measures::new(sites(load.len()), load.iter().copied().map(Some).collect(), &rtt_ms).expect("sound measures")
}

/// The paper's example: five sites, of which the first three are nearest to all.
fn five() -> Measures {
    measures(
        &[0.2, 0.2, 0.2, 0.8, 0.8],
        &[
            &[0.0, 10.0, 10.0, 20.0, 60.0],
            &[10.0, 0.0, 10.0, 20.0, 20.0],
            &[10.0, 10.0, 0.0, 60.0, 20.0],
            &[20.0, 20.0, 60.0, 0.0, 80.0],
            &[60.0, 20.0, 20.0, 80.0, 0.0],
        ],
    )
}

fn settings(policy: Policy, cores: usize) -> Settings {
    Settings { policy, cores, score: ScoreWeights::default(), cost: CostWeights::default() }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn a_score_is_that_of_equations_two_and_three() {
    let two = measures(&[0.5, 1.0, 0.0], &[&[0.0, 30.0, 40.0], &[30.0, 0.0, 0.0], &[40.0, 0.0, 0.0]]);
    // Norms of the rows: 50, 30, 40.
    let expected = [0.4 * (1.0 - 1.0) + 0.6 * 0.5, 0.4 * (1.0 - 0.6), 0.4 * (1.0 - 0.8) + 0.6 * 1.0];
    let scores = scores(&two, ScoreWeights { rtt: 0.4, load: 0.6, scoring: Scoring::Load });
    assert!(scores.iter().zip(expected).all(|(score, expected)| close(*score, expected)), "{scores:?}");
    assert_eq!(strongest(&two, &scores, 2), [2, 0]);
}

#[test]
fn nothing_is_divided_by_a_maximum_of_zero() {
    let idle = measures(&[0.0, 0.0], &[&[0.0, 0.0], &[0.0, 0.0]]);
    assert_eq!(scores(&idle, ScoreWeights::default()), [1.0, 1.0]);
    assert_eq!(assign(&idle, &[0], &[1], CostWeights::default()), [[0]]);
    let alone = measures(&[0.3], &[&[0.0]]);
    assert_eq!(scores(&alone, ScoreWeights { rtt: 1.0, load: 1.0, scoring: Scoring::Load }), [1.0]);
}

#[test]
fn a_site_that_has_not_run_for_a_period_is_no_core() {
    let rtt: Vec<Vec<f64>> = vec![vec![0.0; 3]; 3];
    let joined = Measures::new(sites(3), vec![Some(0.9), Some(0.8), None], &rtt).expect("sound");
    assert_eq!(settings(Policy::Quad, 2).quorums(&joined, &BTreeSet::new()).cores(), [site(1), site(0)]);
    let first = Measures::new(sites(3), vec![None; 3], &rtt).expect("sound");
    assert!((0..3).all(|site| first.is_scored(site)), "before the first period none is behind the others");
}

#[test]
fn unsound_measures_are_refused() {
    let matrix = vec![vec![0.0, 1.0], vec![1.0, 0.0]];
    let refused = |sites: &[usize], load: Vec<Option<f64>>, rtt: &[Vec<f64>]| {
        Measures::new(sites.iter().copied().map(site).collect(), load, rtt).expect_err("unsound")
    };
    assert_eq!(refused(&[], vec![], &[]), MeasureError::Count(0));
    assert_eq!(refused(&[1, 0], vec![None; 2], &matrix), MeasureError::Order(site(0)));
    assert_eq!(refused(&[0, 1], vec![None; 3], &matrix), MeasureError::Shape);
    assert_eq!(refused(&[0, 1], vec![Some(f64::NAN), None], &matrix), MeasureError::Load(site(0)));
    assert_eq!(refused(&[0, 1], vec![None; 2], &[vec![0.0, -1.0], vec![1.0, 0.0]]), MeasureError::Rtt(site(0), site(1)));
}

#[test]
fn a_slave_has_a_choice_of_the_three_pairs_of_three_cores() {
    assert_eq!(majorities(&[0, 1, 2]), [[0, 1], [0, 2], [1, 2]]);
    let assigned = assign(&five(), &[0, 1, 2], &[3, 4], CostWeights::default());
    assert_eq!(assigned, [[0, 1], [1, 2]], "each the pair without the core that is far from it");
}

#[test]
fn slaves_are_spread_over_majorities_unless_that_counts_nothing() {
    let rtt: Vec<Vec<f64>> = (0..6).map(|from| (0..6).map(|to| if from == to { 0.0 } else { 10.0 }).collect()).collect();
    let alike = Measures::new(sites(6), vec![Some(0.5); 6], &rtt).expect("sound");
    let distinct = |weights| assign(&alike, &[0, 1, 2], &[3, 4, 5], weights).into_iter().collect::<BTreeSet<_>>().len();
    assert_eq!(distinct(CostWeights::default()), 3);
    // A pair that is a little nearer takes all slaves when balance counts nothing.
    let distance = |from: usize, to: usize| match (from.min(to), from.max(to)) {
        (one, other) if one == other => 0.0,
        (2, 3..) => 11.0,
        _ => 10.0,
    };
    let near: Vec<Vec<f64>> = (0..6).map(|from| (0..6).map(|to| distance(from, to)).collect()).collect();
    let nearer = Measures::new(sites(6), vec![Some(0.5); 6], &near).expect("sound");
    assert_eq!(assign(&nearer, &[0, 1, 2], &[3, 4, 5], CostWeights { balance: 0.0, ..CostWeights::default() }), vec![vec![0, 1]; 3]);
    assert_eq!(assign(&nearer, &[0, 1, 2], &[3, 4, 5], CostWeights::default()).into_iter().collect::<BTreeSet<_>>().len(), 3);
}

/// The least total cost by trying everything: the penalty of a majority's n-th slave is that of equation 7.
fn cheapest(measures: &Measures, cores: &[usize], slaves: &[usize], weights: CostWeights) -> f64 {
    let majorities = majorities(cores);
    let mut best = f64::INFINITY;
    for code in 0..majorities.len().pow(slaves.len() as u32) {
        let chosen: Vec<Vec<usize>> =
            (0..slaves.len()).map(|slave| majorities[code / majorities.len().pow(slave as u32) % majorities.len()].clone()).collect();
        best = best.min(total(measures, slaves, &chosen, weights));
    }
    best
}

fn total(measures: &Measures, slaves: &[usize], chosen: &[Vec<usize>], weights: CostWeights) -> f64 {
    let mut taken: BTreeMap<&[usize], usize> = BTreeMap::new();
    let mut sum = 0.0;
    for (slave, cores) in slaves.iter().zip(chosen) {
        let far = cores.iter().map(|core| measures.relative_rtt(*slave, *core)).fold(0.0, f64::max);
        let busy = cores.iter().map(|core| measures.relative_load(*core)).fold(0.0, f64::max);
        let before = taken.entry(cores).or_default();
        let penalty = (*before as f64 + 1.0 - slaves.len() as f64).exp();
        *before += 1;
        sum += weights.communication * far + weights.load * measures.relative_load(*slave) * busy + weights.balance * penalty;
    }
    sum
}

#[test]
fn the_factor_that_erred_least_speaks() {
    let mut constant = Forecast::default();
    assert_eq!((constant.next(), constant.alpha()), (None, None));
    for _ in 0..3 {
        constant.observe(0.4);
    }
    assert!(close(constant.next().expect("three periods").value, 0.4));
    // A load that rises all the time: the quickest factor errs least.
    let mut ramp = Forecast::default();
    for load in [1.0, 2.0, 3.0] {
        ramp.observe(load);
    }
    assert_eq!(ramp.alpha(), Some(0.9));
    assert!(close(ramp.next().expect("periods").value, 0.9 * 3.0 + 0.1 * (0.9 * 2.0 + 0.1)), "equation 8, twice");
    // One that alternates: the slowest does.
    let mut alternating = Forecast::default();
    for period in 0..40 {
        alternating.observe(f64::from(period % 2));
    }
    assert_eq!(alternating.alpha(), Some(0.1));
}

/// A load that is noise: between half and three halves of `mean`.
fn noise(rng: &mut Rng, mean: f64) -> f64 {
    mean * (0.5 + rng.below(1_001) as f64 / 1_000.0)
}

#[test]
fn a_load_that_changed_for_good_is_expected_after_two_periods_however_long_there_was_noise() {
    let (mut forecast, mut rng) = (Forecast::default(), Rng::seeded(1));
    for _ in 0..700 {
        forecast.observe(noise(&mut rng, 0.1));
    }
    let Estimate { value, error } = forecast.next().expect("periods");
    assert!((0.08..0.12).contains(&value) && (0.02..0.03).contains(&error), "{value} {error}");
    forecast.observe(0.4);
    assert!(forecast.next().is_some_and(|next| next.value < 0.16), "one period may be a burst");
    forecast.observe(0.4);
    let after = forecast.next().expect("periods");
    assert!(close(after.value, 0.4) && after.error < 0.03, "{after:?}");
    // A burst that ends is none.
    let mut burst = Forecast::default();
    for load in [0.1, 0.1, 0.1, 0.1, 0.1, 0.9, 0.1, 0.9, 0.1] {
        burst.observe(load);
    }
    assert!(burst.next().is_some_and(|next| next.error > 0.2), "it counts as an error");
}

#[test]
fn a_distance_is_another_one_after_two_periods_that_say_so() {
    let sure = |micros| HeardDistance { micros, margin: 0 };
    let mut distance = Distance::new(sure(40_000));
    let mut heard = |micros| {
        distance.observe(sure(micros));
        distance.micros()
    };
    assert_eq!([41_000, 43_900, 36_100, 60_000, 40_500].map(&mut heard), [40_000; 5], "noise, and a burst");
    assert_eq!([60_000, 80_000, 81_000].map(&mut heard), [40_000, 40_000, 80_000], "it rose, and then stayed");
    let mut near = Distance::new(sure(200));
    [600, 650, 100, 90].into_iter().for_each(|micros| near.observe(sure(micros)));
    assert_eq!(near.micros(), 200, "what differs by less than a step of the network is the same");
}

#[test]
fn what_a_busy_site_hides_is_no_other_distance() {
    let mut distance = Distance::new(HeardDistance { micros: 30_000, margin: 20_000 });
    let mut heard = |micros, margin| {
        distance.observe(HeardDistance { micros, margin });
        distance.micros()
    };
    assert_eq!([(45_000, 20_000), (46_000, 5_000)].map(|(micros, margin)| heard(micros, margin)), [30_000; 2], "either may be wrong");
    assert_eq!(heard(22_500, 2_000), 22_500, "once it is not busy it tells at once");
    assert_eq!([(30_000, 20_000), (31_000, 20_000)].map(|(micros, margin)| heard(micros, margin)), [22_500; 2], "and keeps that");
    assert_eq!([(90_000, 20_000), (95_000, 20_000)].map(|(micros, margin)| heard(micros, margin)), [22_500, 90_000], "as long as it can");
}

#[test]
fn latency_is_expected_on_a_line_through_the_periods() {
    let expected = |model: &LatencyModel, load| model.expect_ms(Estimate { value: load, error: 0.0 }).map(|expected| expected.value);
    let mut model = LatencyModel::default();
    assert_eq!(expected(&model, 0.5), None);
    model.observe(0.2, 14.0);
    assert_eq!(expected(&model, 0.9), Some(14.0), "one period tells no slope");
    model.observe(0.6, 22.0);
    assert!(close(expected(&model, 0.9).expect("two periods"), 28.0));
    let doubtful = model.expect_ms(Estimate { value: 0.9, error: 0.1 }).expect("two periods");
    assert!(close(doubtful.error, 8.0 + 20.0 * 0.1), "what the line was out by, and what the load may be: {doubtful:?}");
    let mut noise = LatencyModel::default();
    noise.observe(0.2, 20.0);
    noise.observe(0.6, 10.0);
    assert_eq!(expected(&noise, 0.9), Some(15.0), "less latency under more load is noise");
    for period in 0..2 * LATENCY_WINDOW {
        model.observe(period as f64, 5.0);
    }
    assert!(close(expected(&model, 0.9).expect("many periods"), 5.0), "what is long ago is forgotten");
    let mut slowed = LatencyModel::default();
    for latency in [5.0, 5.0, 5.0, 5.0, 5.0, 50.0, 50.0] {
        slowed.observe(0.3, latency);
    }
    assert!(expected(&slowed, 0.3).is_some_and(|latency| latency > 45.0), "two periods in a row: the machine is another one");
}

#[test]
fn as_many_cores_as_availability_and_load_ask_for() {
    let demand = Demand { availability: 0.999, site_availability: 0.99, reads: 0.2, writes: 0.2 };
    let few = kappa(8, demand);
    assert_eq!((few.cores, few.reason), (3, Reason::Availability));
    assert!(close(few.available, 0.99_f64.powi(3) + 3.0 * 0.99_f64.powi(2) * 0.01));
    assert_eq!(kappa(8, Demand { availability: 0.9, ..demand }).cores, 1);
    let busy = kappa(8, Demand { reads: 1.25, ..demand });
    assert_eq!((busy.cores, busy.reason), (5, Reason::Load), "three serve two thirds of the reads each, five three fifths");
    assert!(busy.load <= 1.0);
    let out_of_reach = kappa(2, demand);
    assert_eq!((out_of_reach.cores, out_of_reach.reason), (1, Reason::Unreachable), "a majority of two is both");
    assert_eq!(few.to_string(), "3 cores: the fewest of which a majority is up often enough (99.9702 %)");
}

#[test]
fn a_configuration_is_kept_unless_another_gains_more_than_its_reconciliation_costs() {
    let old = settings(Policy::Quad, 3).quorums(&five(), &BTreeSet::new());
    assert_eq!(old.cores().iter().copied().collect::<BTreeSet<_>>(), set(&[0, 1, 2]));
    // The loads of core 0 and slave 3 swap.
    let mut swapped = [0.2, 0.2, 0.2, 0.8, 0.8];
    swapped.swap(0, 3);
    let rtt: Vec<Vec<f64>> = (0..5).map(|from| (0..5).map(|to| five().rtt_ms(from, to)).collect()).collect();
    let after = Measures::new(sites(5), swapped.into_iter().map(Some).collect(), &rtt).expect("sound");
    let by_load = settings(Policy::QuadLoadOnly, 3);
    let new = by_load.quorums(&after, &BTreeSet::new());
    assert_eq!(new.cores().iter().copied().collect::<BTreeSet<_>>(), set(&[1, 2, 3]));
    let scores: BTreeMap<SiteId, f64> = sites(5).into_iter().zip(by_load.scores(&after)).collect();
    let cheap = weigh(&old, &new, &scores, &BTreeMap::from([(site(3), reconciliation_cost(1, 1_000))]));
    assert!(cheap.is_worth_it(), "{cheap:?}");
    assert!(!weigh(&old, &new, &scores, &BTreeMap::new()).is_worth_it(), "everything to take over");
    let same = weigh(&old, &old, &scores, &BTreeMap::new());
    assert_eq!(same, Verdict { gain: 0.0, cost: 0.0 });
    assert_eq!(reconciliation_cost(0, 0), 0.0);
}

#[test]
fn slaves_alone_may_be_assigned_anew() {
    let Quorums::Cores { cores, mut preference } = settings(Policy::Quad, 3).quorums(&five(), &BTreeSet::new()) else {
        panic!("QuAD has cores")
    };
    let good = Quorums::Cores { cores: cores.clone(), preference: preference.clone() };
    // Slave 3 as it should not be: at the pair with the weakest core.
    let scores = BTreeMap::from([(site(0), 0.9), (site(1), 0.9), (site(2), 0.1), (site(3), 0.1), (site(4), 0.1)]);
    preference.insert(site(3), vec![site(2), site(0), site(1)]);
    let bad = Quorums::Cores { cores, preference };
    let verdict = weigh(&bad, &good, &scores, &BTreeMap::new());
    assert!(verdict.is_worth_it() && verdict.cost == 0.0, "with the product for the sum the cost would be 1: {verdict:?}");
}

#[test]
fn quad_reads_and_writes_where_it_should() {
    let quorums = settings(Policy::Quad, 3).quorums(&five(), &BTreeSet::new());
    let all = set(&[0, 1, 2, 3, 4]);
    assert_eq!(quorums.write(site(0), &all, 0), Some(set(&[0, 1, 2])), "a core writes all cores");
    assert_eq!(quorums.read(site(0), &all, 0), Some(set(&[0, 1])), "and reads a majority with itself");
    assert_eq!(quorums.write(site(3), &all, 0), Some(set(&[0, 1, 3])), "a slave itself and the majority it is assigned to");
    assert_eq!(quorums.read(site(3), &all, 0), Some(set(&[0, 1, 3])));
    let without = set(&[1, 2, 3, 4]);
    assert_eq!(quorums.write(site(1), &without, 0), None, "not without a core: one core is to know all that cores wrote");
    assert_eq!(quorums.write(site(3), &without, 0), Some(set(&[1, 2, 3])), "another majority");
    let next = settings(Policy::Quad, 3).quorums(&five(), &set(&[0]));
    assert!(!next.cores().contains(&site(0)) && next.write(site(1), &without, 0).is_some(), "a slave was promoted");
}

#[test]
fn majorities_grids_and_trees_have_their_sizes() {
    let rtt: Vec<Vec<f64>> = vec![vec![0.0; 4]; 4];
    let four = Measures::new(sites(4), vec![None; 4], &rtt).expect("sound");
    let all = set(&[0, 1, 2, 3]);
    let size = |policy| {
        let quorums = settings(policy, 2).quorums(&four, &BTreeSet::new());
        let len = |quorum: Option<BTreeSet<SiteId>>| quorum.map(|quorum| quorum.len());
        (len(quorums.read(site(0), &all, 5)), len(quorums.write(site(0), &all, 5)))
    };
    assert_eq!(size(Policy::MajorityRandom), (Some(2), Some(3)), "half of an even number suffices to read");
    assert_eq!(size(Policy::MajorityRoundRobin), (Some(2), Some(3)));
    assert_eq!(size(Policy::Rowa), (Some(1), Some(4)));
    assert_eq!(size(Policy::Tree), (Some(1), Some(3)), "the root; the root and two of three children");
    assert_eq!(size(Policy::Grid), (Some(2), Some(3)));
    let turning = settings(Policy::MajorityRoundRobin, 2).quorums(&four, &BTreeSet::new());
    assert_eq!(turning.read(site(0), &all, 3), Some(set(&[3, 0])));
}

fn any_measures(least: usize) -> impl Strategy<Value = Measures> {
    (least..9).prop_flat_map(|n| {
        let load = prop::collection::vec(prop::option::weighted(0.9, prop_oneof![Just(0.0), 0.0..1.5_f64]), n);
        let rtt = prop::collection::vec(prop::collection::vec(prop_oneof![Just(0.0), 0.0..300.0_f64], n), n);
        (load, rtt).prop_map(|(load, rtt)| Measures::new(sites(load.len()), load, &rtt).expect("sound"))
    })
}

fn some_of() -> impl Strategy<Value = BTreeSet<SiteId>> {
    prop::collection::btree_set((0_usize..9).prop_map(site), 0..9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Any measures, any policy, any sites failed when it was configured, any sites up when two others ask.
    #[test]
    fn every_read_quorum_meets_every_write_quorum_and_two_write_quorums_meet(
        measures in any_measures(1),
        policy in prop::sample::select(Policy::ALL.to_vec()),
        cores in 1_usize..9,
        failed in some_of(),
        down in prop::collection::vec(some_of(), 3),
        turns in prop::collection::vec(any::<u64>(), 3),
    ) {
        let quorums = settings(policy, cores).quorums(&measures, &failed);
        let ups: Vec<BTreeSet<SiteId>> =
            down.iter().map(|down| measures.sites().iter().copied().filter(|site| !down.contains(site)).collect()).collect();
        let mut reads = Vec::new();
        let mut writes = Vec::new();
        for at in measures.sites() {
            for up in &ups {
                for turn in &turns {
                    for (quorum, all) in [(quorums.read(*at, up, *turn), &mut reads), (quorums.write(*at, up, *turn), &mut writes)] {
                        let Some(quorum) = quorum else { continue };
                        prop_assert!(quorum.is_subset(up) && quorum.is_subset(&quorums.members()));
                        all.push(quorum);
                    }
                }
            }
        }
        for write in &writes {
            for other in reads.iter().chain(&writes) {
                prop_assert!(!write.is_disjoint(other), "{quorums:?}: {write:?} and {other:?} share no site");
            }
        }
    }

    /// With all sites up every site has both quorums, except that ROWAA writes those only that were available.
    #[test]
    fn with_all_sites_up_every_site_has_its_quorums(
        measures in any_measures(1),
        policy in prop::sample::select(Policy::ALL.to_vec()),
        cores in 1_usize..9,
        failed in some_of(),
    ) {
        let quorums = settings(policy, cores).quorums(&measures, &failed);
        let up = measures.sites().iter().copied().collect();
        for at in measures.sites() {
            prop_assert!(quorums.read(*at, &up, 1).is_some() && quorums.write(*at, &up, 1).is_some());
        }
    }

    #[test]
    fn an_assignment_is_as_cheap_as_the_cheapest(measures in any_measures(2), cores in 0_usize..4, slaves in 0_usize..3) {
        let n = measures.sites().len();
        let cores = 1 + cores % (n - 1).min(4);
        let slaves = 1 + slaves % (n - cores).min(3);
        let (cores, slaves): (Vec<usize>, Vec<usize>) = ((0..cores).collect(), (cores..cores + slaves).collect());
        let weights = CostWeights { communication: 1.0, load: 0.7, balance: 1.3 };
        let chosen = assign(&measures, &cores, &slaves, weights);
        let difference = total(&measures, &slaves, &chosen, weights) - cheapest(&measures, &cores, &slaves, weights);
        prop_assert!(difference.abs() < 1e-9, "dearer by {difference}");
    }
}
