//! A source that crashes before what it told of is on its disk. Who was told claims to hold the past, and nobody asks it again.
//!
//! ```text
//!   A ── commits at A, B and C, and dies; B and C do not hear that it is settled ── B moves to the next epoch, and carries it ──▶ done
//!   B ── adopts, its disk is slow ── D asks what it lacks ── B crashes, and is back in the epoch before ── D asks for the row
//! ```

use super::stage::*;
use rhumb_commit::transaction::{CommitOptions, ReadMode};
use rhumb_core::{RttMatrix, SiteId, Span, Value};
use rhumb_quad::{Admin, Answer, Config as Protocol, Epoch, Request, Site};
use rhumb_sim::{Config, Fault, Links, Place, World};

/// The seed says how much of what is not synced a crash leaves.
const SEEDS: u64 = 12;
/// A sync takes a millisecond, or a tenth of a second.
const SLOW: u64 = 100;

fn cut(world: &mut World<Site>, from: SiteId, to: SiteId, span: Option<Span>) {
    world.strike(&Fault::Cut { links: Links::new(Place::Site(from), Place::Site(to)), span });
}

/// What D says in the end that the row is, of which it was told before the crash.
fn told_before_a_crash(seed: u64, make: impl Fn(Site) -> Site + 'static, plant: impl Fn(&mut World<Site>)) -> Option<Value> {
    let names = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
    let config = Config::new(RttMatrix::uniform(names, Span::from_millis(40)), 1);
    let first = quorums(&[A, B, C], &[D, E]);
    let mut world = World::new(config, seed, move |site, _| make(Site::new(site, first.clone(), Protocol::default())));
    plant(&mut world);
    world.run_for(Span::from_millis(1_000)).expect("nothing goes wrong");
    surely(&mut world, A, Some("old"));
    for other in [A, C, E] {
        cut(&mut world, other, D, None);
    }
    world.run_for(Span::from_millis(1_500)).expect("nothing goes wrong");
    let Answer::Began { txn } = ask(&mut world, A, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
    cut(&mut world, C, B, Some(Span::from_millis(100)));
    cut(&mut world, B, C, Some(Span::from_millis(100)));
    let writes = vec![("k".into(), Some("new".into()))];
    let committed = ask(&mut world, A, Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() });
    assert!(matches!(committed, Answer::Committed(_)), "{committed:?}");
    world.strike(&Fault::Crash { place: Place::Site(A), down: None });
    world.run_for(Span::from_millis(60)).expect("nothing goes wrong");
    assert_eq!(world.actor(B).map(Site::unresolved), Some(1), "it stands there and is not shown");
    world.strike(&Fault::SlowDisk { site: B, factor: SLOW, span: Span::from_secs(5) });
    // What D says of its past does not come in time, so that nobody waits for more of it.
    cut(&mut world, D, B, Some(Span::from_millis(60)));
    world.submit(B, Request::Admin(Admin::Change(goal(&[B, C], &[D, E]))));
    while epoch(&world, B) < Epoch(2) {
        world.tick().expect("nothing goes wrong");
    }
    world.run_for(Span::from_millis(50)).expect("nothing goes wrong");
    assert_eq!(epoch(&world, D), Epoch(2), "it has asked");
    world.strike(&Fault::Crash { place: Place::Site(B), down: Some(Span::from_millis(1)) });
    world.strike(&Fault::SlowDisk { site: B, factor: 1, span: Span::from_secs(5) });
    while !world.actor(D).is_some_and(Site::is_caught_up) {
        world.tick().expect("nothing goes wrong");
    }
    world.strike(&Fault::Heal);
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    assert_eq!(change(&mut world, B, goal(&[D], &[B, C, E])), Answer::Done);
    surely(&mut world, D, None)
}

#[test]
fn a_source_that_crashes_before_it_has_synced_an_adoption_has_told_nothing() {
    for seed in 0..SEEDS {
        assert_eq!(told_before_a_crash(seed, |site| site, |_| {}), Some("new".into()), "seed {seed}");
    }
}

mod planted {
    use super::*;
    use rhumb_core::Rules;
    use rhumb_quad::planted::Planted;

    fn found(make: impl Fn(Site) -> Site + Copy + 'static, plant: impl Fn(&mut World<Site>) + Copy) -> Vec<Option<Value>> {
        (0..SEEDS).map(|seed| told_before_a_crash(seed, make, plant)).collect()
    }

    #[test]
    fn where_it_tells_before_the_sync_and_old_copies_count_what_was_acknowledged_is_lost() {
        let early = |world: &mut World<Site>| world.set_rules(Rules::breaking(rhumb_sim::Planted::AnswerBeforeSync));
        let trusting = |site: Site| site.with_rules(Rules::breaking(Planted::OldCopiesTaken));
        assert!(found(trusting, early).contains(&Some("old".into())), "the row that was acknowledged is gone");
        for half in [found(trusting, |_| {}), found(|site| site, early)] {
            assert!(half.iter().all(|value| *value == Some("new".into())), "one of the two rules is enough here: {half:?}");
        }
    }
}
