//! What is large: bounds, pages, and versions that are dropped.

use super::stage::*;
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::record::encode;
use rhumb_core::{Key, KeyRange, Span};
use rhumb_quad::{Answer, Config as Protocol, Epoch, Request, Site};
use rhumb_sim::{Fault, LinkFaults, Links, Place, World};

#[test]
fn what_is_too_large_to_be_written_at_once_is_refused_and_keeps_no_locks() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    let row = |n: usize, bytes: usize| (Key::from(format!("row {n}").as_str()), Some("v".repeat(bytes).as_str().into()));
    let bytes = 12 * (6 + (1 << 20));
    for (writes, said) in [
        ((100_000..200_001).map(|n| row(n, 1)).collect(), "the transaction writes 100001 rows; at most 100000 are possible".to_owned()),
        ((10..22).map(|n| row(n, 1 << 20)).collect::<Vec<_>>(), format!("the transaction writes {bytes} bytes; at most")),
    ] {
        let Answer::Began { txn } = ask(&mut world, A, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        let get = Request::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] };
        assert!(matches!(ask(&mut world, A, get), Answer::Rows { .. }));
        let commit = Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() };
        let Answer::Failed(TxnError::TooLarge(why)) = ask(&mut world, A, commit) else { panic!("too large") };
        assert!(why.to_string().starts_with(&said), "{why}");
        assert_eq!(transaction(&mut world, B, Some("v")).map(drop), Ok(()), "nothing of it is in the way");
    }
}

#[test]
fn what_is_too_large_for_one_answer_is_told_in_several() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    let large = "v".repeat(1 << 20);
    let keys: Vec<Key> = (0..6).map(|n| Key::from(format!("row {n}").as_str())).collect();
    for at in [A, D] {
        let Answer::Began { txn } = ask(&mut world, at, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        let writes = keys.iter().map(|key| (key.clone(), Some(large.as_str().into()))).collect();
        let committed = ask(&mut world, at, Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() });
        assert!(matches!(committed, Answer::Committed(_)), "{committed:?}");
        world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
        let Answer::Began { txn } = ask(&mut world, at, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        for (asked, all) in [(&keys[..], false), (&keys[3..], true)] {
            let get = Request::Get { txn, mode: ReadMode::Locking, keys: asked.to_vec(), expect: vec![] };
            let Answer::Rows { rows, more, .. } = ask(&mut world, at, get) else { panic!("rows") };
            assert_eq!((rows.iter().map(|row| &row.key).collect::<Vec<&Key>>(), more), (asked[..3].iter().collect(), !all));
            assert!(rows.iter().all(|row| row.value == Some(large.as_str().into())));
        }
        for reverse in [false, true] {
            let range = KeyRange::new("row 0".into(), "row 6".into());
            let scan = Request::Scan { txn, mode: ReadMode::Locking, range, limit: 100, reverse, expect: vec![] };
            let Answer::Rows { rows, more: true, covered: Some(covered), .. } = ask(&mut world, at, scan) else {
                panic!("not all at once")
            };
            let some = if reverse { vec![&keys[5], &keys[4], &keys[3]] } else { vec![&keys[0], &keys[1], &keys[2]] };
            assert_eq!(rows.iter().map(|row| &row.key).collect::<Vec<&Key>>(), some);
            assert_eq!((covered.contains(&keys[2]), covered.contains(&keys[3])), (!reverse, reverse));
        }
        assert!(matches!(
            ask(&mut world, at, Request::Commit { txn, writes: vec![], expect: vec![], options: CommitOptions::default() }),
            Answer::Committed(_)
        ));
    }
}

#[test]
fn large_commits_are_carried_by_name_and_their_rows_are_got_in_pages() {
    let protocol = Protocol { page_rows: 1, ..Protocol::default() };
    let mut world = world_of(4, quorums(&[A, B, C], &[D]), protocol);
    let slow = LinkFaults { delay: Span::from_millis(100), ..LinkFaults::default() };
    let links = Links::new(Place::Site(A), Place::Site(C));
    world.strike(&Fault::Disturb { links, faults: slow, span: None });
    for key in ["x", "y", "z"] {
        let Answer::Began { txn } = ask(&mut world, A, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
        let value = "v".repeat(10_000);
        let writes = vec![(key.into(), Some(value.as_str().into()))];
        world.submit(A, Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() });
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

#[test]
fn versions_that_nobody_reads_any_more_are_dropped_and_a_deletion_stays() {
    let mut world = world(3, quorums(&[A, B], &[C]));
    surely(&mut world, A, Some("first"));
    world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
    let at = world.newest(A)[0].version;
    let then = |world: &World<Site>| match world.store(A).load(&Load::Get { keys: vec!["k".into()], at, bytes: usize::MAX }) {
        Ok(Loaded::Rows { rows, .. }) => rows[0].value.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(then(&world), Some("first".into()));
    let Answer::Began { txn } = ask(&mut world, C, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
    let deleted = Request::Commit { txn, writes: vec![("k".into(), None)], expect: vec![], options: CommitOptions::default() };
    assert!(matches!(ask(&mut world, C, deleted), Answer::Committed(_)));
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert_eq!(then(&world), None, "it is superseded");
    let newest = world.newest(A);
    assert_eq!((newest.len(), newest[0].value.clone()), (1, None), "a copy that has only what was before it must not outlive it");
}
