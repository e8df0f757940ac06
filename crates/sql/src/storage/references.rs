//! Rows that reference each other: the key of the row that one references, and the rows that reference one.

use crate::error::SqlResult;
use crate::schema::{Index, TableDescriptor};
use crate::storage::layout::unique_key;
use crate::storage::rows::each_value;
use crate::storage::{Cursor, Row, ScanSpec, SearchedIndex, primary_key};
use crate::types::Datum;
use rhumb_commit::transaction::Transaction;
use rhumb_core::Key;
use std::collections::{BTreeSet, HashSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// Up to so many keys have a scan each: each is a round, and a range that the transaction depends on. More are looked for in one scan from the
/// least to the greatest.
const SCANS_MAX: usize = 128;

/// The key by which a row of `table` is found that has these values in its primary key (`None`) or in a unique index, in the order of its
/// columns; `None` if one is NULL.
pub fn key_by(table: &TableDescriptor, index: Option<&Index>, values: &[Datum]) -> SqlResult<Option<Key>> {
    match index {
        None => primary_key(table, values),
        Some(index) => unique_key(table, index, values.iter()),
    }
}

/// The one form of values that are equal: floats have two zeros, and many that are no number.
pub fn canonical(value: &Datum) -> Datum {
    match value {
        Datum::Float32(Some(number)) => Datum::Float32(Some(if number.is_nan() { f32::NAN } else { number + 0.0 })),
        Datum::Float64(Some(number)) => Datum::Float64(Some(if number.is_nan() { f64::NAN } else { number + 0.0 })),
        other => other.clone(),
    }
}

/// Shows `look` the rows of `table` that have one of the `wanted` in `columns`, until it breaks off: lists of [canonical] values, none of them
/// NULL, in the order of `columns`. By an index that begins with these columns, if there is one, a scan for each of the wanted or one over all
/// of them; else by all rows.
pub async fn each_with(
    txn: &mut dyn Transaction,
    table: &Arc<TableDescriptor>,
    columns: &[usize],
    wanted: &HashSet<Vec<Datum>>,
    mut look: impl FnMut(Vec<Row>) -> SqlResult<ControlFlow<()>> + Send,
) -> SqlResult<()> {
    let has_one = |row: &Row| wanted.contains(&columns.iter().map(|&column| canonical(&row[column])).collect::<Vec<_>>());
    for spec in scans(table, columns, wanted) {
        let mut cursor = Cursor::open(table.clone(), &spec)?;
        loop {
            let page = cursor.next_page(txn).await?;
            if page.is_empty() {
                break;
            }
            let rows: Vec<Row> = page.into_iter().filter(has_one).collect();
            if !rows.is_empty() && look(rows)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn scans(table: &TableDescriptor, columns: &[usize], wanted: &HashSet<Vec<Datum>>) -> Vec<ScanSpec> {
    let primary = (SearchedIndex::Primary, &table.primary_key);
    let secondary = table.indexes.iter().map(|index| (SearchedIndex::Secondary(index.id), &index.columns));
    let begins = |key: &[usize]| key.len() >= columns.len() && key[..columns.len()].iter().all(|column| columns.contains(column));
    let Some((index, key)) = std::iter::once(primary).chain(secondary).find(|(_, key)| begins(key)) else {
        return vec![ScanSpec::all(SearchedIndex::Primary)];
    };
    // The values of one of the wanted in the order of the index.
    let place = |column: &usize| columns.iter().position(|other| other == column).expect("the index begins with these columns");
    let order: Vec<usize> = key[..columns.len()].iter().map(place).collect();
    if wanted.len() > SCANS_MAX {
        let first = |values: &Vec<Datum>| values[order[0]].clone();
        let by_order = |one: &Datum, other: &Datum| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal);
        let (lower, upper) = (wanted.iter().map(first).min_by(by_order), wanted.iter().map(first).max_by(by_order));
        let bound = |value: Option<Datum>| value.map_or(Bound::Unbounded, Bound::Included);
        return vec![ScanSpec { lower: bound(lower), upper: bound(upper), ..ScanSpec::all(index) }];
    }
    let prefix = |values: &Vec<Datum>| order.iter().map(|&place| values[place].clone()).collect();
    wanted.iter().map(|values| ScanSpec { prefix: prefix(values), ..ScanSpec::all(index) }).collect()
}

/// Those of `keys` that have a row, in one round.
pub async fn existing(txn: &mut dyn Transaction, keys: &BTreeSet<Key>) -> SqlResult<BTreeSet<Key>> {
    let mut found = BTreeSet::new();
    let note = |key, _| {
        found.insert(key);
        Ok(())
    };
    each_value(txn, keys.iter(), note).await?;
    Ok(found)
}
