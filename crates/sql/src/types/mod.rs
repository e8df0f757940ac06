//! The types of SQL: their names, their values, and the rules for moving one into the other.
//!
//! A value is a [`Datum`], DataFusion's own `ScalarValue`, so that the query engine needs no conversion. Every
//! [`SqlType`] uses exactly one variant of it:
//!
//! | SQL | `Datum` | notes |
//! |---|---|---|
//! | boolean | `Boolean` | |
//! | int2, int4, int8 | `Int16`, `Int32`, `Int64` | |
//! | float4, float8 | `Float32`, `Float64` | |
//! | numeric(p,s) | `Decimal128(p, s)` | exact, up to 38 digits |
//! | numeric | `Decimal128(38, 10)` | a value with more digits is refused, never rounded |
//! | text, varchar(n) | `Utf8` | |
//! | char(n) | `Utf8` | held without trailing blanks, padded when printed |
//! | bytea | `Binary` | |
//! | date | `Date32` | days since 1970-01-01 |
//! | time | `Time64Microsecond` | |
//! | timestamp | `TimestampMicrosecond(None)` | |
//! | timestamptz | `TimestampMicrosecond("+00:00")` | always UTC |
//! | interval | `IntervalMonthDayNano` | whole microseconds; no key |
//! | uuid | `Utf8` | canonical text: lower-case hexadecimal with hyphens |
//! | array of any of them | `List` | one dimension, numbered from 1 |
//!
//! `uuid` is text to the query engine, which has no such type: equality and order are those of the 16 bytes. What type
//! a column of a result has is written in its Arrow field's metadata (see [`SqlType::field`]).

mod array;
mod calendar;
mod coerce;
mod decimal;
mod implicit;
mod interval;
mod parse;
mod plain;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod samples;
mod sql_type;
mod stored;
mod text;
pub(crate) mod wire;

pub use array::{ELEMENTS_MAX, array, elements, length_of, several_dimensions, shown_type, too_many_elements};
pub(crate) use calendar::MICROS_PER_DAY;
pub use coerce::{cast, coerce};
pub use decimal::written_decimal;
pub use implicit::{common, converts};
pub use interval::{Interval, out_of_range as interval_out_of_range};
pub use parse::parse_text;
pub(crate) use sql_type::UTC;
pub use sql_type::{Element, NUMERIC_PRECISION_MAX, SqlType};
pub use text::to_text;

/// A value.
pub type Datum = datafusion::common::ScalarValue;
