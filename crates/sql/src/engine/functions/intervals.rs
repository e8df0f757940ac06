//! Functions that make intervals.

use crate::engine::row_function::RowFunction;
use crate::error::{SqlError, SqlResult};
use crate::types::{Datum, Interval, MICROS_PER_DAY, SqlType, coerce, interval_out_of_range};
use chrono::{DateTime, Datelike, Months, NaiveDateTime};

/// `make_interval()` with all of its arguments.
pub const MAKE_INTERVAL: &str = "rhumb_make_interval";

/// All of them.
pub(super) fn each() -> Vec<RowFunction> {
    vec![
        age(),
        made(),
        justified("justify_hours", true, false),
        justified("justify_days", false, true),
        justified("justify_interval", true, true),
    ]
}

/// The years, months, days and hours from the second moment to the first.
fn age() -> RowFunction {
    RowFunction::new(
        "age",
        2..=2,
        |_| Ok(SqlType::Interval.field("age", true)),
        |_, values| {
            let [one, other] = values else { return Err(SqlError::internal("age() has two arguments")) };
            let (Some(one), Some(other)) = (shown(one)?, shown(other)?) else { return Ok(SqlType::Interval.null()) };
            let length = |later, earlier| between(later, earlier).ok_or_else(interval_out_of_range);
            if one < other { length(other, one)?.negated()?.stored() } else { length(one, other)?.stored() }
        },
    )
}

/// What clocks in UTC show then. Error 42883 for what is no moment.
fn shown(value: &Datum) -> SqlResult<Option<NaiveDateTime>> {
    let ty = match SqlType::of_arrow(&value.data_type()) {
        Some(SqlType::TimestampTz) => SqlType::TimestampTz,
        _ => SqlType::Timestamp,
    };
    match coerce(&ty, value.clone())? {
        Datum::TimestampMicrosecond(micros, _) => {
            let at = |micros| DateTime::from_timestamp_micros(micros).map(|at| at.naive_utc()).ok_or_else(interval_out_of_range);
            micros.map(at).transpose()
        }
        _ => Err(SqlError::internal("a timestamp is of microseconds")),
    }
}

/// From the earlier to the later: whole months first, of which the last that is begun has as many days as the month of the earlier.
fn between(later: NaiveDateTime, earlier: NaiveDateTime) -> Option<Interval> {
    let mut months = i64::from(later.year() - earlier.year()) * 12 + i64::from(later.month()) - i64::from(earlier.month());
    let mut days = i64::from(later.day()) - i64::from(earlier.day());
    let mut micros = later.time().signed_duration_since(earlier.time()).num_microseconds()?;
    if micros < 0 {
        (days, micros) = (days - 1, micros + MICROS_PER_DAY);
    }
    if days < 0 {
        let first = earlier.date().with_day(1)?;
        let length = first.checked_add_months(Months::new(1))?.signed_duration_since(first).num_days();
        (months, days) = (months - 1, days + length);
    }
    Some(Interval { months: months.try_into().ok()?, days: days.try_into().ok()?, micros })
}

/// An interval of years, months, weeks, days, hours, minutes and seconds.
fn made() -> RowFunction {
    RowFunction::new(
        MAKE_INTERVAL,
        7..=7,
        |_| Ok(SqlType::Interval.field("make_interval", true)),
        |_, values| {
            let mut parts = [0; 6];
            let [whole @ .., seconds] = values else { return Err(SqlError::internal("an interval has seven parts")) };
            for (part, value) in parts.iter_mut().zip(whole) {
                match coerce(&SqlType::Int4, value.clone())? {
                    Datum::Int32(Some(value)) => *part = i64::from(value),
                    _ => return Ok(SqlType::Interval.null()),
                }
            }
            let Datum::Float64(Some(seconds)) = coerce(&SqlType::Float8, seconds.clone())? else { return Ok(SqlType::Interval.null()) };
            let [years, months, weeks, days, hours, minutes] = parts;
            let micros = (seconds * 1e6).round_ties_even();
            if !micros.is_finite() || micros.abs() > i64::MAX as f64 / 2.0 {
                return Err(interval_out_of_range());
            }
            let part = |number: i64| i32::try_from(number).map_err(|_| interval_out_of_range());
            let micros = ((hours * 60 + minutes) * 60_000_000).checked_add(micros as i64).ok_or_else(interval_out_of_range)?;
            Interval { months: part(years * 12 + months)?, days: part(weeks * 7 + days)?, micros }.stored()
        },
    )
}

/// An interval with hours as days, days as months, or both.
fn justified(name: &'static str, hours: bool, days: bool) -> RowFunction {
    RowFunction::new(
        name,
        1..=1,
        move |_| Ok(SqlType::Interval.field(name, true)),
        move |_, values| {
            let value = values.first().ok_or_else(|| SqlError::internal("it has one argument"))?;
            match Interval::of(&coerce(&SqlType::Interval, value.clone())?) {
                Some(value) => value.justified(hours, days)?.stored(),
                None => Ok(SqlType::Interval.null()),
            }
        },
    )
}
