//! Functions of bytes: hashes, and texts as bytes.

use crate::engine::row_function::RowFunction;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, SqlType, coerce};
use datafusion::arrow::datatypes::{DataType, Field};
use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use std::fmt::Write;

/// All of them.
pub(super) fn each() -> Vec<RowFunction> {
    vec![
        of_text_or_bytes(),
        hash("sha224", |bytes| Sha224::digest(bytes).to_vec()),
        hash("sha256", |bytes| Sha256::digest(bytes).to_vec()),
        hash("sha384", |bytes| Sha384::digest(bytes).to_vec()),
        hash("sha512", |bytes| Sha512::digest(bytes).to_vec()),
        convert_from(),
        convert_to(),
    ]
}

/// `md5(text or bytes)`: 32 hexadecimal digits.
fn of_text_or_bytes() -> RowFunction {
    RowFunction::new(
        "md5",
        1..=1,
        |arguments| match SqlType::of_field(&arguments.arg_fields[0]) {
            Some(ty) if !ty.is_text() && ty != SqlType::Bytea => {
                Err(SqlError::new(SqlState::UndefinedFunction, format!("function md5({}) does not exist", ty.name())))
            }
            _ => Ok(Field::new("md5", DataType::Utf8, true)),
        },
        |_, values| {
            let bytes = match values.first() {
                Some(Datum::Binary(bytes)) => bytes.clone(),
                Some(value) => value.try_as_str().flatten().map(|text| text.as_bytes().to_vec()),
                None => return Err(SqlError::internal("a hash is one of a value")),
            };
            let hexadecimal = |bytes: Vec<u8>| {
                Md5::digest(bytes).iter().fold(String::new(), |mut text, byte| {
                    let written = write!(text, "{byte:02x}");
                    debug_assert!(written.is_ok(), "a text has room");
                    text
                })
            };
            Ok(Datum::Utf8(bytes.map(hexadecimal)))
        },
    )
}

fn hash(name: &'static str, body: fn(&[u8]) -> Vec<u8>) -> RowFunction {
    RowFunction::new(
        name,
        1..=1,
        move |_| Ok(Field::new(name, DataType::Binary, true)),
        move |_, values| Ok(Datum::Binary(values.first().map(bytes).transpose()?.flatten().as_deref().map(body))),
    )
}

/// Bytes; those that a constant spells. Errors: 42804, 22P02.
fn bytes(value: &Datum) -> SqlResult<Option<Vec<u8>>> {
    match coerce(&SqlType::Bytea, value.clone())? {
        Datum::Binary(bytes) => Ok(bytes),
        _ => Err(SqlError::internal("bytes are bytes")),
    }
}

/// `convert_from(bytes, 'UTF8')`. Errors: 22021 for bytes that are no text, 0A000 for any other encoding.
fn convert_from() -> RowFunction {
    RowFunction::new(
        "convert_from",
        2..=2,
        |_| Ok(SqlType::Text.field("convert_from", true)),
        |_, values| {
            let [value, encoding] = values else { return Err(SqlError::internal("bytes have an encoding")) };
            let (Some(bytes), true) = (bytes(value)?, is_utf8(encoding)?) else { return Ok(Datum::Utf8(None)) };
            let no_text = || SqlError::new(SqlState::CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\"");
            let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(no_text)?;
            Ok(Datum::Utf8(Some(text)))
        },
    )
}

/// `convert_to(text, 'UTF8')`. Error 0A000 for any other encoding.
fn convert_to() -> RowFunction {
    RowFunction::new(
        "convert_to",
        2..=2,
        |arguments| match SqlType::of_field(&arguments.arg_fields[0]) {
            Some(ty) if !ty.is_text() => {
                Err(SqlError::new(SqlState::UndefinedFunction, format!("function convert_to({}, text) does not exist", ty.name())))
            }
            _ => Ok(Field::new("convert_to", DataType::Binary, true)),
        },
        |_, values| {
            let [value, encoding] = values else { return Err(SqlError::internal("a text has an encoding")) };
            let (Some(text), true) = (value.try_as_str().flatten(), is_utf8(encoding)?) else { return Ok(Datum::Binary(None)) };
            Ok(Datum::Binary(Some(text.as_bytes().to_vec())))
        },
    )
}

/// False of NULL.
fn is_utf8(encoding: &Datum) -> SqlResult<bool> {
    match encoding.try_as_str().flatten() {
        Some(name) if ["utf8", "utf-8", "unicode"].contains(&name.to_lowercase().as_str()) => Ok(true),
        Some(name) => Err(SqlError::unsupported(format!("encoding \"{name}\" is not supported")).with_hint("UTF8 is.")),
        None => Ok(false),
    }
}
