//! Transactions over the actors of Catenae, hosted by three sites in this process.

use crate::common::{configure, incarnations, secret, setup};
use rhumb_catenae::Site as Catenae;
use rhumb_catenae::administration::Administration;
use rhumb_commit::one_shot::execution::{Output, Rejection};
use rhumb_commit::one_shot::operation::Operation;
use rhumb_commit::transaction::{Committed, Gateway as _, Operated, ReadMode, Transaction, TxnError};
use rhumb_core::{Key, KeyRange, Timestamp, Value, fields};
use rhumb_node::clock::Clock;
use rhumb_node::gateway::catenae::Gateway;
use rhumb_node::metrics::Metrics;
use rhumb_node::service::Service;
use rhumb_node::site::Site;
use rhumb_store::{MemoryEngine, Store};
use std::sync::Arc;
use std::time::Duration;

/// Running sites, and the gateway of each.
async fn cluster() -> (Vec<Site>, Vec<Gateway>) {
    let (configs, ports) = configure(&["a", "b", "c"], None).await;
    let started = configs.iter().zip(ports).map(|(config, port)| {
        let setup = setup(config);
        let actor = Catenae::new(setup.site, Arc::new(setup.topology.clone()), setup.catenae.clone());
        let mut site = Site::new(setup, secret(config), incarnations(config), Clock::start(), Arc::new(Metrics::new())).expect("threads");
        let store = Store::open(MemoryEngine::new()).expect("a store");
        let handle = site.host(Service::Catenae, store, actor).expect("threads");
        site.open(port);
        let gateway = Gateway::new(handle, site.status());
        (site, gateway)
    });
    started.unzip()
}

type Txn = Box<dyn Transaction>;

async fn begin(gateway: &Gateway, mode: ReadMode) -> Txn {
    gateway.begin(mode).await.expect("begun")
}

async fn write(gateway: &Gateway, rows: &[(&str, Option<&str>)]) -> Committed {
    let mut txn = begin(gateway, ReadMode::Locking).await;
    for (key, value) in rows {
        match value {
            Some(value) => txn.put((*key).into(), Value::from(*value)).expect("buffered"),
            None => txn.delete((*key).into()).expect("buffered"),
        }
    }
    txn.commit().await.expect("committed")
}

async fn get(txn: &mut Txn, key: &str) -> Option<String> {
    let row = txn.get(&[key.into()]).await.expect("read").remove(0);
    row.value.map(|value| String::from_utf8_lossy(&value.0).into_owned())
}

async fn scan(txn: &mut Txn, limit: usize, reverse: bool) -> Vec<String> {
    let found = txn.scan(KeyRange::prefix(b"k"), limit, reverse).await.expect("read");
    found.rows.iter().map(|row| row.key.to_string()).collect()
}

async fn conflicts(txn: Txn) -> bool {
    matches!(txn.commit().await, Err(TxnError::Conflict(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn all_regions_read_what_one_was_told() {
    let (_sites, gateways) = cluster().await;
    write(&gateways[0], &[("k1", Some("one")), ("k2", Some("two")), ("k4", Some("four"))]).await;
    for gateway in &gateways {
        for mode in [ReadMode::Locking, ReadMode::Snapshot, ReadMode::Active] {
            let mut txn = begin(gateway, mode).await;
            assert_eq!(get(&mut txn, "k2").await.as_deref(), Some("two"));
            assert_eq!((get(&mut txn, "k3").await, txn.trips()), (None, 1));
            assert_eq!(scan(&mut txn, 9, false).await, ["k1", "k2", "k4"]);
            assert_eq!(
                (scan(&mut txn, 2, false).await, scan(&mut txn, 2, true).await),
                (vec!["k1".into(), "k2".into()], vec!["k4".into(), "k2".into()])
            );
            assert_eq!(txn.commit().await.expect("nothing to validate").trips, 1);
        }
    }
    let mut txn = begin(&gateways[1], ReadMode::Snapshot).await;
    assert!(matches!(txn.put("k1".into(), "x".into()), Err(TxnError::Invalid(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_reads_one_snapshot_and_its_own_writes() {
    let (_sites, gateways) = cluster().await;
    write(&gateways[0], &[("k1", Some("one")), ("k2", Some("two")), ("k3", Some("three"))]).await;
    let mut txn = begin(&gateways[1], ReadMode::Locking).await;
    assert_eq!(get(&mut txn, "k1").await.as_deref(), Some("one"));
    write(&gateways[2], &[("k2", Some("other")), ("k5", Some("five"))]).await;
    assert_eq!(get(&mut txn, "k2").await.as_deref(), Some("two"));
    txn.delete("k1".into()).expect("buffered");
    txn.put("k4".into(), "four".into()).expect("buffered");
    assert_eq!((get(&mut txn, "k1").await, get(&mut txn, "k4").await.as_deref()), (None, Some("four")));
    assert_eq!(
        (scan(&mut txn, 2, false).await, scan(&mut txn, 2, true).await),
        (vec!["k2".into(), "k3".into()], vec!["k4".into(), "k3".into()])
    );
    assert!(conflicts(txn).await, "k2 has changed, and k5 came");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_read_must_not_have_changed() {
    let (_sites, gateways) = cluster().await;
    let first = write(&gateways[0], &[("k1", Some("one")), ("k2", Some("two")), ("k3", Some("three"))]).await;
    let cases = [
        ("first two", ("k3", Some("changed")), false),
        ("first two", ("k11", Some("came")), true),
        ("last one", ("k11", None), false),
        ("last one", ("k4", Some("came")), true),
        ("last one", ("k4", None), true),
        ("one missing", ("k9", Some("came")), true),
    ];
    for (read, other, refused) in cases {
        let mut txn = begin(&gateways[1], ReadMode::Locking).await;
        match read {
            "first two" => drop(scan(&mut txn, 2, false).await),
            "last one" => drop(scan(&mut txn, 1, true).await),
            _ => assert_eq!(get(&mut txn, "k9").await, None),
        }
        write(&gateways[2], &[other]).await;
        txn.put("other".into(), "x".into()).expect("buffered");
        assert_eq!(conflicts(txn).await, refused, "{read}: {other:?}");
    }
    // A descriptor that somebody has cached.
    for (version, refused) in [(first.at, false), (first.at.previous(), true)] {
        let mut txn = begin(&gateways[1], ReadMode::Optimistic).await;
        txn.expect("k1".into(), version);
        txn.put("other".into(), "x".into()).expect("buffered");
        assert_eq!(conflicts(txn).await, refused);
        let mut txn = begin(&gateways[1], ReadMode::Snapshot).await;
        txn.expect("k1".into(), version);
        assert_eq!(conflicts(txn).await, refused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_snapshot_moves_on_if_nothing_read_has_changed() {
    let (_sites, gateways) = cluster().await;
    let first = write(&gateways[0], &[("k1", Some("one")), ("k2", Some("two"))]).await;
    let begun = async || {
        let mut txn = begin(&gateways[1], ReadMode::Optimistic).await;
        txn.follow(first.at);
        assert_eq!((get(&mut txn, "k1").await.as_deref(), scan(&mut txn, 1, true).await.len(), txn.trips()), (Some("one"), 1, 0));
        txn
    };
    let (mut moves, mut stays, mut validated, unvalidated) = (begun().await, begun().await, begun().await, begun().await);
    write(&gateways[2], &[("a", Some("new"))]).await;
    moves.set_mode(ReadMode::Locking).expect("allowed");
    assert_eq!((get(&mut moves, "a").await.as_deref(), moves.trips()), (Some("new"), 1));
    write(&gateways[2], &[("k3", Some("new"))]).await;
    stays.set_mode(ReadMode::Locking).expect("allowed");
    assert!(matches!(stays.get(&["a".into()]).await, Err(TxnError::Conflict(_))));
    validated.forget_writes();
    assert!(conflicts(validated).await);
    assert!(!conflicts(unvalidated).await, "what it read was so, once");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_can_be_read_and_transactions_have_bounds() {
    let (_sites, gateways) = cluster().await;
    let first = write(&gateways[0], &[("k1", Some("one"))]).await;
    write(&gateways[1], &[("k1", Some("two"))]).await;
    let mut txn = begin(&gateways[2], ReadMode::Stale(first.at)).await;
    assert_eq!((get(&mut txn, "k1").await.as_deref(), txn.trips()), (Some("one"), 0));
    let mut txn = begin(&gateways[2], ReadMode::Stale(Timestamp::from_bits(1))).await;
    assert!(matches!(txn.get(&["k1".into()]).await, Err(TxnError::OutOfRange(_))));
    let mut txn = begin(&gateways[0], ReadMode::Locking).await;
    for number in 0..4_097 {
        txn.put(Key::from(format!("{number}").as_str()), "x".into()).expect("buffered");
    }
    let Err(TxnError::TooLarge(why)) = txn.commit().await else { panic!("too many") };
    let why = why.to_string();
    assert!(why.contains("4097") && why.contains("split"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_that_are_asked_nothing_fall_silent_and_wake_when_one_is_asked() {
    let (_sites, gateways) = cluster().await;
    write(&gateways[0], &[("k1", Some("one"))]).await;
    let sealed = async || {
        let mut all = Vec::new();
        for gateway in &gateways {
            all.push(gateway.epochs().await.expect("answered").status.coordinator);
        }
        all
    };
    let mut patience = 100;
    loop {
        let before = sealed().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        if sealed().await == before {
            break;
        }
        patience -= 1;
        assert!(patience > 0, "they never fall silent");
    }
    write(&gateways[1], &[("k1", Some("two"))]).await;
    for gateway in &gateways {
        assert_eq!(get(&mut begin(gateway, ReadMode::Snapshot).await, "k1").await.as_deref(), Some("two"));
    }
}

fn field(number: i128) -> Value {
    let mut value = vec![fields::FORMAT];
    fields::push(&mut value, 3, &fields::integer_bytes(number));
    Value::new(value)
}

fn adding(key: &str, amount: i128) -> Operation {
    let change = fields::Change { field: 3, by: fields::By::Adding { amount, least: 0, most: 1_000 } };
    Operation::Amend { key: key.into(), changes: vec![change] }
}

async fn operate(gateway: &Gateway, expected: &[(&str, Timestamp)], operations: Vec<Operation>) -> Result<Operated, TxnError> {
    let mut txn = begin(gateway, ReadMode::Optimistic).await;
    expected.iter().for_each(|(key, version)| txn.expect((*key).into(), *version));
    txn.operate(operations).await
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_meet_the_rows_as_they_are_at_the_commit() {
    let (_sites, gateways) = cluster().await;
    let insert = Operation::Insert { key: "n".into(), value: field(0) };
    let Ok(Operated::Done(table, _)) = operate(&gateways[0], &[], vec![insert.clone()]).await else { panic!("it was not there") };
    // All at once, from everywhere, and nobody fails.
    let expected = [("n", table.at)];
    let add = |gateway| operate(gateway, &expected, vec![adding("m", 1), Operation::Read { key: "m".into() }]);
    write(&gateways[1], &[("m", Some("\u{1}\u{3}\u{1}\u{5}"))]).await;
    let all = futures::future::join_all((0..12).map(|client| add(&gateways[client % 3]))).await;
    let mut sums: Vec<Option<Value>> = Vec::new();
    for operated in all {
        let Ok(Operated::Done(committed, mut outputs)) = operated else { panic!("{operated:?}") };
        let (Some(Output::Row(row)), 1) = (outputs.pop(), committed.trips) else { panic!("one trip, and a row read last") };
        sums.push(row.value);
    }
    sums.sort();
    assert_eq!(sums, (6..18).map(|sum| Some(field(sum))).collect::<Vec<_>>());
    // What fails says so, and what was expected beforehand is a conflict.
    let Ok(Operated::Failed { place: 1, why }) = operate(&gateways[1], &[], vec![adding("m", 1), insert]).await else {
        panic!("it is there")
    };
    assert!(matches!(why, Rejection::Duplicate { .. }));
    let Ok(Operated::Failed { place: 0, why: Rejection::OutOfBounds { field: 3, .. } }) =
        operate(&gateways[2], &[], vec![adding("m", 1_000)]).await
    else {
        panic!("beyond its bounds")
    };
    let stale = operate(&gateways[2], &[("n", Timestamp::ZERO)], vec![adding("m", 1)]).await;
    assert!(matches!(stale, Err(TxnError::Conflict(_))), "{stale:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_are_no_transaction_are_refused_with_the_reason() {
    let (_sites, gateways) = cluster().await;
    let many = (0..4_097).map(|number: u32| adding(&format!("k{number}"), 1)).collect();
    for (operations, reason) in [
        (many, "a transaction has at most 4096 operations; this one has 4097"),
        (vec![adding("a", 1), adding("b", 1), adding("a", 1)], "operation 3 comes back to key a after others"),
        (vec![Operation::Scan { range: KeyRange::prefix(b"k"), limit: 1_001 }], "a scan returns 1 to 1000 rows, not 1001"),
    ] {
        let refused = operate(&gateways[0], &[], operations).await.expect_err("refused");
        assert!(refused.to_string().contains(reason), "{refused}");
    }
}
