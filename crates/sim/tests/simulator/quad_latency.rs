//! What a read and a commit of QuAD wait for, to the microsecond: the farthest site of the quorum, once for a read and twice for a commit.

use rhumb_commit::transaction::{CommitOptions, ReadMode};
use rhumb_core::{Key, SiteId, Span, Time, Value};
use rhumb_quad::quorums::Quorums;
use rhumb_quad::{Answer, Config as Protocol, Request, Site};
use rhumb_sim::{Config, LocalDelays, World};
use std::collections::BTreeMap;

const CALIFORNIA: SiteId = SiteId::new(0, 0);
const OREGON: SiteId = SiteId::new(1, 0);
const VIRGINIA: SiteId = SiteId::new(2, 0);
const IRELAND: SiteId = SiteId::new(3, 0);

/// California, Oregon and Virginia are cores; Ireland is a slave assigned to California and Virginia.
fn quorums() -> Quorums {
    let preference = BTreeMap::from([
        (CALIFORNIA, vec![CALIFORNIA, OREGON, VIRGINIA]),
        (OREGON, vec![OREGON, CALIFORNIA, VIRGINIA]),
        (VIRGINIA, vec![VIRGINIA, CALIFORNIA, OREGON]),
        (IRELAND, vec![VIRGINIA, CALIFORNIA, OREGON]),
    ]);
    Quorums::Cores { cores: vec![CALIFORNIA, OREGON, VIRGINIA], preference }
}

/// A world that has run for a while, so that all have heard of all; nothing but the wide area takes time.
fn world() -> World<Site> {
    let config = Config { local: LocalDelays::NONE, ..Config::of_paper(4, 1) };
    let mut world = World::new(config, 1, |site, _incarnation| Site::new(site, quorums(), Protocol::default()));
    world.run_until(Time::from_micros(2_000_000)).expect("nothing goes wrong");
    world
}

fn ask(world: &mut World<Site>, at: SiteId, request: Request) -> (Answer, Span) {
    let asked = world.now();
    world.submit(at, request);
    let deadline = asked + Span::from_secs(5);
    assert!(world.run_until_reply(deadline).expect("nothing goes wrong"), "no answer");
    let reply = world.take_replies().remove(0);
    (reply.answer.expect("the site is up"), reply.at.since(asked))
}

/// The spans of a read, and of a commit with a write or without, at `at`.
fn spans(writes: bool, at: SiteId) -> (Span, Span) {
    let mut world = world();
    let (began, _) = ask(&mut world, at, Request::Begin { mode: ReadMode::Locking });
    let Answer::Began { txn } = began else { panic!("{began:?}") };
    let get = Request::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] };
    let (rows, read) = ask(&mut world, at, get);
    assert!(matches!(rows, Answer::Rows { .. }), "{rows:?}");
    let writes = if writes { vec![(Key::from("k"), Some(Value::from("v")))] } else { vec![] };
    let commit = Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() };
    let (committed, commit) = ask(&mut world, at, commit);
    assert!(matches!(committed, Answer::Committed(_)), "{committed:?}");
    (read, commit)
}

fn millis(read: u64, commit: u64) -> (Span, Span) {
    (Span::from_millis(read), Span::from_millis(commit))
}

#[test]
fn a_core_reads_at_the_nearest_majority_and_writes_to_the_farthest_core_twice() {
    assert_eq!(spans(true, CALIFORNIA), millis(21, 2 * 86));
    assert_eq!(spans(true, VIRGINIA), millis(86, 2 * 101));
}

#[test]
fn a_slave_waits_for_the_farthest_core_that_it_is_assigned_to() {
    assert_eq!(spans(true, IRELAND), millis(159, 2 * 159));
}

#[test]
fn a_transaction_that_only_read_confirms_its_locks_once() {
    assert_eq!(spans(false, CALIFORNIA), millis(21, 21));
    assert_eq!(spans(false, IRELAND), millis(159, 159));
}
