//! The encodings: their order, that they come back as they were, and that garbage is refused.

use crate::catalog::{Entry, decode_entry, encode_entry};
use crate::schema::{Column, DatabaseId, TableDescriptor, TableId};
use crate::storage::Row;
use crate::storage::key_codec::{decode, encode};
use crate::storage::layout::{KEY_BYTES_MAX, decode_row, key_of, value_of};
use crate::storage::row_codec::payload;
use crate::types::samples::{TYPES, UNORDERED};
use crate::types::{Datum, Interval, SqlType, array, coerce, elements};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use rhumb_core::{Key, Rng, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// Inputs that each decoder is given.
const GARBAGE_INPUTS: usize = 100_000;

/// Values of a type, its extremes and NULL among them.
fn values(ty: SqlType) -> BoxedStrategy<Datum> {
    const DECIMAL_LIMIT: i128 = 10i128.pow(38) - 1;
    let integers = prop_oneof![any::<i64>(), -300i64..300, Just(i64::MIN), Just(i64::MAX)];
    let decimals = prop_oneof![-DECIMAL_LIMIT..=DECIMAL_LIMIT, -1_000_000i128..1_000_000, Just(DECIMAL_LIMIT), Just(-DECIMAL_LIMIT)];
    let shape = ty.decimal_shape();
    let value = match ty {
        SqlType::Bool => any::<bool>().prop_map(|value| Datum::Boolean(Some(value))).boxed(),
        SqlType::Int2 => any::<i16>().prop_map(|value| Datum::Int16(Some(value))).boxed(),
        SqlType::Int4 => any::<i32>().prop_map(|value| Datum::Int32(Some(value))).boxed(),
        SqlType::Int8 => integers.prop_map(|value| Datum::Int64(Some(value))).boxed(),
        SqlType::Float4 => proptest::num::f32::ANY.prop_map(|value| Datum::Float32(Some(value))).boxed(),
        SqlType::Float8 => prop_oneof![proptest::num::f64::ANY, Just(0.0), Just(-0.0), Just(f64::NAN), Just(-f64::NAN)]
            .prop_map(|value| Datum::Float64(Some(value)))
            .boxed(),
        SqlType::Numeric(_) => decimals.prop_map(move |value| Datum::Decimal128(Some(value), shape.0, shape.1)).boxed(),
        SqlType::Bytea => {
            let byte = prop_oneof![Just(0u8), Just(1), Just(254), Just(255), any::<u8>()];
            prop::collection::vec(byte, 0..6).prop_map(|bytes| Datum::Binary(Some(bytes))).boxed()
        }
        SqlType::Date => any::<i32>().prop_map(|days| Datum::Date32(Some(days))).boxed(),
        SqlType::Time => (0..86_400_000_000i64).prop_map(|micros| Datum::Time64Microsecond(Some(micros))).boxed(),
        SqlType::Timestamp => integers.prop_map(|at| Datum::TimestampMicrosecond(Some(at), None)).boxed(),
        SqlType::TimestampTz => integers.prop_map(|at| Datum::TimestampMicrosecond(Some(at), Some(Arc::from("+00:00")))).boxed(),
        SqlType::Uuid => {
            let text = any::<u128>().prop_map(|bits| Datum::Utf8(Some(format!("{bits:032x}"))));
            text.prop_map(|text| coerce(&SqlType::Uuid, text).expect("32 digits are a UUID")).boxed()
        }
        SqlType::Interval => {
            let micros = any::<i64>().prop_map(|nanos| nanos / 1_000);
            let parts = (any::<i32>(), any::<i32>(), micros);
            parts.prop_map(|(months, days, micros)| Interval { months, days, micros }.stored().expect("in range")).boxed()
        }
        // None is stored.
        SqlType::Int2Vector => Just(ty.null()).boxed(),
        SqlType::Array(element) => {
            prop::collection::vec(values(element.ty()), 0..5).prop_map(move |values| array(element, &values)).boxed()
        }
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => {
            "[\u{1}a-c\u{7f}é\u{10ffff}]{0,5}".prop_map(|text| Datum::Utf8(Some(text))).boxed()
        }
    };
    prop_oneof![9 => value, 1 => Just(ty.null())].boxed()
}

/// PostgreSQL's order: NULLs last, NaN above infinity, zeros equal, text by its bytes.
fn compare(one: &Datum, other: &Datum) -> Ordering {
    let float = |one: f64, other: f64| one.partial_cmp(&other).unwrap_or_else(|| one.is_nan().cmp(&other.is_nan()));
    match (one, other) {
        _ if one.is_null() || other.is_null() => one.is_null().cmp(&other.is_null()),
        (Datum::Float32(Some(one)), Datum::Float32(Some(other))) => float((*one).into(), (*other).into()),
        (Datum::Float64(Some(one)), Datum::Float64(Some(other))) => float(*one, *other),
        _ => one.partial_cmp(other).expect("values of one type compare"),
    }
}

fn encoded(ty: &SqlType, value: &Datum) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes, ty, value).expect("a value of its type");
    bytes
}

#[test]
fn keys_are_ordered_as_their_values_and_come_back() {
    for ty in TYPES {
        // One runner each: a runner counts its cases over all of its runs.
        let mut runner = TestRunner::new_with_rng(Config::with_cases(400), deterministic());
        // Two columns, so that a value's encoding must not run into the next one's.
        let pairs = ((values(ty), values(ty)), (values(ty), values(ty)));
        let checked = runner.run(&pairs, |((a, b), (c, d))| {
            let one = [encoded(&ty, &a), encoded(&ty, &b)].concat();
            let other = [encoded(&ty, &c), encoded(&ty, &d)].concat();
            prop_assert_eq!(one.cmp(&other), compare(&a, &c).then(compare(&b, &d)));
            let mut input = &one[..];
            for value in [&a, &b] {
                let back = decode(&mut input, &ty).expect("what was encoded");
                prop_assert_eq!(compare(&back, value), Ordering::Equal);
                prop_assert_eq!(back.data_type(), ty.arrow());
            }
            prop_assert!(input.is_empty());
            Ok(())
        });
        if let Err(failure) = checked {
            panic!("{ty}: {failure}");
        }
    }
}

fn deterministic() -> proptest::test_runner::TestRng {
    proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha)
}

/// A table with a column of every type, the first three its key.
fn wide_table() -> TableDescriptor {
    let column = |(position, ty): (usize, &SqlType)| {
        let column = Column::new(position as u32 * 50 + 1, format!("c{position}"), *ty);
        Column { nullable: position >= 3, ..column }
    };
    TableDescriptor {
        database: DatabaseId(7),
        id: TableId(8),
        name: "wide".into(),
        columns: [SqlType::Text, SqlType::Numeric(Some((9, 2))), SqlType::Uuid]
            .iter()
            .chain(&TYPES)
            .chain(&UNORDERED)
            .enumerate()
            .map(column)
            .collect(),
        primary_key: vec![2, 0, 1],
        primary_key_name: "wide_pkey".into(),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        sequences: Vec::new(),
        next_column: 10_000,
        next_index: 1,
    }
}

fn rows(table: &TableDescriptor) -> impl Strategy<Value = Row> {
    let key = (any::<u128>(), "[\u{0}-\u{ff}]{0,4}", -999_999_999i128..=999_999_999);
    let rest: Vec<BoxedStrategy<Datum>> = table.columns[3..].iter().map(|column| values(column.ty)).collect();
    (key, rest).prop_map(|((uuid, text, number), rest)| {
        let uuid = coerce(&SqlType::Uuid, Datum::Utf8(Some(format!("{uuid:032x}")))).expect("32 digits are a UUID");
        [Datum::Utf8(Some(text)), Datum::Decimal128(Some(number), 9, 2), uuid].into_iter().chain(rest).collect()
    })
}

/// Equal to the bit, NaNs too.
fn same(one: &Datum, other: &Datum) -> bool {
    match (one, other) {
        (Datum::Float32(Some(one)), Datum::Float32(Some(other))) => one.to_bits() == other.to_bits(),
        (Datum::Float64(Some(one)), Datum::Float64(Some(other))) => one.to_bits() == other.to_bits(),
        _ => match (elements(one), elements(other)) {
            (Some(one), Some(other)) => one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| same(one, other)),
            _ => one == other,
        },
    }
}

#[test]
fn rows_come_back_as_they_were() {
    let mut table = wide_table();
    // Half of them are columns that were added when there were rows.
    for column in table.columns[3..].iter_mut().step_by(2) {
        let bytes = usize::try_from(column.ty.type_length()).unwrap_or(1);
        column.missing = Some(vec![0; bytes]);
    }
    let mut runner = TestRunner::new_with_rng(Config::with_cases(1_000), deterministic());
    let checked = runner.run(&rows(&table), |row| {
        let (key, value) = (key_of(&table, &row).expect("a row"), value_of(&table, &row).expect("a row"));
        let back = decode_row(&table, &key, &value).expect("what was encoded");
        prop_assert!(row.iter().zip(&back).all(|(one, other)| same(one, other)), "{:?} became {:?}", row, back);
        Ok(())
    });
    checked.expect("every row comes back");
}

#[test]
fn a_row_outlives_columns_that_come_and_go() {
    let mut table = wide_table();
    let mut row: Row = table.columns.iter().map(|column| column.ty.null()).collect();
    row[0] = Datum::Utf8(Some("k".into()));
    row[1] = Datum::Decimal128(Some(1), 9, 2);
    row[2] = Datum::Utf8(Some("00000000-0000-0000-0000-000000000001".into()));
    row[4] = Datum::Int16(Some(-5));
    row[5] = Datum::Int32(Some(6));
    let (key, value) = (key_of(&table, &row).expect("a row"), value_of(&table, &row).expect("a row"));
    table.columns.remove(4);
    table.columns.push(Column::new(9_998, "new", SqlType::Text));
    let seven = Datum::Int32(Some(7));
    let missing = Some(payload(&SqlType::Int4, &seven).expect("an integer"));
    table.columns.push(Column { missing, ..Column::new(9_999, "newer", SqlType::Int4) });
    let mut back = decode_row(&table, &key, &value).expect("a row of an older shape");
    assert_eq!(back[4], Datum::Int32(Some(6)));
    assert_eq!(back[back.len() - 2..], [Datum::Utf8(None), seven]);
    // Once it is written again, the newer column may be NULL as well.
    *back.last_mut().expect("the newer column") = Datum::Int32(None);
    let value = value_of(&table, &back).expect("a row");
    assert_eq!(decode_row(&table, &key, &value).expect("a row").last(), Some(&Datum::Int32(None)));
}

#[test]
fn the_encodings_are_these_bytes() {
    let cases: [(SqlType, Datum, &[u8]); 7] = [
        (SqlType::Int4, Datum::Int32(Some(0)), &[1, 0x80]),
        (SqlType::Int4, Datum::Int32(Some(258)), &[1, 0x82, 1, 2]),
        (SqlType::Int4, Datum::Int32(Some(-1)), &[1, 0x7F, 0xFE]),
        (SqlType::Text, Datum::Utf8(Some("ab".into())), &[1, b'a', b'b', 0, 0]),
        (SqlType::Bytea, Datum::Binary(Some(vec![0])), &[1, 0, 255, 0, 0]),
        (SqlType::Float4, Datum::Float32(Some(-0.0)), &[1, 0x80, 0, 0, 0]),
        (SqlType::Bool, Datum::Boolean(None), &[2]),
    ];
    for (ty, value, bytes) in cases {
        assert_eq!(encoded(&ty, &value), bytes, "{value:?}");
    }
}

/// Random bytes, or sound ones with a few bytes changed, cut or doubled.
fn garbage(rng: &mut Rng, sound: &[u8]) -> Vec<u8> {
    if rng.chance(0.3) {
        return (0..rng.below(60)).map(|_| rng.below(256) as u8).collect();
    }
    let mut bytes = sound.to_vec();
    for _ in 0..rng.between(1, 4) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        match rng.below(3) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes.insert(at, rng.below(256) as u8),
            _ if at < bytes.len() => bytes[at] = rng.below(256) as u8,
            _ => {}
        }
    }
    bytes
}

#[test]
fn garbage_is_refused_and_what_is_accepted_is_canonical() {
    let mut rng = Rng::seeded(11);
    let table = wide_table();
    let mut runner = TestRunner::new_with_rng(Config::default(), deterministic());
    let sound = rows(&table).new_tree(&mut runner).expect("a row").current();
    let (key, value) = (key_of(&table, &sound).expect("a row"), value_of(&table, &sound).expect("a row"));
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..GARBAGE_INPUTS {
        let damaged_key = if rng.chance(0.5) { key.clone() } else { Key::new(garbage(&mut rng, &key.0)) };
        let damaged_value = Value::new(garbage(&mut rng, &value.0));
        match decode_row(&table, &damaged_key, &damaged_value) {
            Ok(row) => {
                accepted += 1;
                assert_eq!(row.len(), table.columns.len());
                // Past the prefix, whose ids a reader of the range knows already.
                let again = key_of(&table, &row).expect("a decoded row has a key");
                assert_eq!(again.0[12..], damaged_key.0[12..]);
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.state().code(), "XX001");
            }
        }
    }
    assert!(accepted > 100 && refused > GARBAGE_INPUTS / 2, "{accepted} accepted, {refused} refused");
}

/// Or a row would not lie under its own key.
#[test]
fn a_value_that_holds_a_column_of_the_key_is_refused() {
    let mut table = wide_table();
    let mut row: Row = table.columns.iter().map(|column| column.ty.null()).collect();
    row[4] = Datum::Int16(Some(-5));
    let (key, value) = (key_of(&table, &row).expect("a row"), value_of(&table, &row).expect("a row"));
    assert!(decode_row(&table, &key, &value).is_ok());
    table.primary_key = vec![4];
    let key = key_of(&table, &row).expect("a row");
    let error = decode_row(&table, &key, &value).expect_err("the column is in the key");
    assert_eq!(error.state().code(), "XX001");
}

#[test]
fn garbage_in_a_key_is_refused_for_every_type() {
    let mut rng = Rng::seeded(12);
    let mut runner = TestRunner::new_with_rng(Config::default(), deterministic());
    for ty in TYPES {
        let sound = encoded(&ty, &values(ty).new_tree(&mut runner).expect("a value").current());
        for _ in 0..GARBAGE_INPUTS / TYPES.len() {
            let bytes = garbage(&mut rng, &sound);
            let mut input = &bytes[..];
            if let Ok(value) = decode(&mut input, &ty) {
                let read = bytes.len() - input.len();
                assert_eq!(encoded(&ty, &value), bytes[..read], "{ty}");
            }
        }
    }
}

#[test]
fn garbage_in_the_catalog_is_refused() {
    let mut rng = Rng::seeded(13);
    let entry = Entry::Table(Arc::new(wide_table()));
    let sound = encode_entry(&entry).expect("an entry");
    assert_eq!(decode_entry(&sound.0).expect("a sound entry"), entry);
    for _ in 0..GARBAGE_INPUTS {
        if let Ok(Entry::Table(table)) = decode_entry(&garbage(&mut rng, &sound.0)) {
            // Whatever was accepted can be used.
            table.arrow_schema();
            let nulls: Row = table.columns.iter().map(|column| column.ty.null()).collect();
            key_of(&table, &nulls).expect("NULLs are of every type");
        }
    }
}

#[test]
fn a_key_has_a_bound() {
    let table = wide_table();
    let mut row: Row = table.columns.iter().map(|column| column.ty.null()).collect();
    row[0] = Datum::Utf8(Some("x".repeat(KEY_BYTES_MAX)));
    let error = key_of(&table, &row).expect_err("it is too long");
    assert_eq!(error.state().code(), "54000");
}
