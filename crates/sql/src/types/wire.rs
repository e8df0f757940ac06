//! Values in the two formats of the wire: text, and the binary layouts of PostgreSQL's `send` functions.

mod numeric;

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{
    Datum, ELEMENTS_MAX, Element, Interval, MICROS_PER_DAY, SqlType, array, elements, parse_text, several_dimensions, to_text,
    too_many_elements,
};
use bytes::{BufMut, BytesMut};

/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's origin of dates.
const ORIGIN_DAYS: i32 = 10_957;
/// Microseconds between the two origins.
const ORIGIN_MICROS: i64 = ORIGIN_DAYS as i64 * MICROS_PER_DAY;
const NULL_LENGTH: i32 = -1;
const LENGTH_BYTES: usize = 4;
/// The number of an array's first element.
const FIRST_NUMBER: i32 = 1;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As a human reads it.
    Text,
    /// As PostgreSQL's `send` functions write it.
    Binary,
}

impl Format {
    /// The format of item `index` among `codes`: none means text, one is meant for all.
    pub fn of(codes: &[i16], index: usize) -> Format {
        let code = if codes.len() == 1 { codes.first() } else { codes.get(index) };
        if code == Some(&1) { Format::Binary } else { Format::Text }
    }

    /// Its number on the wire.
    pub fn code(self) -> i16 {
        i16::from(self == Format::Binary)
    }
}

/// Appends a field of a row: its length, then the value.
pub fn put_field(out: &mut BytesMut, ty: &SqlType, value: &Datum, format: Format) -> SqlResult<()> {
    if value.is_null() {
        out.put_i32(NULL_LENGTH);
        return Ok(());
    }
    let start = out.len();
    out.put_i32(0);
    match format {
        Format::Text => out.put_slice(to_text(ty, value).unwrap_or_default().as_bytes()),
        Format::Binary => put_binary(out, ty, value)?,
    }
    let length = i32::try_from(out.len() - start - LENGTH_BYTES).map_err(|_| SqlError::too_large("a value is longer than 2 GB"))?;
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn put_binary(out: &mut BytesMut, ty: &SqlType, value: &Datum) -> SqlResult<()> {
    match value {
        Datum::Boolean(Some(value)) => out.put_u8(u8::from(*value)),
        Datum::Int16(Some(value)) => out.put_i16(*value),
        Datum::Int32(Some(value)) => out.put_i32(*value),
        Datum::Int64(Some(value)) => out.put_i64(*value),
        Datum::Float32(Some(value)) => out.put_f32(*value),
        Datum::Float64(Some(value)) => out.put_f64(*value),
        Datum::Decimal128(Some(value), _, scale) => numeric::put(out, *value, *scale),
        Datum::Utf8(Some(value)) if *ty == SqlType::Uuid => out.put_slice(&uuid_bytes(value)?),
        Datum::Utf8(Some(_)) => out.put_slice(to_text(ty, value).unwrap_or_default().as_bytes()),
        Datum::Binary(Some(value)) => out.put_slice(value),
        Datum::Date32(Some(days)) => out.put_i32(days.saturating_sub(ORIGIN_DAYS)),
        Datum::Time64Microsecond(Some(micros)) => out.put_i64(*micros),
        Datum::IntervalMonthDayNano(Some(value)) => {
            let Interval { months, days, micros } = Interval::of_arrow(*value);
            out.put_i64(micros);
            out.put_i32(days);
            out.put_i32(months);
        }
        Datum::List(_) => put_array(out, ty, value)?,
        Datum::TimestampMicrosecond(Some(micros), _) => out.put_i64(micros.saturating_sub(ORIGIN_MICROS)),
        other => return Err(SqlError::internal(format!("no binary form of a value of type {}", other.data_type()))),
    }
    Ok(())
}

/// In the layout that [`array`](super::array) shows.
fn put_array(out: &mut BytesMut, ty: &SqlType, value: &Datum) -> SqlResult<()> {
    let (Some(element), Some(values)) = (ty.element(), elements(value)) else {
        return Err(SqlError::internal(format!("an array is no value of type {ty}")));
    };
    let element = element.ty();
    out.put_i32(i32::from(!values.is_empty()));
    out.put_i32(i32::from(values.iter().any(Datum::is_null)));
    out.put_u32(element.oid());
    if !values.is_empty() {
        out.put_i32(i32::try_from(values.len()).map_err(|_| SqlError::too_large("an array has more than 2^31 elements"))?);
        out.put_i32(FIRST_NUMBER);
    }
    values.iter().try_for_each(|value| put_field(out, &element, value, Format::Binary))
}

fn read_array(ty: &SqlType, element: Element, mut bytes: &[u8]) -> SqlResult<Datum> {
    let mut number = || take(&mut bytes, LENGTH_BYTES).and_then(|taken| Some(i32::from_be_bytes(taken.try_into().ok()?)));
    let mut head = || number().ok_or_else(|| malformed(ty));
    let (dimensions, _, oid) = (head()?, head()?, head()?);
    let element_type = element.ty();
    // A text is a text, whatever its length.
    let same = SqlType::from_oid(oid as u32, -1).is_some_and(|sent| sent.unbounded() == element_type.unbounded());
    if !same {
        return Err(SqlError::new(SqlState::DatatypeMismatch, format!("wrong element type: the array is to be {ty}")));
    }
    let count = match dimensions {
        0 => 0,
        1 => {
            let (count, first) = (head()?, head()?);
            if first != FIRST_NUMBER {
                return Err(SqlError::unsupported("arrays whose elements are not numbered from 1 are not supported"));
            }
            usize::try_from(count).map_err(|_| malformed(ty))?
        }
        2.. => return Err(several_dimensions()),
        _ => return Err(malformed(ty)),
    };
    // Each of them has its length at least.
    if count > bytes.len() / LENGTH_BYTES {
        return Err(malformed(ty));
    }
    if count > ELEMENTS_MAX {
        return Err(too_many_elements());
    }
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let length = take(&mut bytes, LENGTH_BYTES).and_then(|taken| Some(i32::from_be_bytes(taken.try_into().ok()?)));
        let value = match length.ok_or_else(|| malformed(ty))? {
            NULL_LENGTH => None,
            length => Some(usize::try_from(length).ok().and_then(|length| take(&mut bytes, length)).ok_or_else(|| malformed(ty))?),
        };
        values.push(read_parameter(&element_type, value, Format::Binary)?);
    }
    if bytes.is_empty() { Ok(array(element, &values)) } else { Err(malformed(ty)) }
}

/// Takes so many bytes off the front, if they are there.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn uuid_bytes(text: &str) -> SqlResult<[u8; 16]> {
    let hex: String = text.chars().filter(|character| *character != '-').collect();
    let value = u128::from_str_radix(&hex, 16).map_err(|_| SqlError::invalid_text("uuid", text))?;
    Ok(value.to_be_bytes())
}

/// Reads a parameter of type `ty`.
pub fn read_parameter(ty: &SqlType, bytes: Option<&[u8]>, format: Format) -> SqlResult<Datum> {
    let Some(bytes) = bytes else { return Ok(ty.null()) };
    match format {
        Format::Text => parse_text(ty, utf8(bytes)?),
        Format::Binary => read_binary(ty, bytes),
    }
}

fn read_binary(ty: &SqlType, bytes: &[u8]) -> SqlResult<Datum> {
    Ok(match ty {
        SqlType::Bool => Datum::Boolean(Some(fixed::<1>(ty, bytes)?[0] != 0)),
        SqlType::Int2 => Datum::Int16(Some(i16::from_be_bytes(fixed(ty, bytes)?))),
        SqlType::Int4 => Datum::Int32(Some(i32::from_be_bytes(fixed(ty, bytes)?))),
        SqlType::Int8 => Datum::Int64(Some(i64::from_be_bytes(fixed(ty, bytes)?))),
        SqlType::Float4 => Datum::Float32(Some(f32::from_be_bytes(fixed(ty, bytes)?))),
        SqlType::Float8 => Datum::Float64(Some(f64::from_be_bytes(fixed(ty, bytes)?))),
        SqlType::Numeric(_) => return parse_text(ty, &numeric::read(bytes).ok_or_else(|| malformed(ty))?),
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => return parse_text(ty, utf8(bytes)?),
        SqlType::Bytea => Datum::Binary(Some(bytes.to_vec())),
        SqlType::Date => {
            let days = i32::from_be_bytes(fixed(ty, bytes)?).checked_add(ORIGIN_DAYS);
            Datum::Date32(Some(days.ok_or_else(|| SqlError::out_of_range(ty.name()))?))
        }
        SqlType::Time => match i64::from_be_bytes(fixed(ty, bytes)?) {
            micros @ 0..=MICROS_PER_DAY => Datum::Time64Microsecond(Some(micros)),
            _ => return Err(SqlError::new(SqlState::DatetimeFieldOverflow, "time out of range")),
        },
        SqlType::Timestamp | SqlType::TimestampTz => {
            let micros = i64::from_be_bytes(fixed(ty, bytes)?).checked_add(ORIGIN_MICROS);
            let micros = micros.ok_or_else(|| SqlError::out_of_range(ty.name()))?;
            match ty.null() {
                Datum::TimestampMicrosecond(_, zone) => Datum::TimestampMicrosecond(Some(micros), zone),
                _ => return Err(SqlError::internal("a timestamp type without timestamps")),
            }
        }
        SqlType::Interval => {
            let bytes: [u8; 16] = fixed(ty, bytes)?;
            let [micros, days, months] = [&bytes[..8], &bytes[8..12], &bytes[12..]];
            let number = |bytes: &[u8]| bytes.try_into().map(i32::from_be_bytes).map_err(|_| malformed(ty));
            let micros = micros.try_into().map(i64::from_be_bytes).map_err(|_| malformed(ty))?;
            Interval { months: number(months)?, days: number(days)?, micros }.stored()?
        }
        SqlType::Uuid => {
            let hex = format!("{:032x}", u128::from_be_bytes(fixed(ty, bytes)?));
            return parse_text(ty, &hex);
        }
        SqlType::Array(element) => return read_array(ty, *element, bytes),
        SqlType::Int2Vector => return read_array(ty, Element::INT2, bytes),
    })
}

fn fixed<const N: usize>(ty: &SqlType, bytes: &[u8]) -> SqlResult<[u8; N]> {
    bytes.try_into().map_err(|_| malformed(ty))
}

fn malformed(ty: &SqlType) -> SqlError {
    SqlError::new(SqlState::InvalidBinaryRepresentation, format!("incorrect binary data format for type {}", ty.name()))
}

/// Text as SQL holds it: UTF-8 without NUL.
pub fn utf8(bytes: &[u8]) -> SqlResult<&str> {
    let invalid = || SqlError::new(SqlState::CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\"");
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_time_lies_within_a_day() {
        let read = |micros: i64| read_parameter(&SqlType::Time, Some(&micros.to_be_bytes()), Format::Binary);
        assert_eq!(read(MICROS_PER_DAY - 1), Ok(Datum::Time64Microsecond(Some(MICROS_PER_DAY - 1))));
        for micros in [i64::MIN, -1, MICROS_PER_DAY + 1, i64::MAX] {
            assert_eq!(read(micros).map_err(|error| error.state().code()), Err("22008"), "{micros}");
        }
    }
}
