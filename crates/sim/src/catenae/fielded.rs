//! Rows made of fields, which transactions amend: two registers and a counter each. To the history each register is a key of its own,
//! so that it notices when a change of one field undoes that of another.

use crate::history::{Cell, Garbled, Op};
use rhumb_core::fields::{self, By, Change, Fields};
use rhumb_core::{Key, Row, Value};

/// How many there are.
pub(crate) const ROWS: u64 = 2;
/// Their registers.
pub(crate) const REGISTERS: [u32; 2] = [1, 2];
/// Their counter.
const COUNTER: u32 = 3;
/// What a change to NULL takes.
const CHANGE_BYTES: usize = 5;
/// Their keys begin with it.
const KIND: char = 'f';

/// The key of a row.
pub(crate) fn row(number: u64) -> Key {
    Key::from(format!("{KIND}{number}").as_str())
}

/// All of them.
pub(crate) fn all_rows() -> impl Iterator<Item = Key> {
    (0..ROWS).map(row)
}

/// True for the key of such a row.
pub(crate) fn is_row(key: &Key) -> bool {
    key.0.first() == Some(&(KIND as u8))
}

/// What the history calls a register of a row.
pub(crate) fn register(key: &Key, field: u32) -> Key {
    Key::new([&key.0[..], format!(".{field}").as_bytes()].concat())
}

/// A new row: its registers; its counter is zero.
pub(crate) fn encode(registers: [u64; 2]) -> Value {
    let mut value = vec![fields::FORMAT];
    for (field, register) in REGISTERS.into_iter().zip(registers) {
        fields::push(&mut value, field, &Cell::Register(register).encode().0);
    }
    fields::push(&mut value, COUNTER, &fields::integer_bytes(0));
    Value::new(value)
}

/// Sets a register.
pub(crate) fn setting(field: u32, value: u64) -> Change {
    Change { field, by: By::Setting(Some(Cell::Register(value).encode().0)) }
}

/// Changes that change nothing and take about so many bytes to say: fields that nobody sets lose the value that they do not have.
pub(crate) fn changing_nothing(bytes: usize) -> impl Iterator<Item = Change> {
    let first = COUNTER + 1_000;
    (first..).take(bytes / CHANGE_BYTES).map(|field| Change { field, by: By::Setting(None) })
}

/// Adds one to the counter; if `is_beyond`, beyond what that may hold.
pub(crate) fn adding_one(is_beyond: bool) -> Change {
    Change { field: COUNTER, by: By::Adding { amount: 1, least: 0, most: if is_beyond { 0 } else { i128::from(i64::MAX) } } }
}

/// The bytes of a field, if there is a row and it has it.
fn field(row: &Row, field: u32) -> Option<Value> {
    let value = row.value.as_ref()?;
    let found = Fields::of(&value.0).ok()?.filter_map(Result::ok).find(|(id, _)| *id == field);
    found.map(|(_, bytes)| Value::new(bytes.to_vec()))
}

/// What the counter of a row holds, if there is such a row.
pub(crate) fn count(row: &Row) -> Option<i64> {
    field(row, COUNTER).and_then(|value| i64::try_from(fields::integer_in(&value.0)?).ok())
}

/// What a row tells the history. Of a row made of fields the version is that of the last change of any of them, so it tells nothing.
pub(crate) fn reads(row: &Row) -> Vec<Result<Op, Garbled>> {
    if !is_row(&row.key) {
        return vec![Op::read(row)];
    }
    let read = |number| {
        let key = register(&row.key, number);
        let garbled = || Garbled { key: key.clone(), value: row.value.clone().unwrap_or_default() };
        let cell = match &row.value {
            None => None,
            Some(_) => Some(Cell::decode(&key, &field(row, number).ok_or_else(garbled)?)?),
        };
        Ok(Op::Read { key, cell, version: None })
    };
    REGISTERS.into_iter().map(read).collect()
}
