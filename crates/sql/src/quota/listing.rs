//! The rows of `rhumb.quotas` and of SHOW QUOTAS: all quotas, with the tokens of this site.

use crate::storage::Row;
use crate::types::{Datum, SqlType};
use rhumb_quota::info::Info;

/// Their columns. None needs quotes.
pub const COLUMNS: [(&str, SqlType); 10] = [
    ("name", SqlType::Text),
    ("token_limit", SqlType::Int8),
    ("parent", SqlType::Text),
    ("protocol", SqlType::Text),
    ("offer", SqlType::Text),
    ("reallocation", SqlType::Text),
    ("tokens_left", SqlType::Int8),
    ("held", SqlType::Int8),
    ("offered", SqlType::Int8),
    ("owed", SqlType::Int8),
];

/// The row of a quota.
pub fn row(info: &Info) -> Row {
    let text = |value: String| Datum::Utf8(Some(value));
    // No number of tokens is near the end of the type.
    let number = |tokens: u64| Datum::Int64(i64::try_from(tokens).ok());
    vec![
        text(info.name.to_string()),
        number(info.spec.limit),
        Datum::Utf8(info.spec.parent.as_ref().map(ToString::to_string)),
        text(info.spec.protocol.to_string()),
        text(info.spec.offer.to_string()),
        text(info.spec.reallocation.to_string()),
        number(info.left()),
        number(info.held()),
        number(info.offered()),
        number(info.owed()),
    ]
}
