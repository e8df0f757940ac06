//! Text into values: literals in quotes, parameters in text format, and the fields of `COPY`.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::array;
use crate::types::calendar::{MICROS_PER_DAY, MICROS_PER_SECOND, Unreadable, parse_date, parse_time, parse_timestamp};
use crate::types::decimal::Written;
use crate::types::interval::parse_interval;
use crate::types::sql_type::Element;
use crate::types::stored::{date, fit_text, integer, numeric, timestamp};
use crate::types::{Datum, SqlType};

/// The hexadecimal digits of a UUID.
const UUID_DIGITS: usize = 32;
/// Where the canonical form of a UUID has its hyphens: before these digits.
const UUID_HYPHENS: [usize; 4] = [8, 12, 16, 20];

/// The value of type `ty` that `text` spells, as PostgreSQL reads it. Errors: 22P02 or 22007 if it spells none, 22003 or
/// 22008 if that value is out of range, 22001 if it is too long, 22021 if it holds a zero byte.
pub fn parse_text(ty: &SqlType, text: &str) -> SqlResult<Datum> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let invalid = || SqlError::invalid_text(ty.name(), text);
    let unreadable = |why| match why {
        Unreadable::Syntax => SqlError::invalid_datetime(ty.name(), text),
        Unreadable::Range => SqlError::new(SqlState::DatetimeFieldOverflow, format!("date/time field value out of range: \"{text}\"")),
    };
    Ok(match ty {
        SqlType::Bool => Datum::Boolean(Some(parse_bool(trimmed).ok_or_else(invalid)?)),
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => parse_integer(ty, trimmed)?.ok_or_else(invalid)?,
        SqlType::Float4 => Datum::Float32(Some(parse_float::<f32>(ty, trimmed)?.ok_or_else(invalid)?)),
        SqlType::Float8 => Datum::Float64(Some(parse_float::<f64>(ty, trimmed)?.ok_or_else(invalid)?)),
        SqlType::Numeric(_) => parse_numeric(ty, trimmed)?.ok_or_else(invalid)?,
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => Datum::Utf8(Some(fit_text(ty, text.to_string())?)),
        SqlType::Bytea => Datum::Binary(Some(parse_bytes(text).ok_or_else(invalid)?)),
        SqlType::Date => {
            // A time after the date is read and left out.
            let days = parse_timestamp(trimmed).map(|(at, _)| at.div_euclid(MICROS_PER_DAY)).or_else(|_| parse_date(trimmed));
            date(days.map_err(unreadable)?)?
        }
        SqlType::Time => Datum::Time64Microsecond(Some(parse_time(trimmed).map_err(unreadable)?)),
        SqlType::Timestamp => timestamp(ty, parse_timestamp(trimmed).map_err(unreadable)?.0),
        SqlType::TimestampTz => {
            let (at, zone) = parse_timestamp(trimmed).map_err(unreadable)?;
            let utc = at.checked_sub(zone.unwrap_or(0) * MICROS_PER_SECOND).ok_or_else(|| unreadable(Unreadable::Range))?;
            timestamp(ty, utc)
        }
        SqlType::Array(element) => {
            let ty = element.ty();
            let value = |text: Option<String>| text.map_or_else(|| Ok(ty.null()), |text| parse_text(&ty, &text));
            array::array(*element, &array::split(text)?.into_iter().map(value).collect::<SqlResult<Vec<_>>>()?)
        }
        SqlType::Int2Vector => {
            let values = text.split_ascii_whitespace().map(|number| parse_text(&SqlType::Int2, number)).collect::<SqlResult<Vec<_>>>()?;
            array::array(Element::INT2, &values)
        }
        SqlType::Interval => parse_interval(trimmed).map_err(unreadable)?.stored()?,
        SqlType::Uuid => Datum::Utf8(Some(parse_uuid(trimmed).ok_or_else(invalid)?)),
    })
}

/// Any prefix that only one of the words has.
fn parse_bool(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let begins = |word: &str, shortest: usize| text.len() >= shortest && word.starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || text == "on" || text == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0" {
        Some(false)
    } else {
        None
    }
}

fn parse_integer(ty: &SqlType, text: &str) -> SqlResult<Option<Datum>> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    // Only digits: what does not parse is too large even for 128 bits.
    match text.parse().ok().and_then(|value| integer(ty, value)) {
        Some(value) => Ok(Some(value)),
        None => Err(text_out_of_range(ty, text)),
    }
}

fn parse_float<F: std::str::FromStr + Into<f64> + Copy>(ty: &SqlType, text: &str) -> SqlResult<Option<F>> {
    let Ok(value) = text.parse::<F>() else { return Ok(None) };
    let wide: f64 = value.into();
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let overflowed = wide.is_infinite() && mantissa.contains(|c: char| c.is_ascii_digit());
    let underflowed = wide == 0.0 && mantissa.contains(|c: char| ('1'..='9').contains(&c));
    if overflowed || underflowed { Err(text_out_of_range(ty, text)) } else { Ok(Some(value)) }
}

fn parse_numeric(ty: &SqlType, text: &str) -> SqlResult<Option<Datum>> {
    if let Some(written) = Written::parse(text) {
        return numeric(ty, &written).map(Some);
    }
    let word = text.trim_start_matches(['-', '+']).to_ascii_lowercase();
    if ["nan", "inf", "infinity"].contains(&word.as_str()) {
        return Err(SqlError::unsupported("numeric cannot hold NaN or infinity"));
    }
    Ok(None)
}

fn text_out_of_range(ty: &SqlType, text: &str) -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, format!("value \"{text}\" is out of range for type {}", ty.name()))
}

/// `\x0a1b`, or the older form: characters, `\\` and three octal digits after `\`.
fn parse_bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        return digits.chunks(2).map(|pair| <[u8; 2]>::try_from(pair).ok().and_then(hex_byte)).collect();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = match (first, tail) {
            (b'\\', [b'\\', tail @ ..]) => {
                bytes.push(b'\\');
                tail
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                tail
            }
            (b'\\', _) => return None,
            _ => {
                bytes.push(first);
                tail
            }
        };
    }
    Some(bytes)
}

fn hex_byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// The canonical form of a UUID: 32 hexadecimal digits in either case, hyphens after any four of them, perhaps in braces.
fn parse_uuid(text: &str) -> Option<String> {
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => text,
    };
    let mut canonical = String::with_capacity(UUID_DIGITS + UUID_HYPHENS.len());
    let mut digits = 0;
    let mut after_hyphen = true;
    for c in inner.chars() {
        match c {
            '-' if digits % 4 == 0 && !after_hyphen && digits < UUID_DIGITS => after_hyphen = true,
            _ if c.is_ascii_hexdigit() && digits < UUID_DIGITS => {
                if UUID_HYPHENS.contains(&digits) {
                    canonical.push('-');
                }
                canonical.push(c.to_ascii_lowercase());
                digits += 1;
                after_hyphen = false;
            }
            _ => return None,
        }
    }
    (digits == UUID_DIGITS).then_some(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::to_text;

    /// What `text` prints as, once read; or the code of the error.
    fn read(ty: SqlType, text: &str) -> String {
        match parse_text(&ty, text) {
            Ok(value) => to_text(&ty, &value).expect("not NULL"),
            Err(error) => error.state().code().to_string(),
        }
    }

    #[test]
    fn text_becomes_a_value_and_prints_as_postgresql_prints_it() {
        let cases = [
            (SqlType::Bool, " TRUE ", "t"),
            (SqlType::Bool, "of", "f"),
            (SqlType::Int4, " -42 ", "-42"),
            (SqlType::Int8, "+9223372036854775807", "9223372036854775807"),
            (SqlType::Float8, "1e3", "1000"),
            (SqlType::Float8, "-inf", "-Infinity"),
            (SqlType::Float8, "nan", "NaN"),
            (SqlType::Numeric(Some((6, 2))), "1.005", "1.01"),
            (SqlType::Numeric(None), "100.50", "100.5"),
            (SqlType::Numeric(None), "1e3", "1000"),
            (SqlType::Text, " a b ", " a b "),
            (SqlType::Char(4), "ab", "ab  "),
            (SqlType::Bytea, "\\x00fF", "\\x00ff"),
            (SqlType::Bytea, "a\\\\\\001", "\\x615c01"),
            (SqlType::Date, "2024-2-9", "2024-02-09"),
            (SqlType::Date, "2024-02-09 23:00:00", "2024-02-09"),
            (SqlType::Time, "7:05", "07:05:00"),
            (SqlType::Time, "24:00", "24:00:00"),
            (SqlType::Time, "23:59:60", "24:00:00"),
            (SqlType::Timestamp, "2024-12-31 24:00", "2025-01-01 00:00:00"),
            (SqlType::Timestamp, "2024-02-09T07:05:00.120", "2024-02-09 07:05:00.12"),
            (SqlType::TimestampTz, "2024-02-09 01:00:00+02", "2024-02-08 23:00:00+00"),
            (SqlType::Uuid, "{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ];
        for (ty, text, printed) in cases {
            assert_eq!(read(ty, text), printed, "{ty} {text:?}");
        }
    }

    #[test]
    fn text_that_spells_no_value_is_refused_with_its_condition() {
        let cases = [
            (SqlType::Bool, "o", "22P02"),
            (SqlType::Bool, "", "22P02"),
            (SqlType::Int2, "40000", "22003"),
            (SqlType::Int8, "1.5", "22P02"),
            (SqlType::Int8, "99999999999999999999999999999999999999999999", "22003"),
            (SqlType::Float8, "1e400", "22003"),
            (SqlType::Float8, "1e-400", "22003"),
            (SqlType::Float4, "1e39", "22003"),
            (SqlType::Float8, "abc", "22P02"),
            (SqlType::Numeric(None), "1.2.3", "22P02"),
            (SqlType::Numeric(None), "NaN", "0A000"),
            (SqlType::Varchar(Some(2)), "abc", "22001"),
            (SqlType::Text, "\0", "22021"),
            (SqlType::Bytea, "\\xabc", "22P02"),
            (SqlType::Bytea, "\\9", "22P02"),
            (SqlType::Date, "2023-02-29", "22008"),
            (SqlType::Date, "soon", "22007"),
            (SqlType::Time, "24:01", "22008"),
            (SqlType::Timestamp, "2024-01-01 10", "22007"),
            (SqlType::Timestamp, "9999999-01-01", "22008"),
            (SqlType::Uuid, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "22P02"),
            (SqlType::Uuid, "a0eebc99--9c0b4ef8bb6d6bb9bd380a11", "22P02"),
        ];
        for (ty, text, code) in cases {
            assert_eq!(read(ty, text), code, "{ty} {text:?}");
        }
    }
}
