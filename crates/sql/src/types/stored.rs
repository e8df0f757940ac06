//! Values as a type stores them, whatever they came from: in its range, not longer than declared.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::decimal::Written;
use crate::types::sql_type::UTC;
use crate::types::{Datum, SqlType};
use std::sync::Arc;

/// An integer as `ty`, one of the three types of them, stores it.
pub(super) fn integer(ty: &SqlType, value: i128) -> Option<Datum> {
    Some(match ty {
        SqlType::Int2 => Datum::Int16(Some(value.try_into().ok()?)),
        SqlType::Int4 => Datum::Int32(Some(value.try_into().ok()?)),
        SqlType::Int8 => Datum::Int64(Some(value.try_into().ok()?)),
        _ => return None,
    })
}

/// A number as the NUMERIC `ty` stores it.
pub(super) fn numeric(ty: &SqlType, written: &Written) -> SqlResult<Datum> {
    let (precision, scale) = ty.decimal_shape();
    Ok(Datum::Decimal128(Some(written.assign(ty)?), precision, scale))
}

/// A number of days as a `date`.
pub(super) fn date(days: i64) -> SqlResult<Datum> {
    i32::try_from(days).map(|days| Datum::Date32(Some(days))).map_err(|_| datetime_out_of_range(&SqlType::Date))
}

/// A timestamp as `ty`, one of the two types of them, stores it.
pub(super) fn timestamp(ty: &SqlType, at: i64) -> Datum {
    Datum::TimestampMicrosecond(Some(at), (*ty == SqlType::TimestampTz).then(|| Arc::from(UTC)))
}

/// Text as a column of the character type `ty` stores it: not longer than declared, blanks at the end aside.
pub(super) fn fit_text(ty: &SqlType, mut text: String) -> SqlResult<String> {
    if text.contains('\0') {
        let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
        return Err(SqlError::new(SqlState::CharacterNotInRepertoire, message));
    }
    if let SqlType::Varchar(Some(length)) | SqlType::Char(length) = ty
        && let Some((end, _)) = text.char_indices().nth(*length as usize)
    {
        if text[end..].contains(|c| c != ' ') {
            return Err(SqlError::value_too_long(&ty.to_string()));
        }
        text.truncate(end);
    }
    if matches!(ty, SqlType::Char(_)) {
        text.truncate(text.trim_end_matches(' ').len());
    }
    Ok(text)
}

/// 22008.
pub(super) fn datetime_out_of_range(ty: &SqlType) -> SqlError {
    let name = if *ty == SqlType::Date { "date" } else { "timestamp" };
    SqlError::new(SqlState::DatetimeFieldOverflow, format!("{name} out of range"))
}
