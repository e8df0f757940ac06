//! When messages arrive: the wide area plus the local delays, exactly; lost, doubled, cut and held back by script.

use super::toy::{Answer, C, I, LOCAL, O, RESEND_AFTER, Request, Resend, S, V, five_regions, kept, lines, replies, world};
use rhumb_core::actor::MESSAGE_BYTES_MAX;
use rhumb_core::{Span, Time};
use rhumb_sim::{ClockSkew, Config, Fault, LinkFaults, Links, LocalDelays, Place, TOO_LARGE};

const START: Time = Time::from_micros(1_000_000);

/// What a write takes beyond the wide area: the steps at the primary, at a replica and again at the primary, and the
/// replica's sync.
fn local() -> u64 {
    (LOCAL.step * 3 + LOCAL.sync).as_micros()
}

#[test]
fn a_write_takes_the_floor_plus_the_local_delays_in_every_region() {
    for site in [C, O, V, I, S] {
        let config = five_regions();
        let floor = config.rtt.floor(site.region);
        let mut world = world(config, 1);
        world.run_until(START).expect("runs");
        world.submit(site, Request::Put(7));
        world.run_for(Span::from_secs(1)).expect("runs");
        assert_eq!(replies(&mut world, START), [(floor.as_micros() + local(), Some(Answer::Done))], "{site}");
    }
}

#[test]
fn a_message_that_no_frame_holds_is_lost() {
    let took = |padding| {
        let mut world = world(five_regions(), 1);
        world.run_until(START).expect("runs");
        world.submit(C, Request::PutPadded(padding));
        world.run_for(Span::from_secs(1)).expect("runs");
        (Span::from_micros(replies(&mut world, START)[0].0), world.probe(TOO_LARGE))
    };
    let (fits, none) = took(MESSAGE_BYTES_MAX - 64);
    assert!(fits < RESEND_AFTER && none == 0, "{fits} {none}");
    let (again, lost) = took(MESSAGE_BYTES_MAX);
    assert_eq!((again, lost), (fits + RESEND_AFTER + LOCAL.step, 4), "what is said again without padding arrives");
}

#[test]
fn a_message_from_another_site_keeps_its_processor_busy_before_it_is_taken_up() {
    let took = |remote| {
        let local = LocalDelays { remote: Span::from_micros(remote), ..LOCAL };
        let mut world = world(Config { local, ..five_regions() }, 1);
        world.run_until(START).expect("runs");
        world.submit(C, Request::Put(7));
        world.run_for(Span::from_secs(1)).expect("runs");
        replies(&mut world, START)[0].0
    };
    // The request of a client costs nothing of it, and the answers of two others suffice, far apart.
    assert_eq!(took(400) - took(0), 2 * 400);
}

#[test]
fn without_local_delays_a_write_takes_the_floor() {
    let config = Config { local: LocalDelays::NONE, ..five_regions() };
    let mut world = world(config, 1);
    world.run_until(START).expect("runs");
    world.submit(C, Request::Put(7));
    world.run_for(Span::from_secs(1)).expect("runs");
    assert_eq!(replies(&mut world, START), [(86_000, Some(Answer::Done))]);
}

#[test]
fn a_message_arrives_after_half_the_round_trip_and_shows_in_the_trace() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.submit(C, Request::Put(7));
    world.run_for(Span::from_millis(60)).expect("runs");
    assert_eq!(lines(&world, "store 7"), ["1.010520 r1.0 ← r0.0 store 7", "1.043020 r2.0 ← r0.0 store 7"]);
}

#[test]
fn a_cut_of_one_direction_stops_messages_in_that_direction_only() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.strike(&Fault::Cut { links: Links::new(Place::Region(V.region), Place::Site(C)), span: None });
    world.submit(C, Request::Put(7));
    world.run_for(Span::from_millis(400)).expect("runs");
    assert_eq!(kept(&world, V), [7], "the way there is open");
    assert_eq!(replies(&mut world, START), [(159_000 + local(), Some(Answer::Done))], "I completes the majority in place of V");
}

#[test]
fn a_cut_ends_after_its_time_or_when_mended() {
    let mut world = world(five_regions(), 1);
    let out = Links::new(Place::Site(C), Place::Everywhere);
    world.run_until(START).expect("runs");
    world.strike(&Fault::Cut { links: out, span: Some(Span::from_millis(400)) });
    world.submit(C, Request::Put(7));
    world.run_for(Span::from_secs(1)).expect("runs");
    let resent = 500_000 + LOCAL.step.as_micros();
    assert_eq!(replies(&mut world, START), [(resent + 86_000 + local(), Some(Answer::Done))], "sent again after the cut");

    let start = world.now();
    world.strike(&Fault::Cut { links: out, span: None });
    world.strike_at(start + Span::from_millis(300), Fault::Mend { links: out });
    world.submit(C, Request::Put(8));
    world.run_for(Span::from_secs(1)).expect("runs");
    assert_eq!(replies(&mut world, start), [(resent + 86_000 + local(), Some(Answer::Done))]);
}

#[test]
fn a_duplicate_arrives_later() {
    let mut world = world(five_regions(), 1);
    let faults = LinkFaults { duplicate: 1.0, duplicate_after: Span::from_secs(3), ..LinkFaults::default() };
    world.run_until(START).expect("runs");
    world.strike(&Fault::Disturb { links: Links::ALL, faults, span: Some(Span::from_millis(1)) });
    world.submit(C, Request::Put(7));
    world.run_for(Span::from_secs(4)).expect("runs");
    assert_eq!(world.probe("toy.stored_again"), 4, "each of the other four sites got it twice");
    let at_v = lines(&world, "r2.0 ← r0.0 store 7");
    assert_eq!((at_v.len(), at_v[0].as_str()), (2, "1.043020 r2.0 ← r0.0 store 7"));
    assert_eq!(kept(&world, V), [7]);
}

#[test]
fn messages_overtake_each_other_only_if_links_reorder() {
    let order = |reorder| {
        let mut world = world(five_regions(), 1);
        let faults = LinkFaults { reorder, reorder_by: Span::from_millis(300), ..LinkFaults::default() };
        world.run_until(START).expect("runs");
        world.strike(&Fault::Disturb { links: Links::ALL, faults, span: None });
        (0..20).for_each(|value| {
            world.submit(C, Request::Put(value));
        });
        world.run_for(Span::from_millis(450)).expect("runs");
        let arrived: Vec<u64> =
            lines(&world, "r1.0 ← r0.0 store").iter().filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        assert_eq!(arrived.len(), 20);
        arrived
    };
    assert!(order(0.0).is_sorted());
    assert!(!order(0.5).is_sorted());
}

#[test]
fn loss_is_made_good_by_sending_again() {
    let mut world = world(five_regions(), 1);
    let lossy = LinkFaults { loss: 0.5, ..LinkFaults::default() };
    world.run_until(START).expect("runs");
    world.strike(&Fault::Disturb { links: Links::ALL, faults: lossy, span: None });
    (0..10).for_each(|value| {
        world.submit(C, Request::Put(value));
    });
    world.run_for(Span::from_secs(60)).expect("runs");
    assert_eq!(world.take_replies().len(), 10);
    assert!(world.probe("toy.resend") > 0 && !lines(&world, "lost: store").is_empty());
}

#[test]
fn timers_run_on_the_sites_own_quartz_and_jumps_do_not_move_them() {
    for (drift_ppm, after) in [(0, 500_000), (100_000, 454_546), (-100_000, 555_556)] {
        let mut world = world(five_regions(), 1);
        world.skew_clock(C, ClockSkew { offset_micros: 77, drift_ppm });
        world.run_until(START).expect("runs");
        world.strike(&Fault::Cut { links: Links::new(Place::Site(C), Place::Everywhere), span: None });
        world.submit(C, Request::Put(7));
        world.strike_at(START + Span::from_millis(100), Fault::ClockJump { site: C, by_micros: 3_000_000 });
        world.run_for(Span::from_millis(700)).expect("runs");
        let stepped = START + Span::from_micros(after) + LOCAL.step * 2;
        assert_eq!(lines(&world, "timer"), [format!("{stepped} r0.0 timer {:?}", Resend((1 << 32) + 1))], "{drift_ppm} ppm");
        let drift = (stepped.as_micros() as f64 * f64::from(drift_ppm) / 1e6).floor() as i64;
        let reading = 1_000_000_000 + 77 + 3_000_000 + (stepped.as_micros() as i64 + drift) as u64;
        assert_eq!(lines(&world, "by my clock"), [format!("{stepped} r0.0 · resend by my clock {}", Time::from_micros(reading))]);
    }
}

#[test]
fn the_nearest_regions_answer_first() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.submit(C, Request::Put(7));
    world.run_for(Span::from_secs(1)).expect("runs");
    let order: Vec<String> = lines(&world, "stored").iter().filter_map(|line| line.split(' ').nth(3).map(str::to_owned)).collect();
    assert_eq!(order, [O, V, I, S].map(|site| site.to_string()));
}
