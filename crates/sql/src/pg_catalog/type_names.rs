//! The types that `pg_type` lists, and what PostgreSQL calls them there.

use crate::types::SqlType;

/// Every type, without length or digits.
pub const ALL_TYPES: [SqlType; 17] = [
    SqlType::Bool,
    SqlType::Int2,
    SqlType::Int4,
    SqlType::Int8,
    SqlType::Float4,
    SqlType::Float8,
    SqlType::Numeric(None),
    SqlType::Text,
    SqlType::Varchar(None),
    SqlType::Char(1),
    SqlType::Bytea,
    SqlType::Date,
    SqlType::Time,
    SqlType::Timestamp,
    SqlType::TimestampTz,
    SqlType::Interval,
    SqlType::Uuid,
];

/// The name of a type in `pg_type`.
pub fn short_name(ty: &SqlType) -> &'static str {
    match ty {
        SqlType::Bool => "bool",
        SqlType::Int2 => "int2",
        SqlType::Int4 => "int4",
        SqlType::Int8 => "int8",
        SqlType::Float4 => "float4",
        SqlType::Float8 => "float8",
        SqlType::Char(_) => "bpchar",
        SqlType::Varchar(_) => "varchar",
        SqlType::Time => "time",
        SqlType::Timestamp => "timestamp",
        SqlType::TimestampTz => "timestamptz",
        SqlType::Array(element) => match element.ty() {
            SqlType::Bool => "_bool",
            SqlType::Int2 => "_int2",
            SqlType::Int4 => "_int4",
            SqlType::Int8 => "_int8",
            SqlType::Float4 => "_float4",
            SqlType::Float8 => "_float8",
            SqlType::Numeric(_) => "_numeric",
            SqlType::Char(_) => "_bpchar",
            SqlType::Varchar(_) => "_varchar",
            SqlType::Bytea => "_bytea",
            SqlType::Date => "_date",
            SqlType::Time => "_time",
            SqlType::Timestamp => "_timestamp",
            SqlType::TimestampTz => "_timestamptz",
            SqlType::Interval => "_interval",
            SqlType::Uuid => "_uuid",
            SqlType::Text | SqlType::Array(_) | SqlType::Int2Vector => "_text",
        },
        other => other.name(),
    }
}
