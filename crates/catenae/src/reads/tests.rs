//! Reads of several pages, and what is collected between two of them.

use super::*;
use crate::bench::Bench;
use crate::config::Config;
use crate::lone::{Lone, Said, answer};
use crate::message::Request;
use rhumb_core::{Batch, RegionId, Row, SiteId, Value};

/// A site that keeps four epochs, with more rows than a page has.
fn site() -> Lone {
    let mut lone = Lone::with(SiteId { region: RegionId(0), shard: 0 }, Config { keep_epochs: 4, ..Lone::config() });
    let mut batch = Batch::new();
    (0..1_500).for_each(|row| batch.put_version(key(row), Timestamp::from_bits(1), Some("v".into())));
    lone.write(&batch);
    pass(&mut lone, 1);
    lone
}

fn key(row: u32) -> Key {
    Key::new(format!("k{row:05}").into_bytes())
}

fn pass(lone: &mut Lone, epochs: u64) {
    for _ in 0..epochs {
        lone.end_epoch();
        let sealed = lone.sealed();
        lone.hear_nothing_of_others(sealed, &[]);
    }
}

/// What a read of all rows is answered if so many epochs are settled between its two pages.
fn read_with_epochs_between_pages(epochs: u64) -> Vec<Said> {
    let mut lone = site();
    lone.hold_loads();
    let ranges = vec![(KeyRange::prefix(b"k"), 2_000)];
    lone.ask(7, Request::Read { keys: vec![], ranges, reverse: false, freshness: Freshness::Settled });
    assert_eq!(lone.release_load(), [], "a page is not all");
    pass(&mut lone, epochs);
    lone.release_load()
}

#[test]
fn a_read_fails_whose_snapshot_is_collected_between_two_pages() {
    let said = read_with_epochs_between_pages(6);
    assert!(matches!(answer(&said, 7), Some(Answer::Failed(TxnError::OutOfRange(_)))), "{said:?}");
}

#[test]
fn a_read_ends_whose_snapshot_is_kept_until_its_last_page() {
    let said = read_with_epochs_between_pages(3);
    assert!(matches!(answer(&said, 7), Some(Answer::Rows { ranges, .. }) if ranges[0].len() == 1_500), "{said:?}");
}

#[test]
fn a_read_ends_at_a_number_of_bytes_and_says_so() {
    let mut lone = site();
    let large = |row: u32| (key(row), Timestamp::from_bits(2), Some(Value::new(vec![0; 1 << 20])));
    let mut batch = Batch::new();
    (1_000..1_100).map(large).for_each(|(key, version, value)| batch.put_version(key, version, value));
    lone.write(&batch);
    pass(&mut lone, 1);
    let most = (READ_BYTES_MAX >> 20) + 5;
    let mut read = |keys: Vec<Key>, ranges| {
        let said = lone.ask(7, Request::Read { keys, ranges, reverse: false, freshness: Freshness::Settled });
        let Some(Answer::Rows { rows, ranges, more, .. }) = answer(&said, 7) else { panic!("{said:?}") };
        (rows.len(), ranges.iter().map(Vec::len).sum::<usize>(), *more)
    };
    let (keys, _, more) = read((1_000..1_100).map(key).collect(), vec![]);
    assert!(more && (1..=most).contains(&keys), "{keys}");
    let (_, rows, more) = read(vec![], vec![(KeyRange::prefix(b"k"), 2_000)]);
    assert!(more && (1_000..=1_000 + most).contains(&rows), "{rows}");
    assert_eq!(read(vec![key(1_000)], vec![(KeyRange::prefix(b"k"), 1_000)]), (1, 1_000, false));
}

#[test]
fn a_strict_read_fails_in_time_if_the_others_do_not_confirm_its_epoch() {
    let config = Config::default();
    let deadline = config.deadline_epochs;
    let mut lone = Lone::with(SiteId { region: RegionId(0), shard: 0 }, config);
    lone.ask(7, Request::Read { keys: vec![key(0)], ranges: vec![], reverse: false, freshness: Freshness::Strict });
    // The site seals an epoch for it, and nobody else says anything.
    assert_eq!(answer(&lone.end_epochs(deadline - 1), 7), None);
    let said = lone.end_epochs(2);
    assert!(matches!(answer(&said, 7), Some(Answer::Failed(TxnError::Unavailable(_)))), "{said:?}");
    assert_eq!(lone.table("reads"), 0);
}

fn wanted() -> Wanted {
    Wanted { keys: vec![key(0)], ranges: vec![], reverse: false }
}

#[test]
fn the_role_serves_what_is_settled_at_once_and_has_an_epoch_sealed_for_a_strict_read() {
    let mut bench = Bench::new(SiteId::new(0, 0));
    let epochs = bench.log().epochs;
    let mut reads = Reads::default();
    let at = Epoch::NONE.snapshot(Lone::config().epoch);
    let (strict, effects) = bench.act(|cx| reads.on_read(7, wanted(), Freshness::Settled, &epochs, cx));
    assert_eq!((strict.is_none(), effects), (true, vec![format!("load rows {} at {at}", key(0))]));
    let rows = vec![Row { key: key(0), version: Timestamp::ZERO, value: None }];
    let loaded = Loaded::Rows { rows, more: false };
    assert_eq!(bench.effects(|cx| reads.on_loaded(1, loaded, &epochs, cx)), [format!("answer 7: 1 rows at {at}")]);
    assert!(bench.quietly(|cx| reads.on_read(8, wanted(), Freshness::Strict, &epochs, cx)).is_some());
    assert!(reads.are_idle());
}

#[test]
fn the_role_keeps_a_read_until_its_epoch_is_settled_or_gives_it_up_in_time() {
    let mut bench = Bench::new(SiteId::new(0, 0));
    let mut epochs = bench.log().epochs;
    let mut reads = Reads::default();
    let length = Lone::config().epoch;
    let at = Epoch(1).timestamp(length, 0);
    for id in [7, 8] {
        bench.quietly(|cx| {
            cx.ticks = id;
            reads.on_read(id, wanted(), Freshness::After(at), &epochs, cx)
        });
    }
    let why = "the epoch that the read waits for was not settled in this region in time";
    assert_eq!(bench.effects(|cx| reads.expire(0, 7, cx)), [format!("answer 7: failed: {}", TxnError::Unavailable(why.into()))]);
    epochs.complete(Epoch(1));
    assert_eq!(epochs.settle(None), Some(Epoch(1)));
    let snapshot = Epoch(1).snapshot(length);
    assert_eq!(bench.effects(|cx| reads.on_settled(&epochs, cx)), [format!("load rows {} at {snapshot}", key(0))]);
}
