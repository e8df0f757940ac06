//! A row's value: its columns that are not in its key, as [`fields`] by column id.
//!
//! A column that is not there is NULL, and one that the table does not know is passed over, so a column can be added or
//! dropped without touching the rows there are. One that was added with a value for these is always there in rows written since: as
//! a byte that tells whether it is NULL, and what a column holds otherwise. Integers, numerics, dates and times are as few bytes of two's complement,
//! big-endian, as hold them; floats their bits; text, bytea and uuid their bytes; an array a list of what its elements are. Decoding is total.

use crate::error::SqlResult;
use crate::schema::Column;
use crate::storage::key_codec::{Malformed, from_integer, mistyped, to_integer, uuid_bytes, uuid_text};
use crate::types::{Datum, SqlType, array, elements};
pub(super) use rhumb_core::fields::FORMAT;
use rhumb_core::fields::{self, Fields};

/// The first byte of a column that rows may lack without its being NULL there.
const IS_NULL: u8 = 0;
const IS_THERE: u8 = 1;

/// The value that holds `columns`, in ascending order of their ids.
pub(super) fn encode<'a>(columns: impl Iterator<Item = (&'a Column, &'a Datum)>) -> SqlResult<Vec<u8>> {
    let mut out = vec![FORMAT];
    for (column, value) in columns {
        match (value.is_null(), column.missing.is_some()) {
            (true, false) => {}
            (false, false) => fields::push(&mut out, column.id, &payload(&column.ty, value)?),
            (true, true) => fields::push(&mut out, column.id, &[IS_NULL]),
            (false, true) => fields::push(&mut out, column.id, &[&[IS_THERE][..], &payload(&column.ty, value)?].concat()),
        }
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
            found(position, held(&columns[position], payload)?)?;
        }
    }
    Ok(())
}

/// What [`Column::missing`] is, where rows without the column have this value in it.
pub fn missing(ty: &SqlType, value: &Datum) -> SqlResult<Option<Vec<u8>>> {
    if value.is_null() { Ok(None) } else { payload(ty, value).map(Some) }
}

/// What a column is in a row that does not hold it.
pub(super) fn absent(column: &Column) -> Result<Datum, Malformed> {
    column.missing.as_ref().map_or_else(|| Ok(column.ty.null()), |payload| value(&column.ty, payload))
}

fn held(column: &Column, payload: &[u8]) -> Result<Datum, Malformed> {
    match (&column.missing, payload) {
        (None, payload) => value(&column.ty, payload),
        (Some(_), [IS_NULL]) => Ok(column.ty.null()),
        (Some(_), [IS_THERE, payload @ ..]) => value(&column.ty, payload),
        (Some(_), _) => Err(Malformed("a column that was added says neither what it is nor that it is NULL")),
    }
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
        (SqlType::Array(element), array) => {
            let mut list = Vec::new();
            for value in elements(array).ok_or_else(|| mistyped(ty, array))? {
                let item = if value.is_null() { None } else { Some(payload(&element.ty(), &value)?) };
                fields::push_item(&mut list, item.as_deref());
            }
            list
        }
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
        SqlType::Array(element) => {
            let ty = element.ty();
            let item = |item: Option<&[u8]>| item.map_or_else(|| Ok(ty.null()), |payload| value(&ty, payload));
            array(*element, &fields::items(payload)?.into_iter().map(item).collect::<Result<Vec<Datum>, Malformed>>()?)
        }
        _ => from_integer(ty, fields::integer_in(payload).ok_or(WRONG_LENGTH)?)?,
    })
}
