//! Assignment: values on their way into a column, by PostgreSQL's rules.
//!
//! Numbers go into any numeric type that can hold them, rounded where it has fewer digits; dates and timestamps into each
//! other; everything into text; and text into anything that it spells, because that is the type of a literal in quotes.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::array;
use crate::types::calendar::MICROS_PER_DAY;
use crate::types::decimal::Written;
use crate::types::interval::Interval;
use crate::types::parse::parse_text;
use crate::types::plain::{Plain, Reduced, reduce};
use crate::types::stored::{date, datetime_out_of_range, fit_text, integer, numeric, timestamp};
use crate::types::text::print_plain;
use crate::types::{Datum, Element, SqlType};

/// The significant digits of a float that survive on its way into NUMERIC, as in PostgreSQL.
const SINGLE_DIGITS: usize = 6;
const DOUBLE_DIGITS: usize = 15;

/// `value` as a column of type `ty` stores it, whatever type it comes in. Errors: 22001 text too long, 22003 out of range,
/// 22P02 text that does not spell a value of the type, 42804 types that do not go together.
pub fn coerce(ty: &SqlType, value: Datum) -> SqlResult<Datum> {
    match reduce(value) {
        Reduced::Null => Ok(ty.null()),
        Reduced::Value(plain) => assign(ty, plain),
        Reduced::Foreign => Err(foreign(ty)),
    }
}

/// `CAST(value AS ty)`: as [`coerce`], but text too long is cut rather than refused, and booleans and integers go into
/// each other.
pub fn cast(ty: &SqlType, value: Datum) -> SqlResult<Datum> {
    match (ty, reduce(value)) {
        (_, Reduced::Null) => Ok(ty.null()),
        (SqlType::Varchar(Some(length)) | SqlType::Char(length), Reduced::Value(plain)) => {
            let text = if let Plain::Text(text) = plain { text } else { print_plain(&plain) };
            Ok(Datum::Utf8(Some(fit_text(ty, text.chars().take(*length as usize).collect())?)))
        }
        (SqlType::Bool, Reduced::Value(Plain::Integer(value))) => Ok(Datum::Boolean(Some(value != 0))),
        (SqlType::Int2 | SqlType::Int4 | SqlType::Int8, Reduced::Value(Plain::Bool(value))) => {
            assign_integer(ty, Plain::Integer(value.into()))
        }
        (SqlType::Array(element), Reduced::Value(Plain::Array(values))) => array::converted(*element, values, cast),
        (_, Reduced::Value(plain)) => assign(ty, plain),
        (_, Reduced::Foreign) => Err(foreign(ty)),
    }
}

fn assign(ty: &SqlType, plain: Plain) -> SqlResult<Datum> {
    Ok(match (ty, plain) {
        (SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_), Plain::Text(text)) => Datum::Utf8(Some(fit_text(ty, text)?)),
        (_, Plain::Text(text)) => parse_text(ty, &text)?,
        (SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_), plain) => Datum::Utf8(Some(fit_text(ty, print_plain(&plain))?)),
        (SqlType::Array(element), Plain::Array(values)) => array::converted(*element, values, coerce)?,
        (SqlType::Int2Vector, Plain::Array(values)) => array::converted(Element::INT2, values, coerce)?,
        (SqlType::Bool, Plain::Bool(value)) => Datum::Boolean(Some(value)),
        (SqlType::Bytea, Plain::Bytes(bytes)) => Datum::Binary(Some(bytes)),
        (SqlType::Int2 | SqlType::Int4 | SqlType::Int8, plain) => assign_integer(ty, plain)?,
        (SqlType::Float4, plain) => Datum::Float32(Some(single(&plain).ok_or_else(|| mismatch(ty, &plain))??)),
        (SqlType::Float8, plain) => Datum::Float64(Some(double(&plain).ok_or_else(|| mismatch(ty, &plain))?)),
        (SqlType::Numeric(_), plain) => assign_numeric(ty, plain)?,
        (SqlType::Date, Plain::Date(days)) => date(days)?,
        (SqlType::Date, Plain::Timestamp(at) | Plain::TimestampTz(at)) => date(at.div_euclid(MICROS_PER_DAY))?,
        (SqlType::Time, Plain::Time(micros)) => Datum::Time64Microsecond(Some(micros)),
        (SqlType::Time, Plain::Timestamp(at) | Plain::TimestampTz(at)) => Datum::Time64Microsecond(Some(at.rem_euclid(MICROS_PER_DAY))),
        (SqlType::Timestamp | SqlType::TimestampTz, Plain::Timestamp(at) | Plain::TimestampTz(at)) => timestamp(ty, at),
        (SqlType::Timestamp | SqlType::TimestampTz, Plain::Date(days)) => {
            timestamp(ty, days.checked_mul(MICROS_PER_DAY).ok_or_else(|| datetime_out_of_range(ty))?)
        }
        (SqlType::Interval, Plain::Interval(value)) => value.stored()?,
        (SqlType::Interval, Plain::Time(micros)) => Interval { micros, ..Interval::default() }.stored()?,
        (SqlType::Time, Plain::Interval(value)) => Datum::Time64Microsecond(Some(value.micros.rem_euclid(MICROS_PER_DAY))),
        (_, plain) => return Err(mismatch(ty, &plain)),
    })
}

fn assign_integer(ty: &SqlType, plain: Plain) -> SqlResult<Datum> {
    let value = match plain {
        Plain::Integer(value) => Some(value),
        // The nearest integer, ties to even. 2^100 and above are out of range of all three types, and no i128 wraps.
        Plain::Single(value) => float_integer(value.into()),
        Plain::Double(value) => float_integer(value),
        Plain::Decimal(unscaled, scale) => Written::from_unscaled(unscaled, scale).to_scale(0).map(|(value, _)| value),
        other => return Err(mismatch(ty, &other)),
    };
    value.and_then(|value| integer(ty, value)).ok_or_else(|| SqlError::out_of_range(ty.name()))
}

fn float_integer(value: f64) -> Option<i128> {
    let rounded = value.round_ties_even();
    (rounded.is_finite() && rounded.abs() < 2f64.powi(100)).then_some(rounded as i128)
}

fn single(plain: &Plain) -> Option<SqlResult<f32>> {
    let wide = match plain {
        Plain::Single(value) => return Some(Ok(*value)),
        other => double(other)?,
    };
    let narrow = wide as f32;
    Some(if narrow.is_infinite() && wide.is_finite() { Err(SqlError::out_of_range("real")) } else { Ok(narrow) })
}

fn double(plain: &Plain) -> Option<f64> {
    Some(match plain {
        Plain::Integer(value) => *value as f64,
        Plain::Single(value) => f64::from(*value),
        Plain::Double(value) => *value,
        // Through text, which is rounded once; a division would round twice.
        Plain::Decimal(..) => print_plain(plain).parse().expect("a decimal prints as a number"),
        _ => return None,
    })
}

fn assign_numeric(ty: &SqlType, plain: Plain) -> SqlResult<Datum> {
    let written = match plain {
        Plain::Integer(value) => Some(Written::from_unscaled(value, 0)),
        Plain::Decimal(unscaled, scale) => Some(Written::from_unscaled(unscaled, scale)),
        Plain::Single(value) => Written::parse(&format!("{value:.*e}", SINGLE_DIGITS - 1)),
        Plain::Double(value) => Written::parse(&format!("{value:.*e}", DOUBLE_DIGITS - 1)),
        other => return Err(mismatch(ty, &other)),
    };
    match written {
        Some(written) => numeric(ty, &written),
        None => Err(SqlError::unsupported("numeric cannot hold NaN or infinity")),
    }
}

fn mismatch(ty: &SqlType, plain: &Plain) -> SqlError {
    let message = format!("cannot store a value of type {} as {}", plain.name(), ty.name());
    SqlError::new(SqlState::DatatypeMismatch, message).with_hint("You will need to rewrite or cast the expression.")
}

fn foreign(ty: &SqlType) -> SqlError {
    SqlError::new(SqlState::DatatypeMismatch, format!("a value of this kind cannot be stored as {ty}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn stored(ty: SqlType, value: Datum) -> Result<Datum, &'static str> {
        coerce(&ty, value).map_err(|error| error.state().code())
    }

    #[test]
    fn numbers_round_and_stay_in_range() {
        assert_eq!(stored(SqlType::Int2, Datum::Int64(Some(32_767))), Ok(Datum::Int16(Some(32_767))));
        assert_eq!(stored(SqlType::Int2, Datum::Int64(Some(32_768))), Err("22003"));
        assert_eq!(stored(SqlType::Int4, Datum::Float64(Some(2.5))), Ok(Datum::Int32(Some(2))));
        assert_eq!(stored(SqlType::Int4, Datum::Decimal128(Some(25), 5, 1)), Ok(Datum::Int32(Some(3))));
        assert_eq!(stored(SqlType::Int8, Datum::Float64(Some(f64::NAN))), Err("22003"));
        assert_eq!(stored(SqlType::Int8, Datum::Float64(Some(1e300))), Err("22003"));
        assert_eq!(stored(SqlType::Float4, Datum::Float64(Some(1e300))), Err("22003"));
        assert_eq!(stored(SqlType::Float8, Datum::Decimal128(Some(1), 5, 1)), Ok(Datum::Float64(Some(0.1))));
        let money = SqlType::Numeric(Some((6, 2)));
        assert_eq!(stored(money, Datum::Float64(Some(0.1))), Ok(Datum::Decimal128(Some(10), 6, 2)));
        assert_eq!(stored(money, Datum::UInt64(Some(9_999))), Ok(Datum::Decimal128(Some(999_900), 6, 2)));
        assert_eq!(stored(money, Datum::Int64(Some(10_000))), Err("22003"));
        assert_eq!(stored(money, Datum::Float64(Some(f64::INFINITY))), Err("0A000"));
    }

    #[test]
    fn text_fits_or_is_refused() {
        let text = |text: &str| Datum::Utf8View(Some(text.to_string()));
        let kept = |text: &str| Ok(Datum::Utf8(Some(text.to_string())));
        assert_eq!(stored(SqlType::Varchar(Some(3)), text("äöü")), kept("äöü"));
        assert_eq!(stored(SqlType::Varchar(Some(3)), text("abcd")), Err("22001"));
        assert_eq!(stored(SqlType::Varchar(Some(3)), text("ab   ")), kept("ab "));
        assert_eq!(stored(SqlType::Char(3), text("a ")), kept("a"));
        assert_eq!(stored(SqlType::Char(3), text("abcd")), Err("22001"));
        assert_eq!(stored(SqlType::Text, text("a\0b")), Err("22021"));
        assert_eq!(stored(SqlType::Varchar(Some(3)), Datum::Int64(Some(1_234))), Err("22001"));
        assert_eq!(stored(SqlType::Text, Datum::Boolean(Some(true))), kept("true"));
    }

    #[test]
    fn dates_and_timestamps_go_into_each_other() {
        let noon = Datum::TimestampNanosecond(Some(43_200_000_000_001), None);
        assert_eq!(stored(SqlType::Date, noon.clone()), Ok(Datum::Date32(Some(0))));
        assert_eq!(stored(SqlType::Time, noon.clone()), Ok(Datum::Time64Microsecond(Some(43_200_000_000))));
        let zoned = Datum::TimestampMicrosecond(Some(43_200_000_000), Some(Arc::from("+00:00")));
        assert_eq!(stored(SqlType::TimestampTz, noon), Ok(zoned));
        let last = Datum::Date32(Some(i32::MAX));
        assert_eq!(stored(SqlType::Timestamp, last), Err("22008"));
    }

    #[test]
    fn types_that_do_not_go_together_are_refused_and_null_goes_anywhere() {
        assert_eq!(stored(SqlType::Int4, Datum::Boolean(Some(true))), Err("42804"));
        assert_eq!(stored(SqlType::Bool, Datum::Int64(Some(1))), Err("42804"));
        assert_eq!(stored(SqlType::Bytea, Datum::Date32(Some(1))), Err("42804"));
        assert_eq!(stored(SqlType::Uuid, Datum::Null), Ok(Datum::Utf8(None)));
        assert_eq!(stored(SqlType::Int4, Datum::Utf8(Some("12".into()))), Ok(Datum::Int32(Some(12))));
        assert_eq!(stored(SqlType::Int4, Datum::Utf8(Some("x".into()))), Err("22P02"));
    }

    #[test]
    fn a_cast_cuts_text_and_turns_booleans_into_integers() {
        let text = |text: &str| Datum::Utf8(Some(text.to_string()));
        assert_eq!(cast(&SqlType::Varchar(Some(2)), text("äöü")), Ok(text("äö")));
        assert_eq!(cast(&SqlType::Varchar(Some(2)), Datum::Int64(Some(123))), Ok(text("12")));
        assert_eq!(cast(&SqlType::Int4, Datum::Boolean(Some(true))), Ok(Datum::Int32(Some(1))));
        assert_eq!(cast(&SqlType::Bool, Datum::Int64(Some(2))), Ok(Datum::Boolean(Some(true))));
        assert_eq!(cast(&SqlType::Int2, Datum::Int64(Some(40_000))).map_err(|error| error.state().code()), Err("22003"));
    }
}
