//! Functions of arrays.

use super::compared::{common_type, compare_lists, same};
use super::returned::returned;
use crate::engine::bounded::TO_ARRAY;
use crate::engine::row_function::{MADE_BYTES_MAX, RowFunction, of_numbers};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{
    Datum, ELEMENTS_MAX, Element, SqlType, array, cast, coerce, elements, length_of, shown_type, to_text, too_many_elements,
};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::{ReturnFieldArgs, ScalarUDF, ScalarUDFImpl as _};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

/// What a cast of an array to text becomes.
pub const TO_TEXT: &str = "rhumb_array_text";

/// The numbers of an array's elements, as an array; of several, those of the longest.
pub const SUBSCRIPTS: &str = "rhumb_subscripts";

/// An array, or one of a NULL if it has no elements.
pub const OR_NULL: &str = "rhumb_or_null";

/// What `<` of two arrays becomes.
pub const BEFORE: &str = "rhumb_array_before";

/// All of them.
fn all() -> impl Iterator<Item = RowFunction> {
    [measures(), changes(), parts(), readings(), conditions()].into_iter().flatten()
}

/// Of the number of elements, and where they are.
fn measures() -> Vec<RowFunction> {
    vec![
        of_size("array_length", 2, |length, dimension| (length > 0 && dimension == Some(1)).then_some(length)),
        of_size("array_upper", 2, |length, dimension| (length > 0 && dimension == Some(1)).then_some(length)),
        of_size("array_lower", 2, |length, dimension| (length > 0 && dimension == Some(1)).then_some(1)),
        of_size("array_ndims", 1, |length, _| (length > 0).then_some(1)),
        of_size("cardinality", 1, |length, _| Some(length)),
        RowFunction::new(
            "array_position",
            2..=3,
            |arguments| returned(arguments, &[0], &[]).map(|_| Field::new("", DataType::Int32, true)),
            |_, values| position(values),
        ),
        RowFunction::new(
            "array_positions",
            2..=2,
            |arguments| returned(arguments, &[0], &[]).map(|_| integers().field("", true)),
            |_, values| positions(values),
        ),
    ]
}

/// Arrays made of arrays.
fn changes() -> Vec<RowFunction> {
    vec![
        RowFunction::new(
            "array_append",
            2..=2,
            |arguments| returned(arguments, &[0], &[1]),
            |field, values| made(field, elements(&values[0]).unwrap_or_default().into_iter().chain([values[1].clone()]).collect()),
        ),
        RowFunction::new(
            "array_prepend",
            2..=2,
            |arguments| returned(arguments, &[1], &[0]),
            |field, values| made(field, [values[0].clone()].into_iter().chain(elements(&values[1]).unwrap_or_default()).collect()),
        ),
        RowFunction::new(
            "array_cat",
            2..=2,
            |arguments| returned(arguments, &[0, 1], &[]),
            |field, values| {
                if values.iter().all(Datum::is_null) {
                    return Ok(null_of(field));
                }
                made(field, values.iter().flat_map(|list| elements(list).unwrap_or_default()).collect())
            },
        ),
        keeping("array_remove", 2, &[], |list, rest| Ok(list.into_iter().filter(|value| !same(value, &rest[0])).collect())),
        keeping("array_replace", 3, &[2], |list, rest| {
            let found = list.iter().filter(|value| same(value, &rest[0])).count();
            within_bound(found.saturating_mul(rest[1].size()))?;
            Ok(list.into_iter().map(|value| if same(&value, &rest[0]) { rest[1].clone() } else { value }).collect())
        }),
    ]
}

/// Of elements.
fn parts() -> Vec<RowFunction> {
    vec![
        RowFunction::new("array_element", 2..=2, element_at, |field, values| {
            let element =
                elements(&values[0]).zip(number(values.get(1))).and_then(|(list, place)| list.get(place.checked_sub(1)?).cloned());
            let ty = SqlType::of_field(field).ok_or_else(|| SqlError::internal("an element of no type"))?;
            coerce(&ty, element.unwrap_or(Datum::Null))
        }),
        RowFunction::new("array_slice", 3..=3, |arguments| returned(arguments, &[0], &[]), slice),
        RowFunction::new(
            "array_to_string",
            2..=3,
            |arguments| returned(arguments, &[0], &[]).map(|_| Field::new("", DataType::Utf8, true)),
            |_, values| joined(values),
        ),
        RowFunction::new(
            OR_NULL,
            1..=1,
            |arguments| returned(arguments, &[0], &[]),
            |field, values| match length_of(&values[0]) {
                None | Some(0) => made(field, vec![Datum::Null]),
                Some(_) => coerce(&SqlType::of_field(field).unwrap_or(SqlType::Text), values[0].clone()),
            },
        ),
        RowFunction::new(
            SUBSCRIPTS,
            1..=usize::MAX,
            |arguments| returned(arguments, &[0], &[]).map(|_| integers().field("", true)),
            |field, values| {
                let count = values.iter().filter_map(length_of).max().unwrap_or(0);
                made(field, (1..=count as i64).map(|number| Datum::Int64(Some(number))).collect())
            },
        ),
    ]
}

/// From texts, and to texts.
fn readings() -> Vec<RowFunction> {
    vec![
        RowFunction::new("string_to_array", 2..=3, |_| Ok(texts().field("", true)), |_, values| split(values)),
        RowFunction::new(
            TO_ARRAY,
            3..=3,
            |arguments| Ok(target(arguments)?.field("", true)),
            |field, values| match SqlType::of_field(field) {
                Some(ty) => cast(&ty, values[0].clone()),
                None => Err(SqlError::internal("a cast to no type")),
            },
        ),
        RowFunction::new(
            TO_TEXT,
            1..=1,
            |_| Ok(Field::new("", DataType::Utf8, true)),
            |_, values| coerce(&SqlType::Text, values[0].clone()),
        ),
    ]
}

/// Conditions on two arrays.
fn conditions() -> Vec<RowFunction> {
    vec![
        comparing("array_contains", |one, other| {
            let (one, other) = common_type(one, other);
            let known: HashSet<&Datum> = one.iter().filter(|value| !value.is_null()).collect();
            other.iter().all(|wanted| known.contains(wanted))
        }),
        comparing("array_overlaps", |one, other| {
            let (one, other) = common_type(one, other);
            let known: HashSet<&Datum> = one.iter().filter(|value| !value.is_null()).collect();
            other.iter().any(|wanted| known.contains(wanted))
        }),
        comparing(BEFORE, |one, other| compare_lists(one, other) == Ordering::Less),
    ]
}

/// The function of this name, which makes at most so many bytes of one batch of rows.
pub fn function(name: &str, bytes_max: u64) -> Arc<ScalarUDF> {
    static KNOWN: LazyLock<BTreeMap<String, (RowFunction, Arc<ScalarUDF>)>> = LazyLock::new(|| {
        all().map(|function| (function.name().to_owned(), (function.clone(), Arc::new(ScalarUDF::from(function))))).collect()
    });
    let (row, whole) = &KNOWN[name];
    if bytes_max < MADE_BYTES_MAX { Arc::new(ScalarUDF::from(row.with_bound(bytes_max))) } else { whole.clone() }
}

/// All of them, for the query engine.
pub(super) fn each() -> impl Iterator<Item = Arc<ScalarUDF>> {
    all().map(|function| Arc::new(function.into()))
}

/// A function of the number of elements and of a dimension that is asked for.
fn of_size(name: &'static str, count: usize, size: impl Fn(i32, Option<usize>) -> Option<i32> + Send + Sync + 'static) -> RowFunction {
    let returns = |arguments: &ReturnFieldArgs<'_>| returned(arguments, &[0], &[]).map(|_| Field::new("", DataType::Int32, true));
    RowFunction::new(name, count..=count, returns, move |_, values| {
        let length = length_of(&values[0]).and_then(|length| i32::try_from(length).ok());
        Ok(Datum::Int32(length.and_then(|length| size(length, number(values.get(1))))))
    })
}

/// A function that makes another list of one, where NULL stays NULL, into which the arguments in the places `values` may go.
fn keeping(
    name: &'static str,
    count: usize,
    values: &'static [usize],
    change: impl Fn(Vec<Datum>, &[Datum]) -> SqlResult<Vec<Datum>> + Send + Sync + 'static,
) -> RowFunction {
    RowFunction::new(
        name,
        count..=count,
        move |arguments| returned(arguments, &[0], values),
        move |field, values| match elements(&values[0]) {
            Some(list) => made(field, change(list, &values[1..])?),
            None => Ok(null_of(field)),
        },
    )
}

/// A condition on two lists; NULL if either is.
fn comparing(name: &'static str, holds: impl Fn(&[Datum], &[Datum]) -> bool + Send + Sync + 'static) -> RowFunction {
    let returns = |arguments: &ReturnFieldArgs<'_>| returned(arguments, &[0, 1], &[]).map(|_| Field::new("", DataType::Boolean, true));
    RowFunction::new(name, 2..=2, returns, move |_, values| {
        let lists = elements(&values[0]).zip(elements(&values[1]));
        Ok(Datum::Boolean(lists.map(|(one, other)| holds(&one, &other))))
    })
}

fn integers() -> SqlType {
    Element::try_from(SqlType::Int4).map_or(SqlType::Text, SqlType::Array)
}

fn texts() -> SqlType {
    Element::try_from(SqlType::Text).map_or(SqlType::Text, SqlType::Array)
}

/// The element of the array that comes first.
fn element_at(arguments: &ReturnFieldArgs<'_>) -> SqlResult<Field> {
    match SqlType::of_field(&returned(arguments, &[0], &[])?) {
        Some(SqlType::Array(element)) => Ok(element.ty().field("", true)),
        _ => Err(SqlError::internal("an array of no type")),
    }
}

/// The type that a call of [`TO_ARRAY`] names.
fn target(arguments: &ReturnFieldArgs<'_>) -> SqlResult<SqlType> {
    let ty = match arguments.scalar_arguments {
        [_, Some(oid), Some(modifier)] => of_numbers(oid, modifier),
        _ => None,
    };
    ty.ok_or_else(|| SqlError::internal("a cast names no type"))
}

/// A list of the type of a field, of values that may be of others.
fn made(field: &Field, values: Vec<Datum>) -> SqlResult<Datum> {
    let Some(SqlType::Array(element)) = SqlType::of_field(field) else { return Err(SqlError::internal("a list of no type")) };
    if values.len() > ELEMENTS_MAX {
        return Err(too_many_elements());
    }
    let values: Vec<Datum> = values.into_iter().map(|value| coerce(&element.ty(), value)).collect::<SqlResult<_>>()?;
    Ok(array(element, &values))
}

fn null_of(field: &Field) -> Datum {
    SqlType::of_field(field).map_or(Datum::Null, |ty| ty.null())
}

/// A subscript or a dimension, rounded as PostgreSQL does; `None` if it is NULL or below zero.
fn number(value: Option<&Datum>) -> Option<usize> {
    usize::try_from(signed(value)?).ok()
}

fn signed(value: Option<&Datum>) -> Option<i64> {
    match coerce(&SqlType::Int8, value?.clone()) {
        Ok(Datum::Int64(number)) => number,
        _ => None,
    }
}

/// Error 54000 where a function would make more than it may of one value.
fn within_bound(bytes: usize) -> SqlResult<()> {
    if bytes as u64 <= MADE_BYTES_MAX {
        return Ok(());
    }
    Err(SqlError::too_large(format!("a function of arrays would make more than {} KiB of one value", MADE_BYTES_MAX >> 10)))
}

fn position(values: &[Datum]) -> SqlResult<Datum> {
    if values.get(2).is_some_and(Datum::is_null) {
        return Err(SqlError::new(SqlState::NullValueNotAllowed, "initial position must not be null"));
    }
    let first = number(values.get(2)).unwrap_or(1).max(1);
    let found = elements(&values[0]).and_then(|list| list.iter().skip(first - 1).position(|value| same(value, &values[1])));
    Ok(Datum::Int32(found.and_then(|place| i32::try_from(place + first).ok())))
}

fn positions(values: &[Datum]) -> SqlResult<Datum> {
    let (Some(list), SqlType::Array(element)) = (elements(&values[0]), integers()) else { return Ok(integers().null()) };
    let places = (1..).zip(&list).filter(|(_, value)| same(value, &values[1])).map(|(place, _)| Datum::Int32(Some(place)));
    Ok(array(element, &places.collect::<Vec<_>>()))
}

/// `list[lower:upper]`.
fn slice(field: &Field, values: &[Datum]) -> SqlResult<Datum> {
    let bound = |place: usize| signed(values.get(place));
    let (Some(list), Some(lower), Some(upper)) = (elements(&values[0]), bound(1), bound(2)) else { return Ok(null_of(field)) };
    let kept = (1..).zip(list).filter(|(place, _)| (lower..=upper).contains(place)).map(|(_, value)| value);
    made(field, kept.collect())
}

/// `array_to_string`: NULLs are left out, unless a text stands for them.
fn joined(values: &[Datum]) -> SqlResult<Datum> {
    let text = |value: &Datum| to_text(&shown_type(value), value);
    let (Some(list), Some(between)) = (elements(&values[0]), values.get(1).and_then(text)) else { return Ok(Datum::Utf8(None)) };
    let null = values.get(2).and_then(text);
    let written: Vec<Option<String>> = list.iter().map(text).collect();
    let bytes = written.iter().map(|text| text.as_ref().or(null.as_ref()).map_or(0, String::len) + between.len());
    within_bound(bytes.fold(0, usize::saturating_add))?;
    let written: Vec<&str> = written.iter().filter_map(|text| text.as_deref().or(null.as_deref())).collect();
    Ok(Datum::Utf8(Some(written.join(&between))))
}

/// `string_to_array`: without a separator, each character.
fn split(values: &[Datum]) -> SqlResult<Datum> {
    let text = |place: usize| values.get(place).and_then(|value| to_text(&SqlType::Text, value));
    let (Some(whole), SqlType::Array(element)) = (text(0), texts()) else { return Ok(texts().null()) };
    let between = text(1);
    let count = match &between {
        None => whole.chars().count(),
        Some(between) if between.is_empty() => 1,
        Some(between) => whole.matches(between).count() + 1,
    };
    if count > ELEMENTS_MAX {
        return Err(too_many_elements());
    }
    let pieces: Vec<String> = match between {
        _ if whole.is_empty() => Vec::new(),
        None => whole.chars().map(String::from).collect(),
        Some(between) if between.is_empty() => vec![whole],
        Some(between) => whole.split(&between).map(String::from).collect(),
    };
    let null = text(2);
    let value = |piece: String| if Some(&piece) == null.as_ref() { Datum::Utf8(None) } else { Datum::Utf8(Some(piece)) };
    Ok(array(element, &pieces.into_iter().map(value).collect::<Vec<_>>()))
}
