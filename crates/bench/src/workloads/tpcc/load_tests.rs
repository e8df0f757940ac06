//! Cardinalities and sums of the initial database, on a small scale.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn rows(scale: Scale) -> Vec<LoadRow> {
    Load { scale, seed: 7 }.dataset().expect("a dataset").rows.collect()
}

fn of(rows: &[LoadRow], table: usize) -> Vec<&[Value]> {
    rows.iter().filter(|row| row.table == table).map(|row| row.values.as_slice()).collect()
}

fn int(value: &Value) -> i32 {
    match value {
        Value::Int(number) => *number,
        other => panic!("{other:?} is no INT"),
    }
}

fn numeric(value: &Value) -> Decimal {
    match value {
        Value::Numeric(number) => *number,
        other => panic!("{other:?} is no NUMERIC"),
    }
}

#[test]
fn every_table_has_the_rows_of_the_specification() {
    let rows = rows(Scale::small(2));
    let count = |table| of(&rows, table).len();
    assert_eq!((count(table::ITEM), count(table::WAREHOUSE), count(table::DISTRICT)), (1_000, 2, 20));
    assert_eq!((count(table::STOCK), count(table::CUSTOMER), count(table::HISTORY)), (2_000, 600, 600));
    assert_eq!((count(table::ORDERS), count(table::NEW_ORDER)), (600, 180));
    assert!(rows.iter().all(|row| row.values.len() == TABLES[row.table].columns.len()));
}

#[test]
fn the_same_seed_loads_the_same_rows() {
    assert_eq!(rows(Scale::small(1)), rows(Scale::small(1)));
}

#[test]
fn keys_are_unique() {
    let rows = rows(Scale::small(2));
    for (table, columns) in [(table::STOCK, 2), (table::CUSTOMER, 3), (table::HISTORY, 2), (table::ORDERS, 3), (table::ORDER_LINE, 4)] {
        let all = of(&rows, table);
        let keys: BTreeSet<String> = all.iter().map(|row| format!("{:?}", &row[..columns])).collect();
        assert_eq!(keys.len(), all.len(), "{}", TABLES[table].name);
    }
}

#[test]
fn orders_and_lines_agree() {
    let rows = rows(Scale::small(1));
    let mut lines: BTreeMap<[i32; 3], i32> = BTreeMap::new();
    for line in of(&rows, table::ORDER_LINE) {
        *lines.entry([int(&line[0]), int(&line[1]), int(&line[2])]).or_default() += 1;
        // Delivered lines cost nothing, undelivered ones something.
        assert_eq!(line[6] == Value::Null, numeric(&line[8]) > Decimal::ZERO);
    }
    for order in of(&rows, table::ORDERS) {
        let key = [int(&order[0]), int(&order[1]), int(&order[2])];
        assert_eq!(lines[&key], int(&order[6]));
        assert!((5..=15).contains(&lines[&key]));
        assert_eq!(order[5] == Value::Null, key[2] > 21);
    }
}

#[test]
fn every_customer_of_a_district_has_one_order() {
    let rows = rows(Scale::small(1));
    let customers: BTreeSet<(i32, i32)> = of(&rows, table::ORDERS).iter().map(|order| (int(&order[1]), int(&order[3]))).collect();
    assert_eq!(customers.len(), 300);
}

#[test]
fn the_years_to_date_are_what_the_customers_paid() {
    let rows = rows(Scale::small(2));
    let sum = |table, column: usize| of(&rows, table).iter().map(|row| numeric(&row[column])).sum::<Decimal>();
    let paid = sum(table::HISTORY, 7);
    assert_eq!(paid, Decimal::new(600_000, 2));
    assert_eq!((sum(table::WAREHOUSE, 8), sum(table::DISTRICT, 9), -sum(table::CUSTOMER, 16)), (paid, paid, paid));
}

#[test]
fn conforming_customers_have_every_last_name() {
    let mut rng = Rng::seeded(7);
    let name = |c_id| customer(Scale::conforming(1), [1, 1, c_id], &mut rng).values.swap_remove(5);
    let names: BTreeSet<String> = (1..=1_000).map(name).map(|name| format!("{name:?}")).collect();
    assert_eq!(names.len(), 1_000);
}

#[test]
fn about_as_many_rows_come_as_the_progress_bar_expects() {
    let scale = Scale::small(3);
    let (expected, actual) = (scale.rows_expected() as f64, rows(scale).len() as f64);
    assert!((expected / actual - 1.0).abs() < 0.03, "{expected} expected, {actual} made");
}
