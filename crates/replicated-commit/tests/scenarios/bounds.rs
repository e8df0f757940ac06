//! Bounds that hold whatever clients do: of messages in bytes on the wire, of the log, of what a gateway remembers of others.

use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, R0, R1, R2};
use rhumb_commit::placement::{Change, Coordinators, Placement};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::Span;
use rhumb_replicated_commit::records::LOG;
use std::collections::BTreeMap;

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
