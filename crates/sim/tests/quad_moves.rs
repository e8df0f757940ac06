//! A change of configuration at every step of a transaction, joining, leaving, and cores that are lost: each one by itself.

use rhumb_commit::quad::quorums::{CostWeights, Policy, Quorums, ScoreWeights, Settings};
use rhumb_commit::quad::{
    Adaptation, Availability, Burden, Cause, Config as Protocol, Cores, Epoch, Explanation, Goal, Leave, Request, Site, records,
};
use rhumb_commit::replicated_commit::records::encode;
use rhumb_commit::replicated_commit::{Answer, Request as Ask};
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::actor::{Load, Loaded, RequestId};
use rhumb_core::{Key, KeyRange, RttMatrix, SiteId, Span, TxnId, Value};
use rhumb_sim::{Config, Fault, LinkFaults, Links, Place, World};
use std::collections::{BTreeMap, BTreeSet};

const A: SiteId = SiteId::new(0, 0);
const B: SiteId = SiteId::new(1, 0);
const C: SiteId = SiteId::new(2, 0);
const D: SiteId = SiteId::new(3, 0);
const E: SiteId = SiteId::new(4, 0);

/// `cores`, and `slaves` who ask them in this order.
fn quorums(cores: &[SiteId], slaves: &[SiteId]) -> Quorums {
    let preference: BTreeMap<SiteId, Vec<SiteId>> = cores.iter().chain(slaves).map(|site| (*site, cores.to_vec())).collect();
    Quorums::Cores { cores: cores.to_vec(), preference }
}

fn goal(cores: &[SiteId], slaves: &[SiteId]) -> Goal {
    Goal::of(quorums(cores, slaves), "a test's wish")
}

/// A world of so many sites, 40 ms from one another, that has run for a second.
fn world(sites: usize, first: Quorums) -> World<Site> {
    world_with(sites, first, None)
}

fn world_with(sites: usize, first: Quorums, adaptation: Option<Adaptation>) -> World<Site> {
    world_of(sites, first, Protocol { adaptation, ..Protocol::default() })
}

fn world_of(sites: usize, first: Quorums, protocol: Protocol) -> World<Site> {
    let names = ["a", "b", "c", "d", "e"][..sites].iter().map(|name| (*name).to_owned()).collect();
    let config = Config::new(RttMatrix::uniform(names, Span::from_millis(40)), 1);
    let mut world = World::new(config, 1, move |site, _| Site::new(site, first.clone(), protocol.clone()));
    world.run_for(Span::from_millis(1_000)).expect("nothing goes wrong");
    world
}

/// The answer to `id`, which must come within ten seconds.
fn answer(world: &mut World<Site>, id: RequestId) -> Answer {
    let end = world.now() + Span::from_secs(10);
    while world.run_until_reply(end).expect("nothing goes wrong") {
        if let Some(reply) = world.take_replies().into_iter().find(|reply| reply.id == id) {
            return reply.answer.expect("the site is up");
        }
    }
    panic!("request {id} is not answered");
}

fn ask(world: &mut World<Site>, at: SiteId, request: impl Into<Request>) -> Answer {
    let id = world.submit(at, request.into());
    answer(world, id)
}

fn change(world: &mut World<Site>, at: SiteId, goal: Goal) -> Answer {
    ask(world, at, Request::Change(goal))
}

/// Reads `k` at `at` and commits; `value` is written if there is one.
fn transaction(world: &mut World<Site>, at: SiteId, value: Option<&str>) -> Result<Option<Value>, TxnError> {
    let txn = match ask(world, at, Ask::Begin { mode: ReadMode::Locking }) {
        Answer::Began { txn } => txn,
        Answer::Failed(error) => return Err(error),
        other => panic!("{other:?}"),
    };
    let read = ask(world, at, Ask::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] });
    let found = match read {
        Answer::Rows { rows, .. } => rows[0].value.clone(),
        Answer::Failed(error) => return Err(error),
        other => panic!("{other:?}"),
    };
    let writes = value.map(|value| ("k".into(), Some(value.into()))).into_iter().collect();
    match ask(world, at, Ask::Commit { txn, writes, expect: vec![], options: CommitOptions::default() }) {
        Answer::Committed(_) => Ok(found),
        Answer::Failed(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// Writes so many rows at `at`.
fn fill(world: &mut World<Site>, at: SiteId, rows: usize) {
    let Answer::Began { txn } = ask(world, at, Ask::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
    let writes = (0..rows).map(|row| (format!("row {row:03}").as_str().into(), Some("v".into()))).collect();
    let committed = ask(world, at, Ask::Commit { txn, writes, expect: vec![], options: CommitOptions::default() });
    assert!(matches!(committed, Answer::Committed(_)), "{committed:?}");
    world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
}

/// The same, again until it succeeds.
fn surely(world: &mut World<Site>, at: SiteId, value: Option<&str>) -> Option<Value> {
    for _ in 0..20 {
        if let Ok(found) = transaction(world, at, value) {
            return found;
        }
        world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
    }
    panic!("nothing commits at {at}");
}

fn epoch(world: &World<Site>, at: SiteId) -> Epoch {
    world.actor(at).expect("it is up").configuration().epoch
}

/// A transaction at `gateway` while, after so many events, B changes the configuration. Returns what its client was told, and
/// whether the transaction was over before that.
fn moved_at(gateway: SiteId, events: u64) -> (Result<Option<Value>, TxnError>, bool) {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    assert_eq!(surely(&mut world, A, Some("old")), None);
    world.run_for(Span::from_millis(300)).expect("nothing goes wrong");
    let begun = world.events();
    let mut moving: Option<RequestId> = None;
    let mut moved = None;
    let mut steps = ["begin", "get", "commit"].into_iter();
    let mut txn = None;
    let mut outcome = None;
    let mut waits: Option<RequestId> = None;
    while outcome.is_none() {
        if moving.is_none() && world.events() >= begun + events {
            moving = Some(world.submit(B, Request::Change(goal(&[B, C, D], &[A]))));
        }
        if waits.is_none() {
            let request = match steps.next() {
                Some("begin") => Ask::Begin { mode: ReadMode::Locking },
                Some("get") => Ask::Get { txn: txn.expect("begun"), mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] },
                _ => Ask::Commit {
                    txn: txn.expect("begun"),
                    writes: vec![("k".into(), Some("new".into()))],
                    expect: vec![],
                    options: CommitOptions::default(),
                },
            };
            waits = Some(world.submit(gateway, request.into()));
        }
        world.tick().expect("nothing goes wrong");
        for reply in world.take_replies() {
            if Some(reply.id) == moving {
                moved = reply.answer;
                continue;
            }
            waits = None;
            match reply.answer.expect("the site is up") {
                Answer::Began { txn: began } => txn = Some(began),
                Answer::Rows { .. } => {}
                Answer::Committed(_) => outcome = Some(Ok(None)),
                Answer::Failed(error) => outcome = Some(Err(error)),
                other => panic!("{other:?}"),
            }
        }
    }
    let over = moving.is_none();
    let outcome = outcome.expect("the loop ended");
    if let Some(moving) = moving {
        let moved = moved.unwrap_or_else(|| answer(&mut world, moving));
        assert_eq!(moved, Answer::Done, "after {events} events");
    }
    world.run_for(Span::from_secs(3)).expect("nothing goes wrong");
    let found = [A, B, C, D].map(|site| surely(&mut world, site, None));
    let expected = match &outcome {
        Ok(_) => vec![Some(Value::from("new"))],
        Err(TxnError::Unknown(_)) => vec![Some("old".into()), Some("new".into())],
        Err(error) => {
            assert!(error.is_retryable(), "after {events} events: {error}");
            vec![Some("old".into())]
        }
    };
    assert!(expected.contains(&found[0]), "after {events} events {outcome:?}, and then {found:?}");
    assert!(found.iter().all(|value| *value == found[0]), "after {events} events: {found:?}");
    for site in [A, B, C, D] {
        assert_eq!(world.actor(site).map(Site::unresolved), Some(0), "after {events} events at {site}");
        assert_eq!(epoch(&world, site), Epoch(if over { 1 } else { 2 }), "after {events} events at {site}");
    }
    (outcome, over)
}

#[test]
fn a_change_at_every_step_of_a_transaction_lets_it_finish_or_aborts_it() {
    for gateway in [A, D] {
        let (mut committed, mut aborted) = (0, 0);
        for events in 0.. {
            let (outcome, over) = moved_at(gateway, events);
            if over {
                break;
            }
            match outcome {
                Ok(_) => committed += 1,
                Err(_) => aborted += 1,
            }
        }
        assert!(committed > 0 && aborted > 0, "at {gateway} {committed} committed and {aborted} aborted");
    }
}

#[test]
fn a_promoted_slave_has_what_it_had_missed() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    surely(&mut world, A, Some("v"));
    assert!(world.newest(D).is_empty(), "cores do not write at slaves");
    assert_eq!(change(&mut world, B, goal(&[D], &[A, B, C])), Answer::Done);
    world.run_for(Span::from_millis(200)).expect("nothing goes wrong");
    assert_eq!(world.newest(D)[0].value, Some("v".into()));
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
}

#[test]
fn a_site_joins_as_a_slave_and_another_leaves() {
    let mut world = world(4, quorums(&[A, B], &[C]));
    surely(&mut world, A, Some("v"));
    let refused = transaction(&mut world, D, None).expect_err("it is no member");
    assert_eq!(
        refused,
        TxnError::Unavailable(
            "site r3.0 takes no part in the quorums; connect to another site, or have it join (rhumb quorum join)".into()
        )
    );
    assert_eq!(change(&mut world, A, goal(&[A, B], &[C, D])), Answer::Done);
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, D, Some("w")), Some("v".into()));
    assert!(world.actor(D).is_some_and(Site::is_caught_up));
    assert_eq!(change(&mut world, D, goal(&[B, D], &[C])), Answer::Done);
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    assert!(transaction(&mut world, A, None).expect_err("it has left").to_string().contains("site r0.0 takes no part"));
    assert_eq!(surely(&mut world, C, None), Some("w".into()));
}

#[test]
fn cores_that_are_merely_cut_off_are_not_left_behind() {
    let mut world = world(5, quorums(&[A, B, C], &[D, E]));
    surely(&mut world, D, Some("v"));
    for site in [A, B] {
        let links = Links::new(Place::Site(site), Place::Everywhere);
        world.strike(&Fault::Crash { place: Place::Site(site), down: None });
        world.strike(&Fault::Cut { links, span: None });
    }
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    let refused = change(&mut world, D, goal(&[C, D, E], &[]));
    let missing = "the quorums cannot be changed without more of their sites; missing: r0.0, r1.0";
    assert_eq!(refused, Answer::Failed(TxnError::Unavailable(missing.into())));
    assert_eq!(epoch(&world, C), Epoch(1));
    let declared = Goal { lost: BTreeSet::from([A, B]), ..goal(&[C, D, E], &[]) };
    assert_eq!(change(&mut world, D, declared), Answer::Done);
    assert_eq!(surely(&mut world, E, Some("w")), Some("v".into()));
    assert_eq!(surely(&mut world, C, None), Some("w".into()));
}

#[test]
fn without_a_slave_too_nothing_is_based_on_one_core() {
    let mut world = world(5, quorums(&[A, B, C], &[D, E]));
    surely(&mut world, D, Some("v"));
    for site in [A, B, E] {
        world.strike(&Fault::Crash { place: Place::Site(site), down: None });
    }
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    let declared = Goal { lost: BTreeSet::from([A, B]), ..goal(&[C, D], &[]) };
    let refused = change(&mut world, D, declared);
    let missing = "the quorums cannot be changed without more of their sites; missing: r4.0";
    assert_eq!(refused, Answer::Failed(TxnError::Unavailable(missing.into())));
}

#[test]
fn who_is_sealed_and_left_alone_ends_the_change() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    surely(&mut world, A, Some("v"));
    world.submit(B, Request::Change(goal(&[B, C, D], &[A])));
    while world.probe("quad.sealed") < 3 {
        world.tick().expect("nothing goes wrong");
    }
    world.strike(&Fault::Crash { place: Place::Site(B), down: None });
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert!(epoch(&world, A) > Epoch(1));
    assert_eq!(epoch(&world, A), epoch(&world, D));
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
}

#[test]
fn a_transaction_that_has_not_read_yet_waits_for_the_new_configuration() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    let Answer::Began { txn } = ask(&mut world, A, Ask::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
    world.submit(B, Request::Change(goal(&[B, C, D], &[A])));
    while !world.actor(A).is_some_and(Site::is_sealed) {
        world.tick().expect("nothing goes wrong");
    }
    let rows = ask(&mut world, A, Ask::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] });
    assert!(matches!(rows, Answer::Rows { .. }), "{rows:?}");
    assert_eq!(epoch(&world, A), Epoch(2));
}

/// Two cores, or as many as `auto` asks for; periods of five seconds; a site can have a hundred transactions in progress.
fn adaptation(auto: Option<Availability>) -> Option<Adaptation> {
    let settings = Settings { policy: Policy::Quad, cores: 2, score: ScoreWeights::default(), cost: CostWeights::default() };
    Some(Adaptation { period_ticks: 20, capacity: 100, settings, auto: auto.is_some(), availability: auto.unwrap_or_default() })
}

fn cores(world: &World<Site>, at: SiteId) -> Vec<SiteId> {
    let mut cores = world.actor(at).expect("it is up").configuration().quorums.cores().to_vec();
    cores.sort();
    cores
}

/// For `seconds` clients have twenty transactions in progress at `site`, of a second each, and think better of them.
fn load(world: &mut World<Site>, site: SiteId, seconds: u64) {
    for _ in 0..seconds {
        let end = world.now() + Span::from_secs(1);
        let begun: Vec<TxnId> = (0..20)
            .filter_map(|_| match ask(world, site, Ask::Begin { mode: ReadMode::Locking }) {
                Answer::Began { txn } => Some(txn),
                _ => None,
            })
            .collect();
        world.run_for(end.since(world.now())).expect("nothing goes wrong");
        for txn in begun {
            ask(world, site, Ask::Rollback { txn });
        }
    }
}

#[test]
fn a_core_that_gets_loaded_makes_place_within_two_periods_and_only_once() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    // Else all rows there are would have to be copied, which no gain is worth.
    assert_eq!(change(&mut world, A, goal(&[A, B], &[C, D])), Answer::Done);
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert_eq!(cores(&world, A), [A, B], "nothing has changed");
    let before = epoch(&world, B);
    load(&mut world, A, 12);
    let after = epoch(&world, B);
    assert!(after > before && !cores(&world, B).contains(&A), "{:?} in {after}", cores(&world, B));
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
    load(&mut world, A, 30);
    assert_eq!(epoch(&world, B), after, "the load lasts, the change is over");
}

#[test]
fn a_lost_core_is_replaced_and_comes_back_as_a_slave() {
    let mut world = world_with(5, quorums(&[A, B, C], &[D, E]), {
        let adaptation = adaptation(None).expect("there is one");
        Some(Adaptation { settings: Settings { cores: 3, ..adaptation.settings }, ..adaptation })
    });
    surely(&mut world, A, Some("v"));
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    world.strike(&Fault::Crash { place: Place::Site(A), down: None });
    world.run_for(Span::from_secs(4)).expect("nothing goes wrong");
    assert!(!cores(&world, B).contains(&A), "{:?}", cores(&world, B));
    assert_eq!(surely(&mut world, B, Some("w")), Some("v".into()));
    world.strike(&Fault::Restart { place: Place::Site(A) });
    world.run_for(Span::from_secs(4)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, A, None), Some("w".into()));
    assert_eq!(epoch(&world, A), epoch(&world, B));
}

#[test]
fn a_site_that_asks_to_join_becomes_a_member() {
    let mut world = world_with(4, quorums(&[A, B], &[C]), adaptation(None));
    surely(&mut world, C, Some("v"));
    assert_eq!(ask(&mut world, D, Request::Join), Answer::Done);
    world.run_for(Span::from_secs(5)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
    assert!(!cores(&world, D).contains(&D), "it has not run for a period");
}

#[test]
fn an_operator_has_a_site_leave_and_join_again() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    world.run_for(Span::from_secs(1)).expect("nothing goes wrong");
    let leave = |site, lost| Request::Leave(Leave { site, lost });
    for (at, site, why) in
        [(A, A, "a site does not take itself out; ask another member"), (A, E, "site r4.0 takes no part in the quorums already")]
    {
        assert_eq!(ask(&mut world, at, leave(site, false)), Answer::Failed(TxnError::Invalid(why.into())));
    }
    // A core, and the planner.
    assert_eq!(ask(&mut world, C, leave(A, false)), Answer::Done);
    assert!(!cores(&world, C).contains(&A) && cores(&world, C).len() == 2, "as many cores as before");
    world.run_for(Span::from_secs(20)).expect("nothing goes wrong");
    assert!(transaction(&mut world, A, None).expect_err("it has left").to_string().contains("site r0.0 takes no part"));
    assert_eq!(surely(&mut world, D, Some("w")), Some("v".into()));
    assert_eq!(ask(&mut world, A, Request::Join), Answer::Done);
    world.run_for(Span::from_secs(5)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, A, None), Some("w".into()));
    // One that is lost is not waited for, and the fewest are left that so many cores take.
    world.strike(&Fault::Crash { place: Place::Site(D), down: None });
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    assert_eq!(ask(&mut world, A, leave(D, true)), Answer::Done);
    assert_eq!(ask(&mut world, A, leave(C, false)), Answer::Done);
    let refused = "2 cores are asked for; 1 sites can have 1 to 1; set cores first";
    assert_eq!(ask(&mut world, A, leave(B, false)), Answer::Failed(TxnError::Invalid(refused.into())));
    assert_eq!(surely(&mut world, B, None), Some("w".into()));
}

#[test]
fn cores_are_as_many_as_the_availability_asked_for_takes() {
    let auto = Some(Availability { wanted: 0.9995, of_site: 0.99 });
    let mut world = world_with(5, quorums(&[A], &[B, C, D, E]), adaptation(auto));
    surely(&mut world, C, Some("v"));
    world.strike(&Fault::Crash { place: Place::Site(E), down: Some(Span::from_secs(3)) });
    world.run_for(Span::from_secs(15)).expect("nothing goes wrong");
    assert_eq!(cores(&world, A).len(), 3, "three of which each is up 99 % of the time are 99.97 %");
}

#[test]
fn a_core_that_moves_far_away_makes_place_once() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    world.run_for(Span::from_secs(60)).expect("nothing goes wrong");
    let before = epoch(&world, B);
    assert_eq!(cores(&world, B), [A, B], "all are as near as all");
    let far = LinkFaults { delay: Span::from_millis(80), ..LinkFaults::default() };
    for links in [Links::new(Place::Site(A), Place::Everywhere), Links::new(Place::Everywhere, Place::Site(A))] {
        world.strike(&Fault::Disturb { links, faults: far, span: None });
    }
    world.run_for(Span::from_secs(20)).expect("nothing goes wrong");
    let after = epoch(&world, B);
    assert_eq!((after, cores(&world, B).contains(&A)), (before.next(), false), "{:?}", cores(&world, B));
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
    world.run_for(Span::from_secs(120)).expect("nothing goes wrong");
    assert_eq!(epoch(&world, B), after, "the distance lasts, the change is over");
}

/// Cores A, B and C and a slave D; pages of one row. The change makes D the only core, which has to copy all.
fn slow_reconciliation(rows: usize) -> (World<Site>, RequestId) {
    let mut world = world_of(4, quorums(&[A, B, C], &[D]), Protocol { page_rows: 1, ..Protocol::default() });
    fill(&mut world, A, rows);
    let id = world.submit(B, Request::Change(goal(&[D], &[A, B, C])));
    (world, id)
}

#[test]
fn a_reconciliation_that_advances_takes_as_long_as_it_takes() {
    let (mut world, id) = slow_reconciliation(60);
    assert_eq!(answer(&mut world, id), Answer::Done, "60 pages of 80 ms are longer than any wait for news");
    assert_eq!((world.probe("quad.attempt"), world.probe("quad.taken_over")), (1, 0));
    assert_eq!(world.newest(D).len(), 60);
}

#[test]
fn who_takes_a_reconciliation_over_goes_on_where_it_came_to() {
    let (mut world, _) = slow_reconciliation(60);
    world.run_for(Span::from_millis(4_000)).expect("nothing goes wrong");
    let pages = world.probe("quad.page");
    assert!(pages > 100, "{pages} pages of three sources");
    world.strike(&Fault::Crash { place: Place::Site(B), down: None });
    let end = world.now() + Span::from_secs(9);
    while epoch(&world, D) == Epoch(1) {
        assert!(world.tick().expect("nothing goes wrong") && world.now() < end, "the rest takes a second or two after the wait for news");
    }
    assert!(world.probe("quad.page") < 200, "{} pages: a source was begun anew", world.probe("quad.page"));
    assert_eq!(surely(&mut world, D, None), None);
}

#[test]
fn a_goal_whose_core_dies_does_not_keep_the_others_sealed() {
    let mut world = world(3, quorums(&[A, B, C], &[]));
    surely(&mut world, A, Some("v"));
    world.submit(B, Request::Change(goal(&[A], &[B, C])));
    while world.probe("quad.sealed") < 3 {
        world.tick().expect("nothing goes wrong");
    }
    world.strike(&Fault::Crash { place: Place::Site(A), down: None });
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert_eq!(cores(&world, B), [B, C], "all that is left; it took three before");
    assert_eq!(surely(&mut world, C, Some("w")), Some("v".into()));
    world.strike(&Fault::Restart { place: Place::Site(A) });
    world.run_for(Span::from_secs(4)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, A, None), Some("w".into()), "it is a slave");
}

#[test]
fn an_operator_gets_through_while_sites_are_sealed_for_long() {
    let mut world = world(3, quorums(&[A, B, C], &[]));
    surely(&mut world, A, Some("v"));
    world.submit(B, Request::Change(goal(&[A], &[B, C])));
    while world.probe("quad.sealed") < 3 {
        world.tick().expect("nothing goes wrong");
    }
    world.strike(&Fault::Crash { place: Place::Site(A), down: None });
    let wish = || goal(&[C], &[A, B]);
    world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
    let busy = TxnError::Unavailable("the configuration is being changed already".into());
    assert_eq!(change(&mut world, C, wish()), Answer::Failed(busy), "the first has a chance");
    world.run_for(Span::from_millis(1_600)).expect("nothing goes wrong");
    assert_eq!(change(&mut world, C, wish()), Answer::Done);
    assert_eq!(cores(&world, C), [C]);
}

#[test]
fn what_waits_for_a_configuration_that_does_not_come_is_told_so() {
    let mut world = world(3, quorums(&[A, B, C], &[]));
    let Answer::Began { txn } = ask(&mut world, C, Ask::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
    world.submit(B, Request::Change(goal(&[A], &[B, C])));
    while world.probe("quad.sealed") < 3 {
        world.tick().expect("nothing goes wrong");
    }
    for site in [A, B] {
        world.strike(&Fault::Crash { place: Place::Site(site), down: None });
    }
    let answer = ask(&mut world, C, Ask::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] });
    assert!(matches!(&answer, Answer::Failed(error) if error.is_retryable()), "{answer:?}");
}

#[test]
fn sites_declared_lost_that_go_on_unheard_decide_nothing_without_a_slave() {
    let mut world = world(5, quorums(&[A, B, C, D], &[E]));
    surely(&mut world, A, Some("v"));
    for site in [D, E] {
        for other in [A, B, C] {
            let links = Links::new(Place::Site(site), Place::Site(other));
            world.strike(&Fault::Cut { links, span: None });
            let links = Links::new(Place::Site(other), Place::Site(site));
            world.strike(&Fault::Cut { links, span: None });
        }
    }
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    let refused = change(&mut world, A, goal(&[A, B], &[C, D, E]));
    let missing = "the quorums cannot be changed without more of their sites; missing: r3.0, r4.0";
    assert_eq!(refused, Answer::Failed(TxnError::Unavailable(missing.into())), "three of five, and of four cores");
    let declared = Goal { lost: BTreeSet::from([A, B, C]), ..goal(&[D], &[E]) };
    assert_eq!(change(&mut world, E, declared), Answer::Done);
    assert_eq!(surely(&mut world, E, Some("w")), Some("v".into()));
    assert_eq!((epoch(&world, A), epoch(&world, D)), (Epoch(1), Epoch(2)));
}

#[test]
fn a_first_member_that_hears_nobody_does_not_keep_a_lost_core_in_place() {
    let mut world = world_with(5, quorums(&[B, C], &[A, D, E]), adaptation(None));
    surely(&mut world, B, Some("v"));
    // A has much to do, so that nobody thinks of it as a core: that it hears nobody is not known to the others.
    load(&mut world, A, 12);
    for site in [B, C, D, E] {
        let links = Links::new(Place::Site(site), Place::Site(A));
        world.strike(&Fault::Cut { links, span: None });
    }
    world.strike(&Fault::Crash { place: Place::Site(B), down: None });
    world.run_for(Span::from_secs(8)).expect("nothing goes wrong");
    assert!(!cores(&world, C).contains(&B), "{:?}", cores(&world, C));
    assert_eq!(surely(&mut world, C, None), Some("v".into()));
}

#[test]
fn what_a_lost_site_has_missed_is_not_kept_for_ever() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    surely(&mut world, A, Some("v"));
    world.strike(&Fault::Crash { place: Place::Site(D), down: None });
    let epochs = 40;
    for turn in 0..epochs {
        let wish = if turn % 2 == 0 { goal(&[A, B], &[C, D]) } else { goal(&[A, B, C], &[D]) };
        assert_eq!(change(&mut world, A, wish), Answer::Done);
        surely(&mut world, A, Some("w"));
    }
    world.run_for(Span::from_secs(1)).expect("nothing goes wrong");
    let load = Load::Records { space: records::DIFFERENCES, from: Vec::new().into(), limit: 1_000 };
    let Ok(Loaded::Records { records: kept, .. }) = world.store(A).load(&load) else { panic!("records were asked for") };
    assert!(kept.len() < epochs, "{} differences of {epochs} epochs with one row each", kept.len());
    world.strike(&Fault::Restart { place: Place::Site(D) });
    world.run_for(Span::from_secs(3)).expect("nothing goes wrong");
    assert!(world.actor(D).is_some_and(Site::is_caught_up));
    assert_eq!(world.newest(D)[0].value, Some("w".into()));
}

#[test]
fn what_cores_do_for_others_moves_no_roles() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    // Else all rows there are would have to be copied, which no gain is worth.
    assert_eq!(change(&mut world, A, goal(&[A, B], &[C, D])), Answer::Done);
    world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
    let before = epoch(&world, B);
    let end = world.now() + Span::from_secs(60);
    while world.now() < end {
        for site in [A, B, C, D] {
            surely(&mut world, site, None);
        }
    }
    assert_eq!((epoch(&world, B), cores(&world, B)), (before, vec![A, B]), "clients of all sites do the same");
}

/// The sites are explained to an operator.
fn explained(world: &mut World<Site>, at: SiteId) -> Explanation {
    match ask(world, at, Request::Explain) {
        Answer::Explained(explanation) => *explanation,
        other => panic!("{other:?}"),
    }
}

/// The load of `site` in its last period, as `at` has heard it.
fn load_of(world: &mut World<Site>, at: SiteId, site: SiteId) -> Option<f64> {
    explained(world, at).sites.into_iter().find(|facts| facts.site == site).expect("a member").load
}

#[test]
fn a_core_that_is_kept_busy_is_slower_and_makes_place_and_is_as_before_once_that_is_over() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    assert_eq!(change(&mut world, A, goal(&[A, B], &[C, D])), Answer::Done);
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert_eq!((cores(&world, A), load_of(&mut world, C, A)), (vec![A, B], Some(0.0)));
    let took = |world: &mut World<Site>| {
        let begun = world.now();
        assert!(transaction(world, A, None).is_ok());
        world.now().since(begun)
    };
    let before = took(&mut world);
    let absurd = ask(&mut world, A, Request::Burden(Burden { percent: 10_001, span: None }));
    assert!(matches!(absurd, Answer::Failed(TxnError::Invalid(_))), "{absurd:?}");
    assert_eq!(ask(&mut world, A, Request::Burden(Burden { percent: 2_000, span: Some(Span::from_secs(22)) })), Answer::Done);
    // It begins at A and reads there, each time 100 ms later; 40 ms of that it waits for B in any case.
    let during = took(&mut world);
    assert!(during.as_micros() >= before.as_micros() + 150_000, "{before:?}, then {during:?}");
    world.run_for(Span::from_secs(17)).expect("nothing goes wrong");
    assert!(load_of(&mut world, C, A) >= Some(20.0), "its reports say so");
    let moved = explained(&mut world, B);
    assert!(!cores(&world, B).contains(&A), "{moved:?}");
    assert_eq!((moved.cause, moved.tally.changes.get(&Cause::Gain)), (Cause::Gain, Some(&1)));
    world.run_for(Span::from_secs(14)).expect("nothing goes wrong");
    assert_eq!(load_of(&mut world, C, A), Some(0.0), "the work for others is done");
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
}

#[test]
fn what_a_busy_site_holds_is_served_at_once_when_it_is_busy_no_more() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, A, Some("v"));
    for span in [None, Some(Span::from_secs(1))] {
        assert_eq!(ask(&mut world, A, Request::Burden(Burden { percent: 10_000, span })), Answer::Done);
        let begun: BTreeSet<RequestId> = (0..20).map(|_| world.submit(A, Ask::Begin { mode: ReadMode::Locking }.into())).collect();
        let served = |world: &mut World<Site>| world.take_replies().iter().filter(|reply| begun.contains(&reply.id)).count();
        world.run_for(Span::from_millis(900)).expect("nothing goes wrong");
        let early = served(&mut world);
        assert!(early <= 1, "half a second for each: {early}");
        if span.is_none() {
            world.submit(A, Request::Burden(Burden { percent: 0, span }));
        }
        world.run_for(Span::from_secs(1)).expect("nothing goes wrong");
        assert_eq!(early + served(&mut world), begun.len(), "one after the other would take ten seconds");
    }
}

#[test]
fn an_operator_changes_the_number_of_cores_and_later_configurations_keep_it() {
    let mut world = world_with(5, quorums(&[A, B], &[C, D, E]), adaptation(None));
    surely(&mut world, C, Some("v"));
    world.run_for(Span::from_secs(6)).expect("nothing goes wrong");
    for (asked, why) in [(0, "0 cores are asked for; 5 sites can have 1 to 5"), (6, "6 cores are asked for; 5 sites can have 1 to 5")] {
        assert_eq!(ask(&mut world, D, Request::Cores(Cores::Fixed(asked))), Answer::Failed(TxnError::Invalid(why.into())));
    }
    assert_eq!(ask(&mut world, D, Request::Cores(Cores::Fixed(2))), Answer::Done);
    assert_eq!(epoch(&world, D), Epoch::FIRST, "that is how it is");
    assert_eq!(ask(&mut world, D, Request::Cores(Cores::Fixed(3))), Answer::Done);
    assert_eq!((cores(&world, D).len(), explained(&mut world, D).cores), (3, Cores::Fixed(3)));
    let lost = cores(&world, D)[0];
    let (here, slave) = (cores(&world, D)[1], D);
    world.run_for(Span::from_secs(6)).expect("nothing goes wrong");
    world.strike(&Fault::Crash { place: Place::Site(lost), down: None });
    world.run_for(Span::from_secs(6)).expect("nothing goes wrong");
    let now = explained(&mut world, here);
    assert_eq!((cores(&world, here).len(), now.cores, now.cause), (3, Cores::Fixed(3), Cause::Silence), "{now:?}");
    assert_eq!(ask(&mut world, slave, Request::Cores(Cores::Auto)), Answer::Done);
    assert_eq!(explained(&mut world, slave).cores, Cores::Auto);
    assert_eq!(surely(&mut world, slave, None), Some("v".into()));
}

#[test]
fn an_operator_is_told_what_would_change_and_why_nothing_does() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    let calm = explained(&mut world, C);
    let plan = calm.plan.expect("quorums follow what is measured");
    assert_eq!(plan.goal, None);
    assert!(!plan.why.is_empty() && plan.before > 0.0 && plan.verdict.gain <= plan.gain_min, "{plan:?}");
    assert_eq!((calm.planner, calm.sites.len()), (Some(A), 4));
    let roles: Vec<String> = calm.sites.iter().map(|facts| facts.role.to_string()).collect();
    assert_eq!(roles, ["core", "core", "slave", "slave"]);
    assert_eq!((&calm.sites[0].writes, calm.sites[3].reads.len()), (&BTreeSet::from([A, B]), 3), "all cores; two of two, and itself");
    assert!(calm.sites.iter().all(|facts| facts.up && facts.caught_up && facts.score.is_some()), "{:?}", calm.sites);
}

#[test]
fn what_a_dead_slave_had_prepared_ends_with_the_epoch() {
    for told in [false, true] {
        let mut world = world(4, quorums(&[A, B, C], &[D]));
        surely(&mut world, A, Some("old"));
        world.run_for(Span::from_millis(300)).expect("nothing goes wrong");
        let Answer::Began { txn } = ask(&mut world, D, Ask::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        let writes = vec![("k".into(), Some("new".into()))];
        let id = world.submit(D, Ask::Commit { txn, writes, expect: vec![], options: CommitOptions::default() }.into());
        let prepared =
            |world: &World<Site>| [A, B, C].iter().filter(|site| world.actor(**site).is_some_and(|it| it.unresolved() > 0)).count();
        if told {
            // The cores do not hear from each other that they have the commit, and the gateway, which hears it from both, dies before they ask.
            for (from, to) in [(A, B), (B, A)] {
                let links = Links::new(Place::Site(from), Place::Site(to));
                world.strike(&Fault::Cut { links, span: Some(Span::from_millis(200)) });
            }
            assert!(matches!(answer(&mut world, id), Answer::Committed(_)));
        }
        while prepared(&world) < 2 {
            world.tick().expect("nothing goes wrong");
        }
        assert_eq!(prepared(&world), 2, "it asks two of the three");
        world.strike(&Fault::Crash { place: Place::Site(D), down: None });
        world.run_for(Span::from_secs(8)).expect("nothing goes wrong");
        let found = transaction(&mut world, A, None).expect("nobody holds the row");
        assert_eq!(found, Some(Value::from(if told { "new" } else { "old" })));
        surely(&mut world, B, Some("newer"));
        let now = explained(&mut world, B);
        assert_eq!((now.cause, now.epoch), (Cause::Orphans, Epoch(2)));
        assert!(now.why.starts_with("r3.0 is silent"), "{}", now.why);
        world.run_for(Span::from_secs(20)).expect("nothing goes wrong");
        assert_eq!((epoch(&world, B), prepared(&world)), (Epoch(2), 0), "once is enough");
    }
}

#[test]
fn a_site_that_joined_once_does_not_come_again_by_itself() {
    let mut world = world_with(4, quorums(&[A, B], &[C]), adaptation(None));
    assert_eq!(ask(&mut world, D, Request::Join), Answer::Done);
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    let is_member = |world: &World<Site>| world.actor(B).expect("it is up").configuration().members().contains(&D);
    assert!(is_member(&world));
    assert_eq!(change(&mut world, A, goal(&[A, B], &[C])), Answer::Done);
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert!(!is_member(&world), "an operator has taken it out");
}

#[test]
fn what_is_too_large_to_be_written_at_once_is_refused_and_keeps_no_locks() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    let row = |n: usize, bytes: usize| (Key::from(format!("row {n}").as_str()), Some("v".repeat(bytes).as_str().into()));
    let bytes = 12 * (6 + (1 << 20));
    for (writes, said) in [
        ((100_000..200_001).map(|n| row(n, 1)).collect(), "the transaction writes 100001 rows; at most 100000 are possible".to_owned()),
        ((10..22).map(|n| row(n, 1 << 20)).collect::<Vec<_>>(), format!("the transaction writes {bytes} bytes; at most")),
    ] {
        let Answer::Began { txn } = ask(&mut world, A, Ask::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        let get = Ask::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] };
        assert!(matches!(ask(&mut world, A, get), Answer::Rows { .. }));
        let commit = Ask::Commit { txn, writes, expect: vec![], options: CommitOptions::default() };
        let Answer::Failed(TxnError::TooLarge(why)) = ask(&mut world, A, commit) else { panic!("too large") };
        assert!(why.starts_with(&said), "{why}");
        assert_eq!(transaction(&mut world, B, Some("v")).map(drop), Ok(()), "nothing of it is in the way");
    }
}

#[test]
fn what_is_too_large_for_one_answer_is_told_in_several() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    let large = "v".repeat(1 << 20);
    let keys: Vec<Key> = (0..6).map(|n| Key::from(format!("row {n}").as_str())).collect();
    for at in [A, D] {
        let Answer::Began { txn } = ask(&mut world, at, Ask::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        let writes = keys.iter().map(|key| (key.clone(), Some(large.as_str().into()))).collect();
        let committed = ask(&mut world, at, Ask::Commit { txn, writes, expect: vec![], options: CommitOptions::default() });
        assert!(matches!(committed, Answer::Committed(_)), "{committed:?}");
        world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
        let Answer::Began { txn } = ask(&mut world, at, Ask::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        let get = Ask::Get { txn, mode: ReadMode::Locking, keys: keys.clone(), expect: vec![] };
        let Answer::Rows { rows, more: false, trips: 2, .. } = ask(&mut world, at, get) else { panic!("six rows, three at once") };
        assert_eq!(rows.iter().map(|row| row.key.clone()).collect::<Vec<Key>>(), keys);
        assert!(rows.iter().all(|row| row.value == Some(large.as_str().into())));
        for reverse in [false, true] {
            let range = KeyRange::new("row 0".into(), "row 6".into());
            let scan = Ask::Scan { txn, mode: ReadMode::Locking, range, limit: 100, reverse, expect: vec![] };
            let Answer::Rows { rows, more: true, covered: Some(covered), .. } = ask(&mut world, at, scan) else {
                panic!("not all at once")
            };
            let some = if reverse { vec![&keys[5], &keys[4], &keys[3]] } else { vec![&keys[0], &keys[1], &keys[2]] };
            assert_eq!(rows.iter().map(|row| &row.key).collect::<Vec<&Key>>(), some);
            assert_eq!((covered.contains(&keys[2]), covered.contains(&keys[3])), (!reverse, reverse));
        }
        assert!(matches!(
            ask(&mut world, at, Ask::Commit { txn, writes: vec![], expect: vec![], options: CommitOptions::default() }),
            Answer::Committed(_)
        ));
    }
}

#[test]
fn versions_that_nobody_reads_any_more_are_dropped_and_a_deletion_stays() {
    let mut world = world(3, quorums(&[A, B], &[C]));
    surely(&mut world, A, Some("first"));
    world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
    let at = world.newest(A)[0].version;
    let then = |world: &World<Site>| match world.store(A).load(&Load::Get { keys: vec!["k".into()], at }) {
        Ok(Loaded::Rows { rows, .. }) => rows[0].value.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(then(&world), Some("first".into()));
    let Answer::Began { txn } = ask(&mut world, C, Ask::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
    let deleted = Ask::Commit { txn, writes: vec![("k".into(), None)], expect: vec![], options: CommitOptions::default() };
    assert!(matches!(ask(&mut world, C, deleted), Answer::Committed(_)));
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert_eq!(then(&world), None, "it is superseded");
    let newest = world.newest(A);
    assert_eq!((newest.len(), newest[0].value.clone()), (1, None), "a copy that has only what was before it must not outlive it");
}

#[test]
fn large_commits_are_carried_by_name_and_their_rows_are_got_in_pages() {
    let protocol = Protocol { page_rows: 1, ..Protocol::default() };
    let mut world = world_of(4, quorums(&[A, B, C], &[D]), protocol);
    let slow = LinkFaults { delay: Span::from_millis(100), ..LinkFaults::default() };
    let links = Links::new(Place::Site(A), Place::Site(C));
    world.strike(&Fault::Disturb { links, faults: slow, span: None });
    for key in ["x", "y", "z"] {
        let Answer::Began { txn } = ask(&mut world, A, Ask::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        let value = "v".repeat(10_000);
        let writes = vec![(key.into(), Some(value.as_str().into()))];
        world.submit(A, Ask::Commit { txn, writes, expect: vec![], options: CommitOptions::default() }.into());
    }
    // B has the commits, and C has only prepared.
    world.run_for(Span::from_millis(200)).expect("nothing goes wrong");
    world.strike(&Fault::Crash { place: Place::Site(A), down: None });
    assert_eq!(change(&mut world, B, goal(&[B, C, D], &[A])), Answer::Done);
    world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
    let decided = world.actor(B).expect("it is up").configuration().clone();
    assert_eq!((decided.epoch, decided.carried.len()), (Epoch(2), 3));
    let bytes = encode(&decided).len();
    assert!(bytes < 1_000, "{bytes} bytes name 30,000 bytes of rows");
    for site in [B, C, D] {
        assert_eq!(world.newest(site).len(), 3, "{site} is a core of the new configuration");
    }
    world.strike(&Fault::Restart { place: Place::Site(A) });
    world.run_for(Span::from_secs(3)).expect("nothing goes wrong");
    assert_eq!((world.newest(A).len(), world.actor(A).map(Site::is_caught_up)), (3, Some(true)));
}

/// What the others say does not get to `site`; what it says gets to them.
fn deafen(world: &mut World<Site>, site: SiteId) {
    for other in [A, B, C, D].into_iter().filter(|other| *other != site) {
        world.strike(&Fault::Cut { links: Links::new(Place::Site(other), Place::Site(site)), span: None });
    }
}

#[test]
fn a_core_that_hears_nobody_makes_place_though_it_is_heard() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    deafen(&mut world, A);
    world.run_for(Span::from_secs(10)).expect("nothing goes wrong");
    assert!(!cores(&world, B).contains(&A), "{:?}", cores(&world, B));
    assert_eq!(surely(&mut world, D, Some("w")), Some("v".into()));
    world.strike(&Fault::Heal);
    assert_eq!(surely(&mut world, A, None), Some("w".into()));
}

#[test]
fn a_site_that_hears_nobody_is_not_chosen_and_nobody_is_interrupted_for_it() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    surely(&mut world, A, Some("v"));
    deafen(&mut world, D);
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    let silent = "too few cores of the new configuration are in reach";
    assert_eq!(change(&mut world, A, goal(&[D], &[A, B, C])), Answer::Failed(TxnError::Unavailable(silent.into())));
    assert_eq!((world.probe("quad.sealed"), surely(&mut world, B, None)), (0, Some("v".into())));
}

/// The slave D reads in a transaction whose locks an older one takes over, writes the row and commits; D does not hear of that,
/// goes on, and commits. What D's client is told, and what is there in the end.
fn written_over_in_a_lost_session(world: &mut World<Site>) -> (Answer, Option<Value>) {
    surely(world, A, Some("old"));
    let begin = |world: &mut World<Site>, site| match ask(world, site, Ask::Begin { mode: ReadMode::Locking }) {
        Answer::Began { txn } => txn,
        other => panic!("{other:?}"),
    };
    let commit = |txn, value: &str| Ask::Commit {
        txn,
        writes: vec![("k".into(), Some(value.into()))],
        expect: vec![],
        options: CommitOptions::default(),
    };
    let (older, younger) = (begin(world, A), begin(world, D));
    let read = ask(world, D, Ask::Get { txn: younger, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] });
    assert!(matches!(read, Answer::Rows { .. }), "{read:?}");
    deafen(world, D);
    let committed = ask(world, A, commit(older, "older"));
    assert!(matches!(committed, Answer::Committed(_)), "{committed:?}");
    world.strike(&Fault::Heal);
    (ask(world, D, commit(younger, "younger")), surely(world, C, None))
}

#[test]
fn what_was_read_in_a_session_that_is_lost_commits_nothing() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    let (told, left) = written_over_in_a_lost_session(&mut world);
    assert!(matches!(&told, Answer::Failed(error) if error.is_retryable()), "{told:?}");
    assert_eq!(left, Some("older".into()));
}

#[cfg(feature = "planted")]
#[test]
fn where_sessions_are_ignored_an_older_transaction_is_written_over() {
    let first = quorums(&[A, B, C], &[D]);
    let names = ["a", "b", "c", "d"].map(String::from).to_vec();
    let config = Config::new(RttMatrix::uniform(names, Span::from_millis(40)), 1);
    let bug = rhumb_commit::quad::planted::Planted::SessionsIgnored;
    let mut world = World::new(config, 1, move |site, _| Site::new(site, first.clone(), Protocol::default()).with_planted(Some(bug)));
    world.run_for(Span::from_millis(1_000)).expect("nothing goes wrong");
    let (told, left) = written_over_in_a_lost_session(&mut world);
    assert!(matches!(told, Answer::Committed(_)), "{told:?}");
    assert_eq!(left, Some("younger".into()));
}
