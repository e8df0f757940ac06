//! Text into values.

use crate::error::SqlResult;
use crate::types::{Datum, SqlType};

/// The value that `text` spells.
pub fn parse_text(ty: &SqlType, text: &str) -> SqlResult<Datum> {
    let _ = (ty, text);
    todo!()
}
