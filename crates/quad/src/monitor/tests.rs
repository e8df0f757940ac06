//! A monitor alone: what it measures and hears, and what follows.

use super::*;
use crate::config::LOAD_MAX_PPM;
use crate::message::Measured;
use crate::quorums::{CostWeights, Policy, ScoreWeights, Settings};
use crate::testing::{Bench, site};
use crate::{Availability, Config, INJECTED_LOAD_MAX_PERCENT, Stamped};
use rhumb_core::actor::{Effect, Loaded};
use rhumb_core::{Span, Time, Timestamp};

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
    bench.shared.config.adaptation = Some(Adaptation { period: Span::from_secs(10), capacity: 100, settings, auto: false, availability });
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
