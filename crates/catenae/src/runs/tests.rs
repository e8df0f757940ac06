//! How many transactions read their rows at once.

use super::*;
use crate::bench::{Bench, add, identifier};
use crate::lone::{Lone, answer};
use rhumb_commit::one_shot::execution::{Output, VALUES_BYTES_MAX};
use rhumb_commit::one_shot::operation::Operation;
use rhumb_core::{Key, KeyRange, RegionId, Row, SiteId, Value};

const TRANSACTIONS: u64 = 100;

/// A site on which that many transactions have become ready at once, each for the rows under its own prefix; its loads are held.
fn site_with_ready_transactions(operation: impl Fn(u64) -> Operation, rows: &Batch) -> Lone {
    let mut lone = Lone::new(SiteId { region: RegionId(0), shard: 0 });
    lone.write(rows);
    lone.hold_loads();
    (0..TRANSACTIONS).for_each(|number| drop(lone.run(number, Transaction::new(vec![operation(number)]))));
    lone.end_epoch();
    let sealed = lone.sealed();
    lone.hear_nothing_of_others(sealed, &[]);
    lone
}

fn run_all(lone: &mut Lone) -> (Vec<u64>, usize) {
    let (mut answered, mut most) = (Vec::new(), 0);
    while lone.held_loads() > 0 {
        most = most.max(lone.held_loads());
        let said = lone.release_load();
        answered.extend((0..TRANSACTIONS).filter(|id| matches!(answer(&said, *id), Some(Answer::Ran { .. }))));
    }
    (answered, most)
}

#[test]
fn a_bounded_number_of_transactions_is_run_at_once_in_their_order() {
    let read = |number: u64| Operation::Read { key: Key::new(format!("k{number}").into_bytes()) };
    let mut lone = site_with_ready_transactions(read, &Batch::new());
    let (answered, most) = run_all(&mut lone);
    assert_eq!(most, RUN_LOADS_MAX);
    // The others are of the other coordinator's namespaces.
    assert!(answered.is_sorted() && answered.len() > 2 * RUN_LOADS_MAX, "{answered:?}");
}

#[test]
fn beyond_the_bytes_of_rows_only_one_transaction_goes_on_reading() {
    let mut rows = Batch::new();
    // Each reads more than half of the bound, in many pages.
    let value = Value::new(vec![0; RUN_BYTES_MAX / 1_024]);
    for row in 0..600 {
        rows.put_version(Key::new(format!("k{row:05}").into_bytes()), Timestamp::from_bits(1), Some(value.clone()));
    }
    let scan = |_| Operation::Scan { range: KeyRange::prefix(b"k"), limit: 1_000 };
    let mut lone = site_with_ready_transactions(scan, &rows);
    // Loads were allowed while little was known of their sizes; each that is answered brings a page, until the bound is reached.
    for _ in 0..4 * RUN_LOADS_MAX {
        if lone.held_loads() > 1 {
            lone.release_load();
        }
    }
    assert_eq!(lone.held_loads(), 1, "nobody else reads on beyond the bound");
    let (mut answered, mut most_after_bound) = (Vec::new(), 0);
    while lone.held_loads() > 0 && answered.is_empty() {
        most_after_bound = most_after_bound.max(lone.held_loads());
        let said = lone.release_load();
        answered.extend((0..TRANSACTIONS).filter(|id| matches!(answer(&said, *id), Some(Answer::Ran { .. }))));
    }
    assert_eq!(most_after_bound, 1, "one that has begun reads on alone until it ends");
    let (rest, _) = run_all(&mut lone);
    assert_eq!(answered.len() + rest.len(), TRANSACTIONS as usize);
}

#[test]
fn a_transaction_reads_a_bounded_number_of_bytes_and_is_rejected_beyond() {
    let mut rows = Batch::new();
    let value = Value::new(vec![0; 1 << 20]);
    let keys: Vec<Key> = (0..VALUES_BYTES_MAX / value.0.len() + 1).map(|row| Key::new(format!("k{row:05}").into_bytes())).collect();
    keys.iter().for_each(|key| rows.put_version(key.clone(), Timestamp::from_bits(1), Some(value.clone())));
    let run = |operations: Vec<Operation>| {
        let mut lone = Lone::new(SiteId { region: RegionId(0), shard: 0 });
        lone.write(&rows);
        lone.hold_loads();
        drop(lone.run(0, Transaction::new(operations)));
        lone.end_epoch();
        let sealed = lone.sealed();
        lone.hear_nothing_of_others(sealed, &[]);
        let mut loads = 0;
        loop {
            assert!(lone.held_loads() > 0, "it has not ended");
            loads += 1;
            let said = lone.release_load();
            if let Some(Answer::Ran { outcome, .. }) = answer(&said, 0) {
                return (outcome.clone(), loads);
            }
        }
    };
    let all = |operation: fn(Key) -> Operation| keys.iter().cloned().map(operation).collect::<Vec<_>>();
    let (outcome, loads) = run(all(|key| Operation::Read { key }));
    assert_eq!(outcome, Outcome::Rejected(Rejection::TooMuchRead));
    assert!(loads > 10, "they come in pages: {loads}");
    let (outcome, _) = run(vec![Operation::Scan { range: KeyRange::prefix(b"k"), limit: 1_000 }]);
    assert_eq!(outcome, Outcome::Rejected(Rejection::TooMuchRead));
    // What only has to be there, or to be as old as it was, is not kept in memory.
    let rows = keys.len() as u32;
    let unchanged = Operation::Unchanged { range: KeyRange::prefix(b"k"), rows, since: Timestamp::from_bits(1) };
    for operations in [all(|key| Operation::Delete { key }), vec![unchanged]] {
        assert!(matches!(run(operations).0, Outcome::Done(_)));
    }
}

const STREAM: StreamId = StreamId::first(RegionId(0));

/// What a load of key `k` finds at epoch 1, of which nothing was there before.
fn nothing_there() -> Loaded {
    Loaded::Rows { rows: vec![Row { key: "k".into(), version: Timestamp::ZERO, value: None }], more: false }
}

#[test]
fn the_role_loads_writes_and_answers_and_those_that_wait_follow() {
    let mut bench = Bench::new(SiteId::new(0, 0));
    let mut log = bench.log_with(STREAM, vec![add(&["k"])]);
    let runs = &mut log.runs;
    bench.quietly(|_| runs.await_runs([Agreed { identifier: identifier(STREAM, 0), client: 7, since: 0 }]));
    let next = Identifier { epoch: Epoch(2), ..identifier(STREAM, 0) };
    runs.agree(&[add(&["k"])]);
    assert!(runs.register(vec![(next, add(&["k"]))]).is_empty(), "of another epoch");
    let at = Epoch(1).timestamp(Lone::config().epoch, 0);
    assert_eq!(bench.effects(|cx| runs.run_ready(cx)), [format!("load rows k at {}", at.previous())]);
    let later = Epoch(2).timestamp(Lone::config().epoch, 0);
    let ran = Outcome::Done(vec![Output::Number(1)]);
    let expected = [
        "sync +k".to_string(),
        format!("answer 7: ran at {at}: {ran:?}"),
        format!("load rows k at {}", later.previous()),
        "agree on transaction e1.r0.0".to_string(),
    ];
    assert_eq!(bench.effects(|cx| runs.on_loaded(1, nothing_there(), cx)), expected);
    assert_eq!((runs.backlog().len(), runs.ledger().first_unsettled()), (1, Some(Epoch(2))));
    assert_eq!(
        bench.effects(|cx| runs.on_loaded(2, nothing_there(), cx)),
        ["sync +k", "agree on transaction e2.r0.0"],
        "nobody here asked for it"
    );
    assert!(runs.are_idle() && runs.backlog().len() == 0);
}

#[test]
fn the_role_tells_clients_that_have_waited_too_long_that_the_outcome_is_unknown() {
    let mut bench = Bench::new(SiteId::new(0, 0));
    let mut runs = bench.log_with(STREAM, vec![add(&["k"])]).runs;
    runs.await_runs([0, 1].map(|place| Agreed { identifier: identifier(STREAM, place), client: place.into(), since: place.into() }));
    let unknown = TxnError::Unknown("it is agreed on, but not settled in time".into());
    assert_eq!(bench.effects(|cx| runs.expire(0, cx)), [format!("answer 0: failed: {unknown}")]);
}
