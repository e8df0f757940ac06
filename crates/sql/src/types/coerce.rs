//! Values on their way into a column or a type.

use crate::error::SqlResult;
use crate::types::{Datum, SqlType};

/// Assignment: `value` as a column of type `ty` stores it, whatever type it comes in.
pub fn coerce(ty: &SqlType, value: Datum) -> SqlResult<Datum> {
    let _ = (ty, value);
    todo!()
}

/// `CAST(value AS ty)`: as assignment, but text too long is cut rather than refused.
pub fn cast(ty: &SqlType, value: Datum) -> SqlResult<Datum> {
    let _ = (ty, value);
    todo!()
}
