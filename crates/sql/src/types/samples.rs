//! One type of each kind, for tests and fuzz targets.

use super::SqlType;

/// One type of each kind, with and without its modifier.
pub const TYPES: [SqlType; 18] = [
    SqlType::Bool,
    SqlType::Int2,
    SqlType::Int4,
    SqlType::Int8,
    SqlType::Float4,
    SqlType::Float8,
    SqlType::Numeric(None),
    SqlType::Numeric(Some((38, 7))),
    SqlType::Text,
    SqlType::Varchar(None),
    SqlType::Varchar(Some(5)),
    SqlType::Char(5),
    SqlType::Bytea,
    SqlType::Date,
    SqlType::Time,
    SqlType::Timestamp,
    SqlType::TimestampTz,
    SqlType::Uuid,
];

/// Types of which no key is made.
#[cfg(test)]
pub const UNORDERED: [SqlType; 5] = [
    SqlType::Interval,
    SqlType::Array(super::Element::sample(21, -1)),
    SqlType::Array(super::Element::sample(25, -1)),
    SqlType::Array(super::Element::sample(701, -1)),
    SqlType::Array(super::Element::sample(1700, (38 << 16 | 7) + 4)),
];
