//! How many transactions read their rows at once.

use crate::config::{RUN_BYTES_MAX, RUN_LOADS_MAX};
use crate::lone::{Lone, answer};
use crate::message::Answer;
use rhumb_commit::one_shot::execution::VALUES_BYTES_MAX;
use rhumb_commit::one_shot::execution::{Outcome, Rejection};
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::{Batch, Key, KeyRange, RegionId, SiteId, Timestamp, Value};

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
