//! A value reduced to its kind, whatever width or layout Arrow gave it.
//!
//! The query engine answers in many variants of one kind (three layouts of text, four units of timestamps). Assignment
//! and printing look at the kind alone.

use crate::types::Datum;
use crate::types::array::elements;
use crate::types::interval::Interval;
use datafusion::arrow::array::types::Decimal256Type;
use datafusion::arrow::datatypes::DecimalType;

const NANOS_PER_MICRO: i64 = 1_000;
const MICROS_PER_MILLI: i64 = 1_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MILLIS_PER_DAY: i64 = 86_400_000;

/// A value that is not NULL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plain {
    /// A truth value.
    Bool(bool),
    /// An integer of any width.
    Integer(i128),
    /// A single-precision number.
    Single(f32),
    /// A double-precision number.
    Double(f64),
    /// An unscaled integer and its scale.
    Decimal(i128, i8),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i64),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970-01-01, in no zone.
    Timestamp(i64),
    /// Microseconds since 1970-01-01 UTC.
    TimestampTz(i64),
    /// Months, days and microseconds.
    Interval(Interval),
    /// Elements of an array.
    Array(Vec<Datum>),
}

/// What a value turned out to be.
pub(super) enum Reduced {
    /// NULL of any type.
    Null,
    /// A value.
    Value(Plain),
    /// A value of a kind that no SQL type has, or one out of the range of its kind.
    Foreign,
}

impl Plain {
    /// The kind's name in messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Plain::Bool(_) => "boolean",
            Plain::Integer(_) => "bigint",
            Plain::Single(_) => "real",
            Plain::Double(_) => "double precision",
            Plain::Decimal(..) => "numeric",
            Plain::Text(_) => "text",
            Plain::Bytes(_) => "bytea",
            Plain::Date(_) => "date",
            Plain::Time(_) => "time without time zone",
            Plain::Timestamp(_) => "timestamp without time zone",
            Plain::TimestampTz(_) => "timestamp with time zone",
            Plain::Interval(_) => "interval",
            Plain::Array(_) => "array",
        }
    }
}

/// Reduces a value to its kind.
pub(super) fn reduce(value: Datum) -> Reduced {
    if value.is_null() {
        return Reduced::Null;
    }
    match plain(value) {
        Some(plain) => Reduced::Value(plain),
        None => Reduced::Foreign,
    }
}

fn plain(value: Datum) -> Option<Plain> {
    Some(match value {
        Datum::Boolean(value) => Plain::Bool(value?),
        Datum::Int8(value) => Plain::Integer(value?.into()),
        Datum::Int16(value) => Plain::Integer(value?.into()),
        Datum::Int32(value) => Plain::Integer(value?.into()),
        Datum::Int64(value) => Plain::Integer(value?.into()),
        Datum::UInt8(value) => Plain::Integer(value?.into()),
        Datum::UInt16(value) => Plain::Integer(value?.into()),
        Datum::UInt32(value) => Plain::Integer(value?.into()),
        Datum::UInt64(value) => Plain::Integer(value?.into()),
        Datum::Float16(value) => Plain::Single(value?.into()),
        Datum::Float32(value) => Plain::Single(value?),
        Datum::Float64(value) => Plain::Double(value?),
        Datum::Decimal32(value, _, scale) => Plain::Decimal(value?.into(), scale),
        Datum::Decimal64(value, _, scale) => Plain::Decimal(value?.into(), scale),
        Datum::Decimal128(value, _, scale) => Plain::Decimal(value?, scale),
        Datum::Decimal256(value, precision, scale) => narrow_decimal(&Decimal256Type::format_decimal(value?, precision, scale))?,
        Datum::Utf8(value) | Datum::LargeUtf8(value) | Datum::Utf8View(value) => Plain::Text(value?),
        Datum::Binary(value) | Datum::LargeBinary(value) | Datum::BinaryView(value) | Datum::FixedSizeBinary(_, value) => {
            Plain::Bytes(value?)
        }
        Datum::Date32(value) => Plain::Date(value?.into()),
        Datum::Date64(value) => Plain::Date(value?.div_euclid(MILLIS_PER_DAY)),
        Datum::Time32Second(value) => Plain::Time(i64::from(value?) * MICROS_PER_SECOND),
        Datum::Time32Millisecond(value) => Plain::Time(i64::from(value?) * MICROS_PER_MILLI),
        Datum::Time64Microsecond(value) => Plain::Time(value?),
        Datum::Time64Nanosecond(value) => Plain::Time(value?.div_euclid(NANOS_PER_MICRO)),
        Datum::TimestampSecond(value, zone) => timestamp(value?.checked_mul(MICROS_PER_SECOND)?, zone.is_some()),
        Datum::TimestampMillisecond(value, zone) => timestamp(value?.checked_mul(MICROS_PER_MILLI)?, zone.is_some()),
        Datum::TimestampMicrosecond(value, zone) => timestamp(value?, zone.is_some()),
        Datum::TimestampNanosecond(value, zone) => timestamp(value?.div_euclid(NANOS_PER_MICRO), zone.is_some()),
        Datum::IntervalMonthDayNano(value) => Plain::Interval(Interval::of_arrow(value?)),
        Datum::IntervalYearMonth(value) => Plain::Interval(Interval { months: value?, ..Interval::default() }),
        Datum::IntervalDayTime(value) => {
            let value = value?;
            Plain::Interval(Interval { days: value.days, micros: i64::from(value.milliseconds) * MICROS_PER_MILLI, ..Interval::default() })
        }
        Datum::Dictionary(_, value) => plain(*value)?,
        Datum::List(_) | Datum::LargeList(_) | Datum::FixedSizeList(_) => Plain::Array(elements(&value)?),
        _ => return None,
    })
}

fn timestamp(micros: i64, zoned: bool) -> Plain {
    if zoned { Plain::TimestampTz(micros) } else { Plain::Timestamp(micros) }
}

/// A wider decimal as one of 128 bits, if its digits allow.
fn narrow_decimal(text: &str) -> Option<Plain> {
    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let unscaled = text.replace('.', "").parse().ok()?;
    Some(Plain::Decimal(unscaled, i8::try_from(fraction).ok()?))
}
