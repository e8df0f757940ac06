//! What fits into an entry, counted as it is encoded.

use super::*;
use crate::config::{BATCH_BYTES_MAX, ENTRY_BYTES_MAX};
use crate::message::{Entry, Identifier};
use crate::stream_id::StreamId;
use rhumb_commit::one_shot::operation::{Operation, TXN_BYTES_MAX, Transaction};
use rhumb_core::fields::{By, Change};
use rhumb_core::{Key, RegionId, Value};

const STREAM: StreamId = StreamId::first(RegionId(0));

/// Sets so many columns of so many rows to NULL.
fn nulls(rows: usize, columns: u32) -> Transaction {
    let changes: Vec<Change> = (1_000..1_000 + columns).map(|field| Change { field, by: By::Setting(None) }).collect();
    let amend = |row| Operation::Amend { key: Key::from(format!("r{row:05}").as_str()), changes: changes.clone() };
    Transaction::new((0..rows).map(amend).collect())
}

fn asked(transaction: Transaction) -> Asked {
    Asked { by: Asker::Client(0), transaction, since: 0, stays: false }
}

fn order(epoch: u64, count: u16) -> Order {
    let identifier = |place| Identifier { epoch: Epoch(epoch), stream: STREAM, place };
    Order { epoch: Epoch(epoch), sequence: (0..count).map(identifier).collect() }
}

#[test]
fn a_batch_holds_no_more_than_an_entry_however_little_is_in_it() {
    let transaction = nulls(1_000, 400);
    assert!((1 << 20..TXN_BYTES_MAX).contains(&transaction.bytes()) && transaction.validate().is_ok());
    assert!(nulls(4_000, 400).validate().is_err(), "what no entry holds is refused");
    let mut state = StreamState::default();
    (0..6).for_each(|_| state.queue.push_back(asked(transaction.clone())));
    let sealed: Vec<usize> =
        std::iter::from_fn(|| Some(state.take_batch(Epoch(7), BATCH_BYTES_MAX).len()).filter(|count| *count > 0)).collect();
    assert_eq!(sealed, [2, 2, 2]);
    let entry = Entry { author: STREAM.head(), epoch: Epoch(7), batch: vec![transaction; 2], orders: vec![] };
    assert!(entry.bytes() < ENTRY_BYTES_MAX);
}

#[test]
fn votes_are_cast_as_they_fit() {
    let mut state =
        StreamState { orders: vec![order(1, 9), order(30, u16::MAX), order(40, 20_000), order(41, 20_000)], ..StreamState::default() };
    state.orders.extend((50..60).map(|epoch| order(epoch, 20_000)));
    let counts = |order: &Order| order.epoch > Epoch(20);
    let mut taken = Vec::new();
    while !state.orders.is_empty() {
        let orders = state.take_orders(counts);
        let bytes: usize = orders.iter().map(encoded_bytes).sum();
        assert!(!orders.is_empty() && bytes <= VOTES_BYTES_MAX);
        taken.extend(orders.into_iter().map(|order| order.epoch.0));
    }
    assert_eq!(taken, [30, 40, 41, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59], "in their order, without those that count no more");
}

#[test]
fn a_queue_is_full_by_bytes_too() {
    let mut queue = Queue::default();
    let large = Transaction::new(vec![Operation::Write { key: "k".into(), value: Value::new(vec![0; 3 << 20]) }]);
    let count = (0..)
        .take_while(|_| {
            queue.push_back(asked(large.clone()));
            !queue.is_full()
        })
        .count();
    assert_eq!(count, QUEUE_BYTES_MAX / large.bytes());
    queue.pop();
    assert!(!queue.is_full());
    while queue.pop().is_some() {}
    assert_eq!(queue.bytes, 0);
}
