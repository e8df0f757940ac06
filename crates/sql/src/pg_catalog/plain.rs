//! The plain ones among the functions of `pg_catalog`.

use crate::engine::row_function::{RowFunction, function};
use crate::types::Datum;
use datafusion::arrow::datatypes::DataType;
use std::collections::BTreeMap;

/// A function that says yes.
pub fn yes(name: &'static str) -> RowFunction {
    function(name, DataType::Boolean, |_| Datum::Boolean(Some(true)))
}

/// A function that gives text.
pub fn text(name: &'static str, body: impl Fn(&[Datum]) -> Datum + Send + Sync + 'static) -> RowFunction {
    function(name, DataType::Utf8, body)
}

/// A value as a number, if it is one.
pub fn integer(values: &[Datum], position: usize) -> Option<i64> {
    values.get(position).and_then(|value| value.to_string().parse().ok())
}

/// The text of the object whose number is given.
pub fn looked_up(texts: &BTreeMap<i64, String>, values: &[Datum]) -> Datum {
    Datum::Utf8(integer(values, 0).and_then(|oid| texts.get(&oid)).cloned())
}
