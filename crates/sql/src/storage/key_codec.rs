//! Values as bytes whose order is the order of the values.
//!
//! Each value begins with a marker, [`PRESENT`] or [`NULL`], so that NULLs come last, as in PostgreSQL. After it:
//!
//! | type | bytes |
//! |---|---|
//! | bool | one: 0 or 1 |
//! | integers, numeric, dates, times | a length byte, then that many bytes of the magnitude, big-endian; of a negative number both are complemented |
//! | floats | the bits big-endian, sign flipped; of a negative number all bits complemented |
//! | text, bytea | the bytes with 0x00 as 0x00 0xFF, ended by 0x00 0x00 |
//! | uuid | its 16 bytes |
//!
//! No encoding is a prefix of another of the same type, so the encodings of several columns, one after the other, are
//! ordered column by column. Text is ordered by its bytes. Floats: −0 is stored as 0, and all NaNs are one, above infinity.
//! Decoding is total, and refuses any bytes that encoding would not write.

use crate::error::{SqlError, SqlResult};
use crate::types::{Datum, Interval, SqlType};
use std::sync::Arc;
use thiserror::Error;

/// Begins a value.
pub(super) const PRESENT: u8 = 1;
/// Stands for NULL; above every value.
pub(super) const NULL: u8 = 2;
/// The length byte of zero. Of a magnitude of `n` bytes it is `n` more, of a negative number `n` less.
const ZERO_LENGTH: u8 = 0x80;
const MAGNITUDE_BYTES_MAX: usize = 16;
const UUID_BYTES: usize = 16;

/// Bytes that no encoder wrote.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

impl From<rhumb_core::fields::Malformed> for Malformed {
    fn from(rhumb_core::fields::Malformed(why): rhumb_core::fields::Malformed) -> Malformed {
        Malformed(why)
    }
}

/// Appends the encoding of `value`, which has the variant that `ty` uses.
pub(super) fn encode(out: &mut Vec<u8>, ty: &SqlType, value: &Datum) -> SqlResult<()> {
    if value.is_null() {
        out.push(NULL);
        return Ok(());
    }
    out.push(PRESENT);
    match (ty, value) {
        (SqlType::Bool, Datum::Boolean(Some(value))) => out.push(u8::from(*value)),
        (SqlType::Float4, Datum::Float32(Some(value))) => out.extend(float4_bits(*value).to_be_bytes()),
        (SqlType::Float8, Datum::Float64(Some(value))) => out.extend(float8_bits(*value).to_be_bytes()),
        (SqlType::Uuid, Datum::Utf8(Some(text))) => out.extend(uuid_bytes(text).ok_or_else(|| mistyped(ty, value))?),
        (SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_), Datum::Utf8(Some(text))) => encode_bytes(out, text.as_bytes()),
        (SqlType::Bytea, Datum::Binary(Some(bytes))) => encode_bytes(out, bytes),
        _ => encode_integer(out, to_integer(ty, value).ok_or_else(|| mistyped(ty, value))?),
    }
    Ok(())
}

/// Takes one value of type `ty` off the front of `input`.
pub(super) fn decode(input: &mut &[u8], ty: &SqlType) -> Result<Datum, Malformed> {
    match take(input, 1)?[0] {
        NULL => return Ok(ty.null()),
        PRESENT => {}
        _ => return Err(Malformed("a value begins with no marker")),
    }
    Ok(match ty {
        SqlType::Bool => match take(input, 1)?[0] {
            bit @ 0..=1 => Datum::Boolean(Some(bit == 1)),
            _ => return Err(Malformed("a boolean is neither 0 nor 1")),
        },
        SqlType::Float4 => {
            let bits = u32::from_be_bytes(take_array(input)?);
            let value = f32::from_bits(if bits >> 31 == 1 { bits ^ (1 << 31) } else { !bits });
            canonical(float4_bits(value) == bits, Datum::Float32(Some(value)))?
        }
        SqlType::Float8 => {
            let bits = u64::from_be_bytes(take_array(input)?);
            let value = f64::from_bits(if bits >> 63 == 1 { bits ^ (1 << 63) } else { !bits });
            canonical(float8_bits(value) == bits, Datum::Float64(Some(value)))?
        }
        SqlType::Uuid => Datum::Utf8(Some(uuid_text(take_array(input)?))),
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => {
            let text = String::from_utf8(decode_bytes(input)?).map_err(|_| Malformed("a text is not UTF-8"))?;
            Datum::Utf8(Some(text))
        }
        SqlType::Bytea => Datum::Binary(Some(decode_bytes(input)?)),
        _ => from_integer(ty, decode_integer(input)?)?,
    })
}

fn canonical(is: bool, value: Datum) -> Result<Datum, Malformed> {
    if is { Ok(value) } else { Err(Malformed("a float is not in its canonical form")) }
}

/// The integer that stands for a value of the types that have one.
pub(super) fn to_integer(ty: &SqlType, value: &Datum) -> Option<i128> {
    Some(match (ty, value) {
        (SqlType::Int2, Datum::Int16(value)) => (*value)?.into(),
        (SqlType::Int4, Datum::Int32(value)) => (*value)?.into(),
        (SqlType::Int8, Datum::Int64(value)) => (*value)?.into(),
        (SqlType::Numeric(_), Datum::Decimal128(value, _, scale)) if *scale == ty.decimal_shape().1 => (*value)?,
        (SqlType::Date, Datum::Date32(value)) => (*value)?.into(),
        (SqlType::Time, Datum::Time64Microsecond(value)) => (*value)?.into(),
        (SqlType::Timestamp | SqlType::TimestampTz, Datum::TimestampMicrosecond(value, _)) => (*value)?.into(),
        // No order: it is no key.
        (SqlType::Interval, Datum::IntervalMonthDayNano(value)) => {
            let Interval { months, days, micros } = Interval::of_arrow((*value)?);
            i128::from(months) << 96 | i128::from(days as u32) << 64 | i128::from(micros as u64)
        }
        _ => return None,
    })
}

/// The value that an integer stands for.
pub(super) fn from_integer(ty: &SqlType, integer: i128) -> Result<Datum, Malformed> {
    let narrow = || i64::try_from(integer).map_err(|_| Malformed("an integer is out of the range of its type"));
    let out_of_range = |_| Malformed("an integer is out of the range of its type");
    Ok(match ty {
        SqlType::Int2 => Datum::Int16(Some(integer.try_into().map_err(out_of_range)?)),
        SqlType::Int4 => Datum::Int32(Some(integer.try_into().map_err(out_of_range)?)),
        SqlType::Int8 => Datum::Int64(Some(narrow()?)),
        SqlType::Numeric(_) => {
            let (precision, scale) = ty.decimal_shape();
            if integer.unsigned_abs() >= 10u128.pow(u32::from(precision)) {
                return Err(Malformed("a numeric has more digits than its type"));
            }
            Datum::Decimal128(Some(integer), precision, scale)
        }
        SqlType::Date => Datum::Date32(Some(integer.try_into().map_err(out_of_range)?)),
        SqlType::Time => Datum::Time64Microsecond(Some(narrow()?)),
        SqlType::Interval => {
            let (months, days, micros) = ((integer >> 96) as i32, (integer >> 64) as i32, integer as i64);
            Interval { months, days, micros }.stored().map_err(|_| Malformed("an interval is out of range"))?
        }
        SqlType::Timestamp => Datum::TimestampMicrosecond(Some(narrow()?), None),
        SqlType::TimestampTz => Datum::TimestampMicrosecond(Some(narrow()?), Some(Arc::from(crate::types::UTC))),
        _ => return Err(Malformed("the type has no integers")),
    })
}

/// The error for a value that its column's type does not use: a bug of the caller.
pub(super) fn mistyped(ty: &SqlType, value: &Datum) -> SqlError {
    SqlError::internal(format!("a value of Arrow type {} reached a column of type {ty}", value.data_type()))
}

fn encode_integer(out: &mut Vec<u8>, value: i128) {
    let magnitude = value.unsigned_abs().to_be_bytes();
    let significant = &magnitude[(value.unsigned_abs().leading_zeros() / 8) as usize..];
    let length = significant.len() as u8;
    if value >= 0 {
        out.push(ZERO_LENGTH + length);
        out.extend(significant);
    } else {
        out.push(ZERO_LENGTH - length);
        out.extend(significant.iter().map(|byte| !byte));
    }
}

fn decode_integer(input: &mut &[u8]) -> Result<i128, Malformed> {
    let first = take(input, 1)?[0];
    let negative = first < ZERO_LENGTH;
    let length = usize::from(first.abs_diff(ZERO_LENGTH));
    if length > MAGNITUDE_BYTES_MAX {
        return Err(Malformed("an integer has more than 16 bytes"));
    }
    let mask = if negative { u8::MAX } else { 0 };
    let magnitude = take(input, length)?.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(byte ^ mask));
    if length > 0 && magnitude >> (8 * (length - 1)) == 0 {
        return Err(Malformed("an integer begins with a zero byte"));
    }
    let value = if negative { 0i128.checked_sub_unsigned(magnitude) } else { 0i128.checked_add_unsigned(magnitude) };
    value.ok_or(Malformed("an integer has more than 127 bits"))
}

fn float4_bits(value: f32) -> u32 {
    let value = if value.is_nan() { f32::NAN } else { value + 0.0 };
    let bits = value.to_bits() & if value.is_nan() { u32::MAX >> 1 } else { u32::MAX };
    if bits >> 31 == 0 { bits | (1 << 31) } else { !bits }
}

fn float8_bits(value: f64) -> u64 {
    // Adding zero turns −0 into 0 and leaves all else alone.
    let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
    let bits = value.to_bits() & if value.is_nan() { u64::MAX >> 1 } else { u64::MAX };
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

fn encode_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(u8::MAX);
        }
    }
    out.extend([0, 0]);
}

fn decode_bytes(input: &mut &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::new();
    loop {
        match take(input, 1)?[0] {
            0 => match take(input, 1)?[0] {
                0 => return Ok(bytes),
                u8::MAX => bytes.push(0),
                _ => return Err(Malformed("a zero byte is neither escaped nor an end")),
            },
            byte => bytes.push(byte),
        }
    }
}

/// The 16 bytes of a UUID in canonical text.
pub(super) fn uuid_bytes(text: &str) -> Option<[u8; UUID_BYTES]> {
    let digits: Vec<u8> =
        text.bytes().filter(|byte| *byte != b'-').map(|byte| (byte as char).to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if digits.len() == 2 * UUID_BYTES { bytes.try_into().ok() } else { None }
}

/// The canonical text of a UUID.
pub(super) fn uuid_text(bytes: [u8; UUID_BYTES]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// Takes `count` bytes off the front of `input`.
pub(super) fn take<'a>(input: &mut &'a [u8], count: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = input.split_at_checked(count).ok_or(Malformed("the bytes end too early"))?;
    *input = rest;
    Ok(taken)
}

/// Takes an array off the front of `input`.
pub(super) fn take_array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], Malformed> {
    Ok(take(input, N)?.try_into().expect("as many bytes as asked for"))
}
