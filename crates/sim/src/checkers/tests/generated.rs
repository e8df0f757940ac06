//! Generated histories: clean ones pass every checker, and each kind of damage done to them is caught.

use super::super::violation::{Anomaly, Violation};
use super::super::{no_lost_write, no_phantom, stale_reads, strict_serializability};
use super::model::{Run, Shape, run};
use crate::history::{Cell, Mode, Op, Txn, TxnNo};
use rhumb_core::{Key, Rng};

const SEEDS: u64 = 60;

fn shape(seed: u64) -> Shape {
    Shape { txns: 150, ops_max: 6, keys: 2 + seed % 7, scanned: 3, versions: seed.is_multiple_of(2), lag: 0 }
}

/// Damages the history; false if it offers no place for that.
type Damage = fn(&mut Run, &mut Rng) -> bool;
/// A checker applied to a run.
type Check = fn(&Run) -> Result<(), Violation>;

const STRICT: Check = |run| strict_serializability::check(&run.history);
const NO_LOST_WRITE: Check = |run| no_lost_write::check(&run.history, &[run.last]);
const NO_PHANTOM: Check = |run| no_phantom::check(&run.history);
const STALE_READS: Check = |run| stale_reads::check(&run.history);

/// Does the damage to many histories; each time every one of `checks` must object. Returns the anomalies they named.
fn assert_always_caught(damage: Damage, checks: &[Check]) -> Vec<Anomaly> {
    let mut named = Vec::new();
    for seed in 0..SEEDS {
        let mut run = run(seed, shape(seed));
        if damage(&mut run, &mut Rng::seeded(seed)) {
            for (index, check) in checks.iter().enumerate() {
                let verdict = check(&run);
                named.push(verdict.expect_err(&format!("check {index} misses the damage of seed {seed}\n{}", run.history)).anomaly);
            }
        }
    }
    assert!(named.len() as u64 >= SEEDS / 4 * checks.len() as u64, "the damage found a place only {} times", named.len());
    named
}

#[test]
fn clean_histories_pass() {
    for seed in 0..4 * SEEDS {
        let run = run(seed, shape(seed));
        for check in [STRICT, NO_LOST_WRITE, NO_PHANTOM, STALE_READS] {
            if let Err(violation) = check(&run) {
                panic!("seed {seed}: {violation}\n{}", run.history);
            }
        }
    }
}

#[test]
fn ten_thousand_transactions_pass() {
    let run = run(1, Shape { txns: 10_000, ops_max: 7, keys: 500, scanned: 20, versions: true, lag: 0 });
    for check in [STRICT, NO_LOST_WRITE, NO_PHANTOM, STALE_READS] {
        assert_eq!(check(&run), Ok(()));
    }
}

#[test]
fn transactions_that_read_a_little_of_the_past_and_do_not_notice() {
    for seed in 0..SEEDS {
        let run = run(seed, Shape { lag: 25, ..shape(seed) });
        assert!(STRICT(&run).is_err(), "seed {seed} passes\n{}", run.history);
    }
}

#[test]
fn an_element_dropped_from_the_final_read() {
    assert_always_caught(
        |run, rng| {
            let acknowledged = appended(run, |txn| txn.acknowledged().is_some());
            let Some((key, element)) = rng.pick(&acknowledged).cloned() else { return false };
            edit_list(run, run.last, &key, |elements| elements.retain(|&kept| kept != element))
        },
        &[STRICT, NO_LOST_WRITE],
    );
}

#[test]
fn an_element_twice_in_the_final_read() {
    let named = assert_always_caught(
        |run, rng| {
            let acknowledged = appended(run, |txn| txn.acknowledged().is_some());
            let Some((key, element)) = rng.pick(&acknowledged).cloned() else { return false };
            edit_list(run, run.last, &key, |elements| elements.push(element))
        },
        &[STRICT, NO_LOST_WRITE],
    );
    assert!(named.into_iter().all(|anomaly| anomaly == Anomaly::DoubleAppend));
}

#[test]
fn two_elements_swapped_in_the_final_read() {
    assert_always_caught(
        |run, rng| {
            let acknowledged = appended(run, |txn| txn.acknowledged().is_some());
            let Some((key, _)) = rng.pick(&acknowledged).cloned() else { return false };
            edit_list(run, run.last, &key, |elements| {
                let known = |element| acknowledged.contains(&(key.clone(), element));
                let place = elements.windows(2).position(|pair| known(pair[0]) && known(pair[1]));
                place.into_iter().for_each(|index| elements.swap(index, index + 1));
            })
        },
        &[STRICT],
    );
}

#[test]
fn an_aborted_append_revived() {
    let named = assert_always_caught(
        |run, rng| {
            let aborted = appended(run, Txn::is_aborted);
            let Some((key, element)) = rng.pick(&aborted).cloned() else { return false };
            edit_list(run, run.last, &key, |elements| elements.push(element))
        },
        &[STRICT, NO_LOST_WRITE],
    );
    assert!(named.into_iter().all(|anomaly| anomaly == Anomaly::AbortedRead));
}

#[test]
fn a_row_dropped_from_the_final_scan() {
    assert_always_caught(
        |run, rng| {
            let acknowledged = appended(run, |txn| txn.acknowledged().is_some());
            let Some((key, _)) = rng.pick(&acknowledged).cloned() else { return false };
            let Some(Op::Scan { rows, .. }) = run.history.txn_mut(run.last).ops.first_mut() else { return false };
            rows.retain(|row| row.key != key);
            true
        },
        &[NO_PHANTOM, STRICT, NO_LOST_WRITE],
    );
}

#[test]
fn an_overwritten_value_in_the_final_scan() {
    assert_always_caught(
        |run, rng| {
            let mut last = run.history.txn(run.last).clone();
            let Some(Op::Scan { rows, .. }) = last.ops.last_mut() else { return false };
            let index = rng.below(rows.len() as u64) as usize;
            let Some(row) = rows.get_mut(index) else { return false };
            let Some(older) = overwritten(run, &row.key, &row.cell) else { return false };
            (row.cell, row.version) = (older, None);
            *run.history.txn_mut(run.last) = last;
            true
        },
        &[STRICT, NO_LOST_WRITE],
    );
}

#[test]
fn a_list_read_that_misses_what_was_acknowledged_before() {
    assert_always_caught(
        |run, _| {
            let acknowledged: Vec<_> = run.history.txns().iter().flat_map(|txn| Some((txn.acknowledged()?, appends(txn)))).collect();
            let stale =
                run.history.txns().iter().filter(|txn| txn.mode == Mode::ReadWrite && txn.acknowledged().is_some()).find_map(|txn| {
                    let Op::Read { key, cell: Some(Cell::List(elements)), .. } = txn.ops.first()? else { return None };
                    let append = (key.clone(), *elements.last()?);
                    acknowledged.iter().any(|(time, appends)| *time < txn.invoked && appends.contains(&append)).then_some((txn.no, append))
                });
            let Some((no, (key, element))) = stale else { return false };
            edit_list(run, no, &key, |elements| elements.retain(|&kept| kept != element))
        },
        &[STRICT],
    );
}

#[test]
fn a_stale_read_moved_to_another_timestamp() {
    assert_always_caught(
        |run, _| {
            // The newest stale read that saw something, told to be of a time before everything.
            let saw = |txn: &&Txn| matches!(txn.mode, Mode::Stale(_)) && matches!(txn.ops[0], Op::Read { cell: Some(_), .. });
            let Some(no) = run.history.txns().iter().rfind(saw).map(|txn| txn.no) else { return false };
            run.history.txn_mut(no).mode = Mode::Stale(super::stamp(1));
            true
        },
        &[STALE_READS],
    );
}

fn appends(txn: &Txn) -> Vec<(Key, u64)> {
    let pair = |op: &Op| if let Op::Append { key, element } = op { Some((key.clone(), *element)) } else { None };
    txn.ops.iter().filter_map(pair).collect()
}

fn appended(run: &Run, by: impl Fn(&Txn) -> bool) -> Vec<(Key, u64)> {
    run.history.txns().iter().filter(|txn| by(txn)).flat_map(appends).collect()
}

/// Changes what `no` read of the list `key`, and forgets the version it was told; false if it read nothing of that or if the
/// list is as before.
fn edit_list(run: &mut Run, no: TxnNo, key: &Key, edit: impl Fn(&mut Vec<u64>)) -> bool {
    for op in &mut run.history.txn_mut(no).ops {
        let (cell, version) = match op {
            Op::Read { key: at, cell: Some(cell), version } if at == key => (cell, version),
            Op::Scan { rows, .. } => match rows.iter_mut().find(|row| row.key == *key) {
                Some(row) => (&mut row.cell, &mut row.version),
                None => continue,
            },
            _ => continue,
        };
        let Cell::List(elements) = cell else { return false };
        let before = elements.clone();
        edit(elements);
        *version = None;
        return *elements != before;
    }
    false
}

/// A value that an acknowledged transaction wrote to `key` last, and that another, acknowledged, replaced by `newest`.
fn overwritten(run: &Run, key: &Key, newest: &Cell) -> Option<Cell> {
    let last_write = |txn: &Txn| {
        txn.acknowledged()?;
        let mut writes = txn.ops.iter().filter_map(|op| match op {
            Op::Write { key: at, value } if at == key => Some(Some(Cell::Register(*value))),
            Op::Delete { key: at } if at == key => Some(None),
            _ => None,
        });
        writes.next_back().flatten()
    };
    let values: Vec<Cell> = run.history.txns().iter().filter_map(last_write).collect();
    let position = values.iter().position(|value| value == newest)?;
    position.checked_sub(1).map(|index| values[index].clone())
}
