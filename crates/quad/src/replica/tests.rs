//! A replica alone: what gateways say, and what follows.

use super::*;
use crate::config::Config;
use crate::configuration::Cause;
use crate::message::Query;
use crate::testing::{Bench, site, txn};
use rhumb_core::Timestamp;
use rhumb_core::actor::Loaded;
use std::collections::BTreeSet;

fn bench() -> (Bench, Replica) {
    (Bench::new(2, 3, Config::default()), Replica::default())
}

fn write() -> Vec<(Key, Option<Value>)> {
    vec![("k".into(), Some("v".into()))]
}

fn read(number: u32) -> (u32, Query) {
    (number, Query::Keys(vec!["k".into()]))
}

#[test]
fn a_commit_is_shown_once_it_stands_at_all_who_are_prepared() {
    let (mut bench, mut replica) = bench();
    let txn = txn(5, 1);
    bench.step(|cx| replica.on_prepare(txn, None, write(), cx));
    assert_eq!(bench.lines(), ["sync +prepared; then to r1.0: e1 prepared 0.000000+5@r1.0 above 1.000000+1"]);
    bench.step(|cx| replica.on_prepare(txn, None, write(), cx));
    assert_eq!(bench.lines(), ["sync; then to r1.0: e1 prepared 0.000000+5@r1.0 above 1.000000+2"], "it came twice");
    bench.step(|cx| replica.on_commit(txn, Timestamp::from_bits(7), BTreeSet::from([site(0), site(1)]), cx));
    assert_eq!(bench.lines(), ["sync +prepared; then to r0.0: e1 committed 0.000000+5@r1.0; then to r1.0: e1 committed 0.000000+5@r1.0"]);
    bench.step(|cx| replica.on_abort(txn, cx));
    bench.step(|cx| replica.on_confirmed_commit(site(0), txn, cx));
    assert_eq!(bench.lines().len(), 0, "what has committed does not abort");
    bench.step(|cx| replica.on_confirmed_commit(site(1), txn, cx));
    assert_eq!(bench.lines(), ["sync -prepared +difference +k", "agree on transaction 0.000000+5@r1.0"]);
    assert_eq!((replica.prepared(), replica.written()), (0, 1));
}

#[test]
fn rows_leave_under_a_shared_lock_that_is_still_held() {
    let (mut bench, mut replica) = bench();
    let (old, young) = (txn(5, 1), txn(9, 1));
    let (number, query) = read(1);
    bench.step(|cx| replica.on_read(young, number, query, cx));
    assert_eq!(bench.lines(), ["load rows k"]);
    let session = replica.sessions[&young].name;
    let rows = || Loaded::Rows { rows: Vec::new(), more: false };
    bench.step(|cx| replica.on_read_loaded(young, 1, session, rows(), cx));
    assert_eq!(bench.lines(), ["to r1.0: e1 rows 0.000000+9@r1.0 1: 0"]);
    bench.step(|cx| replica.on_prepare(old, None, write(), cx));
    assert_eq!(
        bench.lines(),
        ["to r1.0: e1 refused 0.000000+9@r1.0", "sync +prepared; then to r1.0: e1 prepared 0.000000+5@r1.0 above 1.000000+2"],
        "the older one takes its lock"
    );
    bench.step(|cx| replica.on_read_loaded(young, 1, session, rows(), cx));
    bench.step(|cx| replica.on_confirm(young, session, cx));
    assert_eq!(bench.lines(), ["to r1.0: e1 refused 0.000000+9@r1.0"]);
}

#[test]
fn a_transaction_prepares_in_the_session_in_which_it_read() {
    let (mut bench, mut replica) = bench();
    let txn = txn(5, 1);
    bench.step(|cx| replica.on_prepare(txn, Some(Timestamp::from_bits(3)), write(), cx));
    assert_eq!(bench.lines(), ["to r1.0: e1 refused 0.000000+5@r1.0"], "it lost that session");
}

#[test]
fn who_is_in_doubt_asks_and_who_is_silent_loses_its_locks() {
    let (mut bench, mut replica) = bench();
    let (prepared, idle) = (txn(5, 1), txn(6, 2));
    bench.step(|cx| replica.on_prepare(prepared, None, write(), cx));
    bench.step(|cx| replica.on_read(idle, 1, Query::Keys(vec!["j".into()]), cx));
    bench.lines();
    bench.shared.ticks = bench.shared.config.idle_ticks;
    bench.step(|cx| replica.tick(cx));
    assert_eq!(bench.lines(), ["to r1.0: e1 inquire 0.000000+5@r1.0", "to r2.0: e1 refused 0.000000+6@r2.0"]);
}

#[test]
fn locks_that_a_gateway_which_is_down_keeps_end_the_epoch() {
    let (mut bench, mut replica) = bench();
    bench.step(|cx| replica.on_prepare(txn(5, 1), None, write(), cx));
    bench.shared.ticks = bench.shared.config.orphaned_ticks;
    let tick = bench.shared.ticks;
    bench.shared.peers.answer(site(1), tick, Vec::new());
    assert_eq!(replica.end_of_orphans(&bench.shared), None, "it is up");
    bench.shared.ticks *= 2;
    let goal = replica.end_of_orphans(&bench.shared).expect("it is silent");
    assert_eq!((goal.cause, goal.quorums), (Cause::Orphans, bench.shared.configuration.quorums.clone()));
}
