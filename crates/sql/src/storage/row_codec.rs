//! A row's value: its columns that are not in its key, as [`fields`] by column id.
//!
//! A column that is not there is NULL, and one that the table does not know is passed over, so a column can be added or
//! dropped without touching the rows there are. Integers, numerics, dates and times are as few bytes of two's complement,
//! big-endian, as hold them; floats their bits; text, bytea and uuid their bytes. Decoding is total.

use crate::error::SqlResult;
use crate::schema::Column;
use crate::storage::key_codec::{Malformed, from_integer, mistyped, to_integer, uuid_bytes, uuid_text};
use crate::types::{Datum, SqlType};
pub(super) use rhumb_core::fields::FORMAT;
use rhumb_core::fields::{self, Fields};

/// The value that holds `columns`, in ascending order of their ids.
pub(super) fn encode<'a>(columns: impl Iterator<Item = (&'a Column, &'a Datum)>) -> SqlResult<Vec<u8>> {
    let mut out = vec![FORMAT];
    for (column, value) in columns.filter(|(_, value)| !value.is_null()) {
        fields::push(&mut out, column.id, &payload(&column.ty, value)?);
    }
    Ok(out)
}

/// Reads a value back: calls `found` with the position of each column of `columns` that it holds.
pub(super) fn decode(
    input: &[u8],
    columns: &[Column],
    mut found: impl FnMut(usize, Datum) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    for field in Fields::of(input)? {
        let (id, payload) = field?;
        if let Some(position) = columns.iter().position(|column| column.id == id) {
            found(position, value(&columns[position].ty, payload)?)?;
        }
    }
    Ok(())
}

/// Takes the format byte off the front of a value.
pub(super) fn check_format(input: &mut &[u8]) -> Result<(), Malformed> {
    Ok(fields::check_format(input)?)
}

/// What a column holds of a value that is not NULL.
pub(super) fn payload(ty: &SqlType, value: &Datum) -> SqlResult<Vec<u8>> {
    Ok(match (ty, value) {
        (SqlType::Bool, Datum::Boolean(Some(value))) => vec![u8::from(*value)],
        (SqlType::Float4, Datum::Float32(Some(value))) => value.to_be_bytes().to_vec(),
        (SqlType::Float8, Datum::Float64(Some(value))) => value.to_be_bytes().to_vec(),
        (SqlType::Uuid, Datum::Utf8(Some(text))) => uuid_bytes(text).ok_or_else(|| mistyped(ty, value))?.to_vec(),
        (SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_), Datum::Utf8(Some(text))) => text.as_bytes().to_vec(),
        (SqlType::Bytea, Datum::Binary(Some(bytes))) => bytes.clone(),
        _ => fields::integer_bytes(to_integer(ty, value).ok_or_else(|| mistyped(ty, value))?),
    })
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
        _ => from_integer(ty, fields::integer_in(payload).ok_or(WRONG_LENGTH)?)?,
    })
}
