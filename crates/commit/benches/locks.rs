//! How long a large transaction takes to lock its rows, in the lock table of wound-wait: `cargo bench --package rhumb-commit --bench locks`.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark is about time")]

use rhumb_commit::wound_wait::{Lock, Mode, Phase, WoundWait, one_key};
use rhumb_core::{Key, SiteId, Timestamp, TxnId};
use std::time::Instant;

/// As many rows as a transaction may write.
const ROWS: usize = 100_000;

fn main() {
    let keys: Vec<Key> = (0..ROWS).map(|n| format!("table/index/{n:012}").as_str().into()).collect();
    let txn = TxnId { began: Timestamp::from_bits(1), gateway: SiteId::new(0, 0) };
    let mut table = WoundWait::default();
    let mut measure = |what: &str, step: &dyn Fn(&mut WoundWait)| {
        let begun = Instant::now();
        step(&mut table);
        println!("{ROWS} rows {what}: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    };
    let ask = |table: &mut WoundWait, mode, phase| {
        for key in &keys {
            table.request(txn, Lock { range: one_key(key), mode }, phase).expect("nobody else asks");
        }
    };
    measure("locked shared", &|table| ask(table, Mode::Shared, Phase::Growing));
    measure("locked exclusively", &|table| ask(table, Mode::Exclusive, Phase::Preparing));
    measure("prepared and released", &|table| {
        table.prepare(txn);
        drop(table.release(txn));
    });
}
