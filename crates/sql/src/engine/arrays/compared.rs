//! Values and arrays compared: numbers by what they are, whatever types they have, and arrays by their first elements that differ.

use crate::types::Datum;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use std::borrow::Cow;
use std::cmp::Ordering;

/// How two values compare; `None` if one is NULL, or if they have no order.
pub(super) fn compare(one: &Datum, other: &Datum) -> Option<Ordering> {
    if one.is_null() || other.is_null() {
        return None;
    }
    let (own, theirs) = (one.data_type(), other.data_type());
    if own == theirs && !own.is_floating() {
        return one.partial_cmp(other);
    }
    let common = if own == theirs { own } else { comparison_coercion(&own, &theirs)? };
    let value = |value: &Datum| value.cast_to(&common).map(without_sign).ok();
    value(one)?.partial_cmp(&value(other)?)
}

/// A value that is equal to itself only: there is one zero, not two.
pub(super) fn without_sign(value: Datum) -> Datum {
    match value {
        Datum::Float64(Some(value)) => Datum::Float64(Some(value + 0.0)),
        Datum::Float32(Some(value)) => Datum::Float32(Some(value + 0.0)),
        other => other,
    }
}

/// True if two values are equal, and neither is NULL.
pub(super) fn equal(one: &Datum, other: &Datum) -> bool {
    compare(one, other).is_some_and(Ordering::is_eq)
}

/// True if two values are equal, or both NULL.
pub(super) fn same(one: &Datum, other: &Datum) -> bool {
    one.is_null() && other.is_null() || equal(one, other)
}

/// How two arrays compare. NULL is after every other element, and equal to itself.
pub(super) fn compare_lists(one: &[Datum], other: &[Datum]) -> Ordering {
    let of_elements =
        |(one, other): (&Datum, &Datum)| one.is_null().cmp(&other.is_null()).then_with(|| compare(one, other).unwrap_or(Ordering::Equal));
    let differing = one.iter().zip(other).map(of_elements).find(|ordering| ordering.is_ne());
    differing.unwrap_or_else(|| one.len().cmp(&other.len()))
}

/// The elements of two lists as values of one type, if they go together.
pub(super) fn common_type<'a>(one: &'a [Datum], other: &'a [Datum]) -> (Cow<'a, [Datum]>, Cow<'a, [Datum]>) {
    let kinds = one.first().zip(other.first()).map(|(one, other)| (one.data_type(), other.data_type()));
    let as_common = |list: &'a [Datum], common: &DataType| {
        list.iter().map(|value| value.cast_to(common).map(without_sign)).collect::<Result<Vec<_>>>().map_or(Cow::Borrowed(list), Cow::Owned)
    };
    match kinds {
        Some((own, theirs)) if own != theirs || own.is_floating() => match comparison_coercion(&own, &theirs) {
            Some(common) => (as_common(one, &common), as_common(other, &common)),
            None => (one.into(), other.into()),
        },
        _ => (one.into(), other.into()),
    }
}
