//! Bounds that hold whatever clients do: of messages in bytes on the wire, of the log, of what a gateway remembers of others.

use crate::collected::read_k;
use crate::support::messages::{stops, tells_outcome};
use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, R0, R1, R2};
use rhumb_commit::placement::{Change, Coordinators, Placement, Regions};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_commit::votes::Decision;
use rhumb_core::{Batch, Body, Key, Loaded, Row, Span, Time, Timestamp, Topology, TxnId, Value};
use rhumb_replicated_commit::message::{Attempt, Meta, Part, ReadCheck, Seen};
use rhumb_replicated_commit::records::LOG;
use rhumb_replicated_commit::resolution::Round;
use rhumb_replicated_commit::{Config, Note, Site};
use rhumb_testkit::{Lone, empty_store};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const MIB: usize = 1 << 20;
/// Bytes that a page has at the most, if it has more than one entry.
const PAGE: usize = 4 * MIB;

#[test]
fn who_catches_up_gets_pages_of_four_mebibytes_or_one_commit() {
    let mut cluster = Cluster::new(1, "");
    cluster.cut(WEST);
    let (large, small) = ("x".repeat(11 * MIB), "y".repeat(3 * MIB));
    let written = [("a", &small), ("b", &large), ("c", &small), ("d", &small)].map(|(key, value)| cluster.put(R0, &[(key, value)]).at);
    cluster.heal();
    cluster.largest_message();
    cluster.advance(Span::from_secs(10));
    for (key, at) in ["a", "b", "c", "d"].into_iter().zip(written) {
        assert_eq!(cluster.stored(R2, key).0, at);
    }
    let largest = cluster.largest_message();
    assert!((large.len()..large.len() + 1_000).contains(&largest), "the largest commit travels alone: {largest}");
}

#[test]
fn a_copy_of_all_rows_travels_in_pages_of_four_mebibytes() {
    let first = Placement::first(change([NORTH, EAST], [])).expect("two active regions");
    let mut cluster = Cluster::placed(first.clone(), "");
    let value = "x".repeat(3 * MIB / 2);
    let keys: Vec<String> = (0..5).map(|n| format!("k{n}")).collect();
    let written: Vec<_> = keys.iter().map(|key| cluster.put(R0, &[(key, &value)]).at).collect();
    let (_, id) = cluster.change(R0, &first, change([NORTH, EAST], [WEST]));
    cluster.settle();
    cluster.committed(id);
    cluster.largest_message();
    cluster.advance(Span::from_secs(5));
    for (key, at) in keys.iter().zip(written) {
        assert_eq!(cluster.stored(R2, key).0, at);
    }
    let largest = cluster.largest_message();
    assert!((value.len()..=PAGE).contains(&largest), "{largest}");
}

#[test]
fn what_is_read_by_key_travels_in_pages_of_four_mebibytes() {
    let mut cluster = Cluster::new(2, "");
    let value = "x".repeat(3 * MIB / 2);
    let keys: Vec<String> = (0..8).map(|n| format!("k{n}")).collect();
    let written: Vec<_> = keys.iter().map(|key| cluster.put(R0, &[(key, &value)]).at).collect();
    cluster.advance(Span::from_secs(5));
    let newest = *written.last().expect("some");
    for mode in [ReadMode::Locking, ReadMode::Optimistic, ReadMode::Snapshot, ReadMode::Stale(newest)] {
        cluster.largest_message();
        let txn = cluster.begin(R1, mode);
        let (mut read, mut rounds) = (Vec::new(), 0);
        while read.len() < keys.len() {
            let rest: Vec<&str> = keys[read.len()..].iter().map(String::as_str).collect();
            let id = cluster.get(txn, mode, &rest);
            cluster.settle();
            let (rows, _) = cluster.rows(id);
            assert!(!rows.is_empty(), "{mode:?}: each page has a row");
            read.extend(rows.into_iter().map(|(version, _)| version));
            rounds += 1;
        }
        assert_eq!(read, written, "{mode:?}");
        assert!(rounds > 1, "{mode:?}");
        assert!(cluster.largest_message() <= PAGE + 1_000, "{mode:?}");
    }
}

#[test]
fn a_row_as_large_as_a_page_is_read_with_what_its_snapshot_expects() {
    for shards in [1, 2] {
        let mut cluster = Cluster::new(shards, "");
        let definition = cluster.put(R0, &[("d", "1")]).at;
        cluster.put(R0, &[("k", &"x".repeat(5 * MIB)), ("m", "2")]);
        cluster.advance(Span::from_secs(5));
        let txn = cluster.begin(R1, ReadMode::Snapshot);
        let id = cluster.get_expecting(txn, &["k", "m"], &[("d", definition)]);
        cluster.settle();
        assert_eq!(cluster.values(id)[0].as_ref().map(String::len), Some(5 * MIB));
        let txn = cluster.begin(R1, ReadMode::Snapshot);
        let id = cluster.get_expecting(txn, &["k", "m"], &[("d", definition.previous())]);
        cluster.settle();
        assert!(matches!(cluster.failed(id), TxnError::Conflict(_)));
    }
}

#[test]
fn a_commit_is_measured_as_it_travels() {
    let mut cluster = Cluster::new(1, "");
    let keys: Vec<String> = (0..60_000).map(|n| format!("{n:0200}")).collect();
    // So many keys alone are less than the bound; with what a message says of each they are more.
    let rows: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "12345678")).collect();
    assert!(rows.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() < 12 * MIB);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let id = cluster.commit(txn, &rows);
    cluster.settle();
    let TxnError::TooLarge(text) = cluster.failed(id) else { panic!("it is too large") };
    assert!(text.to_string().contains("bytes on the wire"), "{text}");
}

#[test]
fn the_log_keeps_up_with_any_rate_of_commits() {
    let mut cluster = Cluster::new(1, "");
    for _ in 0..30 {
        for _ in 0..1_500 {
            cluster.put(R0, &[("k", "v")]);
        }
        cluster.advance(Span::from_millis(500));
    }
    for site in [R0, R1, R2] {
        let kept = cluster.records(site, LOG);
        assert!(kept < 6 * 1_500, "{site} keeps {kept} entries of its log");
    }
}

#[test]
fn an_idle_transaction_does_not_end_handoff() {
    let coordinators = BTreeMap::from([(WEST, Coordinators { read: EAST, commit: NORTH })]);
    let first = Placement::first(Change { coordinators, ..change([NORTH, EAST], []) }).expect("a placement that can be");
    let mut cluster = Cluster::placed(first, "");
    let idle = cluster.begin(R2, ReadMode::Optimistic);
    for n in 0..50_100 {
        let txn = cluster.begin(R2, ReadMode::Optimistic);
        let commit = cluster.commit(txn, &[("k", "v")]);
        cluster.settle();
        assert_eq!(cluster.committed(commit).trips, 2, "the {n}th is handed over");
        if n % 1_000 == 0 {
            cluster.advance(Span::from_millis(500));
        }
    }
    let commit = cluster.commit(idle, &[("k", "w")]);
    cluster.settle();
    assert_eq!(cluster.committed(commit).trips, 2, "however old, it is handed over as well");
}

/// Sites that are not settled keep what they hear until they are. Its gateway says an `Accept` again each second: it is kept once.
///
/// 1. The next placement is adopted; r1 and r2 do not hear that the others have stopped.
/// 2. client of r0: commit k. The Accept waits at r1 and r2; after 1, 2, 3 … s it is said again.
#[test]
fn an_accept_that_waits_until_a_site_is_settled_is_kept_once() {
    let mut cluster = Cluster::new(1, "");
    let (_, id) = cluster.change(R0, &Placement::everywhere(3), change([NORTH, EAST, WEST], []));
    cluster.hold(|envelope| envelope.to != R0 && stops(envelope));
    cluster.settle();
    cluster.committed(id);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.commit(txn, &[("k", "1")]);
    cluster.advance(Span::from_secs(5));
    for site in [R1, R2] {
        assert!(!cluster.placement_at(site).1, "{site} is not settled");
        let tables = cluster.site(site).status().tables;
        let waiting = tables.iter().find(|table| table.name == "moving.waiting").expect("it is listed").size;
        assert!(waiting <= 1, "{site}: one attempt waits {waiting} times");
    }
}

/// A survivor looks at all that an attempt has read before it accepts that this committed: rows with their values, in pages of 4 MiB,
/// as the transaction has read them.
///
/// 1. 20 rows of a mebibyte are at r1.
/// 2. r0 proposes that an attempt which has read them committed. r1 loads them a few at a time.
#[test]
fn what_a_survivor_examines_is_loaded_in_pages() {
    let topology = Arc::new(Topology::new(["north", "east", "west"].map(String::from).to_vec(), 1));
    let (now, at) = (Time::from_micros(60_000_000), Timestamp::from_time(Time::from_micros(50_000_000)));
    let site = Site::new(R1, topology, Placement::everywhere(3), Config::default());
    let mut lone = Lone::new(site, empty_store(), now);
    let keys: Vec<Key> = (0..20).map(|n| Key::from(format!("k{n:02}").as_str())).collect();
    let mut batch = Batch::new();
    keys.iter().for_each(|key| batch.put_version(key.clone(), at, Some(Value::from("x".repeat(1 << 20).as_str()))));
    lone.write(&batch);
    let txn = TxnId { began: Timestamp::from_time(now), gateway: R2 };
    let meta = Meta {
        attempt: Attempt { txn, made: txn.began },
        at: txn.began,
        epoch: lone.site.status().placement.epoch,
        electorate: Regions::first(3),
        declares_lost: Regions::NONE,
        two_rounds: false,
        coordinator: 0,
        participants: vec![0],
    };
    let reads = keys.into_iter().map(|key| ReadCheck { key, seen: Seen { version: at, is_live: true } }).collect();
    let contents = Some(Part { reads, writes: vec![("w".into(), Some("1".into()))], ..Part::default() });
    let round = Round { number: 1, leader: R0.region };
    let decision = Decision::Committed { floor: meta.at };
    lone.loads.clear();
    lone.hear(R0, Body::Note(Note::Propose { meta, round, decision, contents }));
    assert!(!lone.loads.is_empty(), "it looks at what was read");
    for load in &lone.loads {
        let Loaded::Rows { rows, .. } = lone.disk.load(load).expect("a store in memory does not fail") else { continue };
        let bytes: usize = rows.iter().map(Row::bytes).sum();
        assert!(bytes <= 5 << 20, "{} rows of {bytes} bytes in one answer", rows.len());
    }
}

/// A region that has refused an attempt, and does not hear how that ended, keeps its refusal until every other region has closed the attempt's timestamp:
/// as long as one is away. What the attempt writes, up to 12 MiB, it does not keep.
///
/// 1. r2 is down. client of r0: get k; another one writes k; commit m = a large value. r0 and r1 refuse (stale), the client is told of a conflict.
/// 2. Decided is lost on its way to r1, and is not said again, as r0 has the abort on record. r1 is not in doubt, and asks nobody.
/// 3. Minutes pass: its record stays for r2, and the value of m does not.
#[test]
fn what_a_refused_attempt_writes_is_not_kept_with_its_refusal() {
    let mut cluster = Cluster::new(1, "");
    cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(1));
    let txn = read_k(&mut cluster, R0, ReadMode::Optimistic);
    cluster.put(R0, &[("k", "2")]);
    cluster.kill(R2);
    cluster.hold(|envelope| envelope.to == R1 && tells_outcome(envelope));
    let id = cluster.commit(txn, &[("m", "what nobody wants any more")]);
    cluster.settle();
    assert!(matches!(cluster.failed(id), TxnError::Conflict(_)));
    cluster.lose(tells_outcome);
    cluster.let_go();
    cluster.advance(Span::from_secs(300));
    for site in [R0, R1] {
        let is_kept = format!("{:?}", cluster.site(site)).contains("what nobody wants any more");
        assert!(!is_kept, "{site} has it in memory");
    }
}

/// What a site tells others that it has closed, so that they may forget, survives its crash: as long as its disk makes nothing durable it closes no more.
#[test]
fn what_is_told_as_closed_is_on_disk() {
    let mut cluster = Cluster::new(1, "");
    let told = Rc::new(Cell::new(Timestamp::ZERO));
    let last = Rc::clone(&told);
    cluster.hold(move |envelope| {
        if let (R1, Body::Note(Note::Ping(ping))) = (envelope.from, &envelope.body) {
            last.set(ping.closed);
        }
        false
    });
    cluster.advance(Span::from_secs(2));
    assert!(told.get() > Timestamp::ZERO, "it closes what is past");
    cluster.stall_disk(R1);
    // The first ping tells what was on disk before.
    cluster.advance(Span::from_secs(1));
    let before = told.get();
    cluster.advance(Span::from_secs(1));
    assert_eq!(told.get(), before);
    cluster.free_disk(R1);
    cluster.advance(Span::from_secs(1));
    assert!(told.get() > before);
}

#[test]
fn a_read_that_is_too_much_is_as_if_it_had_not_been() {
    let mut cluster = Cluster::new(2, "");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let mut read = |letter: &str, count: usize| {
        let keys: Vec<String> = (0..count).map(|n| format!("{letter}{n}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let id = cluster.get(txn, ReadMode::Optimistic, &keys);
        cluster.settle();
        id
    };
    let first = read("a", 60_000);
    let refused = [(); 3].map(|()| read("b", 60_000));
    let second = read("b", 40_000);
    for id in refused {
        assert!(matches!(cluster.failed(id), TxnError::TooLarge(_)));
    }
    assert_eq!([first, second].map(|id| cluster.rows(id).0.len()), [60_000, 40_000], "there was room for these");
    let id = cluster.commit(txn, &[("c", "1")]);
    cluster.settle();
    cluster.committed(id);
}
