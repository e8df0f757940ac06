//! A row's value: its columns that are not in its key.
//!
//! ```text
//!   format (1 byte) { column id · length · bytes }*      ids ascending; ids and lengths as LEB128
//! ```
//!
//! A column that is not there is NULL, and one that the table does not know is passed over, so a column can be added or
//! dropped without touching the rows there are. Integers, numerics, dates and times are as few bytes of two's complement,
//! big-endian, as hold them; floats their bits; text, bytea and uuid their bytes. Decoding is total.

use crate::catalog::Column;
use crate::error::SqlResult;
use crate::table::key_codec::{Malformed, from_integer, mistyped, take, to_integer, uuid_bytes, uuid_text};
use crate::types::{Datum, SqlType};

/// The first byte of every value that this version writes.
pub(super) const FORMAT: u8 = 1;

/// The value that holds `columns`, in ascending order of their ids.
pub(super) fn encode<'a>(columns: impl Iterator<Item = (&'a Column, &'a Datum)>) -> SqlResult<Vec<u8>> {
    let mut out = vec![FORMAT];
    for (column, value) in columns.filter(|(_, value)| !value.is_null()) {
        let payload = payload(&column.ty, value)?;
        push_varint(&mut out, u64::from(column.id));
        push_varint(&mut out, payload.len() as u64);
        out.extend(payload);
    }
    Ok(out)
}

/// Reads a value back: calls `found` with the position of each column of `columns` that it holds.
pub(super) fn decode(
    mut input: &[u8],
    columns: &[Column],
    mut found: impl FnMut(usize, Datum) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    check_format(&mut input)?;
    let mut above = None;
    while !input.is_empty() {
        let id = take_varint(&mut input)?;
        if above.is_some_and(|above| id <= above) {
            return Err(Malformed("column ids do not ascend"));
        }
        above = Some(id);
        let length = usize::try_from(take_varint(&mut input)?).map_err(|_| Malformed("a length is too large"))?;
        let payload = take(&mut input, length)?;
        if let Some(position) = columns.iter().position(|column| u64::from(column.id) == id) {
            found(position, value(&columns[position].ty, payload)?)?;
        }
    }
    Ok(())
}

/// Takes the format byte off the front of a value.
pub(super) fn check_format(input: &mut &[u8]) -> Result<(), Malformed> {
    match take(input, 1)?[0] {
        FORMAT => Ok(()),
        _ => Err(Malformed("it was written in a format that this version does not know")),
    }
}

fn payload(ty: &SqlType, value: &Datum) -> SqlResult<Vec<u8>> {
    Ok(match (ty, value) {
        (SqlType::Bool, Datum::Boolean(Some(value))) => vec![u8::from(*value)],
        (SqlType::Float4, Datum::Float32(Some(value))) => value.to_be_bytes().to_vec(),
        (SqlType::Float8, Datum::Float64(Some(value))) => value.to_be_bytes().to_vec(),
        (SqlType::Uuid, Datum::Utf8(Some(text))) => uuid_bytes(text).ok_or_else(|| mistyped(ty, value))?.to_vec(),
        (SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_), Datum::Utf8(Some(text))) => text.as_bytes().to_vec(),
        (SqlType::Bytea, Datum::Binary(Some(bytes))) => bytes.clone(),
        _ => {
            let bytes = to_integer(ty, value).ok_or_else(|| mistyped(ty, value))?.to_be_bytes();
            bytes[redundant_bytes(&bytes)..].to_vec()
        }
    })
}

/// How many leading bytes only repeat the sign of the byte after them.
fn redundant_bytes(bytes: &[u8]) -> usize {
    bytes.windows(2).take_while(|pair| (pair[0] == 0 && pair[1] < 0x80) || (pair[0] == u8::MAX && pair[1] >= 0x80)).count()
}

fn value(ty: &SqlType, payload: &[u8]) -> Result<Datum, Malformed> {
    const WRONG_LENGTH: Malformed = Malformed("a value has the wrong length for its type");
    Ok(match ty {
        SqlType::Bool => match payload {
            [bit @ 0..=1] => Datum::Boolean(Some(*bit == 1)),
            _ => return Err(Malformed("a boolean is neither 0 nor 1")),
        },
        SqlType::Float4 => Datum::Float32(Some(f32::from_be_bytes(payload.try_into().map_err(|_| WRONG_LENGTH)?))),
        SqlType::Float8 => Datum::Float64(Some(f64::from_be_bytes(payload.try_into().map_err(|_| WRONG_LENGTH)?))),
        SqlType::Uuid => Datum::Utf8(Some(uuid_text(payload.try_into().map_err(|_| WRONG_LENGTH)?))),
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => {
            Datum::Utf8(Some(String::from_utf8(payload.to_vec()).map_err(|_| Malformed("a text is not UTF-8"))?))
        }
        SqlType::Bytea => Datum::Binary(Some(payload.to_vec())),
        _ => {
            let (Some(first), 1..=16) = (payload.first(), payload.len()) else { return Err(WRONG_LENGTH) };
            let sign = if *first >= 0x80 { -1 } else { 0 };
            from_integer(ty, payload.iter().fold(sign, |sum: i128, byte| sum << 8 | i128::from(*byte)))?
        }
    })
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(input: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..).step_by(7).take(5) {
        let byte = take(input, 1)?[0];
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed("a number has more than 5 bytes"))
}
