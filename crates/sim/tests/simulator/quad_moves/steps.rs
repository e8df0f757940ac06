//! A transaction in whose midst something happens: a change at every step of it, a gateway that dies, a session that is lost.

use super::stage::*;
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{SiteId, Span, Value};
use rhumb_quad::{Admin, Answer, Cause, Epoch, Request, Site};
use rhumb_sim::{Fault, Links, Place, World};

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
            moving = Some(world.submit(B, Request::Admin(Admin::Change(goal(&[B, C, D], &[A])))));
        }
        if waits.is_none() {
            let request = match steps.next() {
                Some("begin") => Request::Begin { mode: ReadMode::Locking },
                Some("get") => Request::Get { txn: txn.expect("begun"), mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] },
                _ => Request::Commit {
                    txn: txn.expect("begun"),
                    writes: vec![("k".into(), Some("new".into()))],
                    expect: vec![],
                    options: CommitOptions::default(),
                },
            };
            waits = Some(world.submit(gateway, request));
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
fn a_transaction_that_has_not_read_yet_waits_for_the_new_configuration() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    let Answer::Began { txn } = ask(&mut world, A, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
    world.submit(B, Request::Admin(Admin::Change(goal(&[B, C, D], &[A]))));
    while !world.actor(A).is_some_and(Site::is_sealed) {
        world.tick().expect("nothing goes wrong");
    }
    let rows = ask(&mut world, A, Request::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] });
    assert!(matches!(rows, Answer::Rows { .. }), "{rows:?}");
    assert_eq!(epoch(&world, A), Epoch(2));
}

#[test]
fn what_a_dead_slave_had_prepared_ends_with_the_epoch() {
    for told in [false, true] {
        let mut world = world(4, quorums(&[A, B, C], &[D]));
        surely(&mut world, A, Some("old"));
        world.run_for(Span::from_millis(300)).expect("nothing goes wrong");
        let Answer::Began { txn } = ask(&mut world, D, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        let writes = vec![("k".into(), Some("new".into()))];
        let id = world.submit(D, Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() });
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
        assert!(now.why.to_string().starts_with("r3.0 is silent"), "{}", now.why);
        world.run_for(Span::from_secs(20)).expect("nothing goes wrong");
        assert_eq!((epoch(&world, B), prepared(&world)), (Epoch(2), 0), "once is enough");
    }
}

/// The slave D reads in a transaction whose locks an older one takes over, writes the row and commits; D does not hear of that,
/// goes on, and commits. What D's client is told, and what is there in the end.
fn written_over_in_a_lost_session(world: &mut World<Site>) -> (Answer, Option<Value>) {
    surely(world, A, Some("old"));
    let begin = |world: &mut World<Site>, site| match ask(world, site, Request::Begin { mode: ReadMode::Locking }) {
        Answer::Began { txn } => txn,
        other => panic!("{other:?}"),
    };
    let commit = |txn, value: &str| Request::Commit {
        txn,
        writes: vec![("k".into(), Some(value.into()))],
        expect: vec![],
        options: CommitOptions::default(),
    };
    let (older, younger) = (begin(world, A), begin(world, D));
    let read = ask(world, D, Request::Get { txn: younger, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] });
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

#[test]
fn where_sessions_are_ignored_an_older_transaction_is_written_over() {
    let first = quorums(&[A, B, C], &[D]);
    let names = ["a", "b", "c", "d"].map(String::from).to_vec();
    let config = rhumb_sim::Config::new(rhumb_core::RttMatrix::uniform(names, Span::from_millis(40)), 1);
    let rules = rhumb_core::Rules::breaking(rhumb_quad::planted::Planted::SessionsIgnored);
    let mut world = World::new(config, 1, move |site, _| Site::new(site, first.clone(), rhumb_quad::Config::default()).with_rules(rules));
    world.run_for(Span::from_millis(1_000)).expect("nothing goes wrong");
    let (told, left) = written_over_in_a_lost_session(&mut world);
    assert!(matches!(told, Answer::Committed(_)), "{told:?}");
    assert_eq!(left, Some("younger".into()));
}
