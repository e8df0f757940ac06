//! Values into text, as PostgreSQL prints them.

use crate::types::array;
use crate::types::calendar::{format_date, format_time, format_timestamp};
use crate::types::decimal::format_decimal;
use crate::types::interval::format_interval;
use crate::types::plain::{Plain, Reduced, reduce};
use crate::types::{Datum, SqlType};
use std::fmt::Write;

/// Floats below 10 to the power of this many digits print without an exponent.
const SINGLE_FIXED_DIGITS: i32 = 6;
const DOUBLE_FIXED_DIGITS: i32 = 15;
/// Floats at or above 10 to this power print without an exponent.
const FIXED_EXPONENT_MIN: i32 = -4;

/// The text of a value of type `ty`; `None` for NULL. The time zone of every session is UTC.
pub fn to_text(ty: &SqlType, value: &Datum) -> Option<String> {
    let plain = match reduce(value.clone()) {
        Reduced::Null => return None,
        Reduced::Value(plain) => plain,
        Reduced::Foreign => return Some(value.to_string()),
    };
    Some(match (ty, &plain) {
        (_, Plain::Bool(value)) => if *value { "t" } else { "f" }.to_string(),
        (SqlType::Int2Vector, Plain::Array(values)) => {
            values.iter().filter_map(|value| to_text(&SqlType::Int2, value)).collect::<Vec<_>>().join(" ")
        }
        (SqlType::Array(element), Plain::Array(values)) => array::print(values.iter().map(|value| to_text(&element.ty(), value))),
        (SqlType::Char(length), Plain::Text(text)) => format!("{text:<width$}", width = *length as usize),
        (SqlType::Numeric(None), Plain::Decimal(unscaled, scale)) if *scale > 0 => {
            format_decimal(*unscaled, *scale).trim_end_matches('0').trim_end_matches('.').to_string()
        }
        _ => print_plain(&plain),
    })
}

/// The text that a value becomes when it is cast to text.
pub(super) fn print_plain(plain: &Plain) -> String {
    match plain {
        Plain::Bool(value) => value.to_string(),
        Plain::Integer(value) => value.to_string(),
        Plain::Single(value) => format_float(&format!("{value:e}"), SINGLE_FIXED_DIGITS),
        Plain::Double(value) => format_float(&format!("{value:e}"), DOUBLE_FIXED_DIGITS),
        Plain::Decimal(unscaled, scale) => format_decimal(*unscaled, *scale),
        Plain::Text(text) => text.clone(),
        Plain::Bytes(bytes) => bytes.iter().fold("\\x".to_string(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes any text");
            text
        }),
        Plain::Date(days) => format_date(*days),
        Plain::Time(micros) => format_time(*micros),
        Plain::Timestamp(at) => format_timestamp(*at, ""),
        Plain::TimestampTz(at) => format_timestamp(*at, "+00"),
        Plain::Interval(interval) => format_interval(interval),
        Plain::Array(values) => array::print(values.iter().map(|value| to_text(&array::shown_type(value), value))),
    }
}

/// PostgreSQL's layout of the shortest digits, given as `-1.25e-7`, that read back as the same float.
fn format_float(scientific: &str, fixed_digits: i32) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return match scientific {
            "inf" => "Infinity".to_string(),
            "-inf" => "-Infinity".to_string(),
            _ => "NaN".to_string(),
        };
    };
    let exponent: i32 = exponent.parse().expect("Rust prints the exponent as an integer");
    if !(FIXED_EXPONENT_MIN..fixed_digits).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole_digits = exponent as usize + 1;
    if digits.len() <= whole_digits {
        return format!("{sign}{digits:0<whole_digits$}");
    }
    let (whole, fraction) = digits.split_at(whole_digits);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_postgresql_prints_them() {
        let double = |value: f64| to_text(&SqlType::Float8, &Datum::Float64(Some(value))).expect("not NULL");
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-1234.5, "-1234.5"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (1.5e300, "1.5e+300"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, text) in cases {
            assert_eq!(double(value), text);
        }
        let single = |value: f32| to_text(&SqlType::Float4, &Datum::Float32(Some(value))).expect("not NULL");
        assert_eq!(single(0.1), "0.1");
        assert_eq!(single(123_456.0), "123456");
        assert_eq!(single(1_234_567.0), "1.234567e+06");
    }

    #[test]
    fn null_has_no_text() {
        assert_eq!(to_text(&SqlType::Text, &Datum::Utf8(None)), None);
        assert_eq!(to_text(&SqlType::Int4, &Datum::Null), None);
    }
}
