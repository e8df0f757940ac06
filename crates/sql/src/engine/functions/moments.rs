//! Functions of dates and times: parts of them, and time zones.

use crate::engine::row_function::RowFunction;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, SqlType, coerce};
use chrono::offset::LocalResult;
use chrono::{DateTime, Datelike, Days, FixedOffset, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Timelike};
use chrono_tz::{TZ_VARIANTS, Tz};
use datafusion::arrow::datatypes::{DataType, Field, IntervalMonthDayNano};

/// What `EXTRACT` is to the query engine.
pub const EXTRACT: &str = "rhumb_extract";

const MICROS_PER_SECOND: i64 = 1_000_000;
/// The most digits of a part.
const DIGITS: u8 = 38;

/// All of them.
pub(super) fn each() -> Vec<RowFunction> {
    vec![extract(), date_part(), timezone()]
}

/// `EXTRACT(part FROM value)`: a number with as many decimal places as the part has.
fn extract() -> RowFunction {
    RowFunction::new(
        EXTRACT,
        2..=2,
        |arguments| {
            let Some(Some(part)) = arguments.scalar_arguments[0].map(Datum::try_as_str).unwrap_or_default() else {
                return Err(SqlError::internal("the part is a text"));
            };
            let places = Part::named(part).map_or(0, |part| part.places(arguments.arg_fields[1].data_type()));
            Ok(Field::new(EXTRACT, DataType::Decimal128(DIGITS, places), true))
        },
        |field, values| match (part_of(values)?, field.data_type()) {
            (None, DataType::Decimal128(precision, scale)) => Ok(Datum::Decimal128(None, *precision, *scale)),
            (Some(micros), DataType::Decimal128(precision, scale)) => {
                Ok(Datum::Decimal128(Some(micros / 10_i128.pow(u32::from(6 - scale.unsigned_abs()))), *precision, *scale))
            }
            _ => Err(SqlError::internal("a part is a decimal number")),
        },
    )
}

/// The same as a function, whose results are floating-point numbers.
fn date_part() -> RowFunction {
    RowFunction::new(
        "date_part",
        2..=2,
        |_| Ok(Field::new("date_part", DataType::Float64, true)),
        |_, values| Ok(Datum::Float64(part_of(values)?.map(|micros| micros as f64 / MICROS_PER_SECOND as f64))),
    )
}

/// A part of a value, in millionths; `None` of NULL. Errors: 22023 for a part that nothing has, 0A000 for one that this value has not.
fn part_of(values: &[Datum]) -> SqlResult<Option<i128>> {
    let [part, value] = values else { return Err(SqlError::internal("it has two arguments")) };
    let Some(Some(name)) = part.try_as_str() else { return Ok(None) };
    let Some(moment) = Moment::of(value)? else { return Ok(None) };
    let part = Part::named(name).ok_or_else(|| {
        let message = format!("unit \"{}\" not recognized for type {}", name.to_lowercase(), moment.ty());
        SqlError::new(SqlState::InvalidParameterValue, message)
    })?;
    let unsupported = || SqlError::unsupported(format!("unit \"{}\" not supported for type {}", name.to_lowercase(), moment.ty()));
    part.of(&moment).map(Some).ok_or_else(unsupported)
}

/// A date or time that has parts.
enum Moment {
    Date(NaiveDateTime),
    Time(NaiveTime),
    Timestamp(NaiveDateTime),
    TimestampTz(NaiveDateTime),
    Interval(IntervalMonthDayNano),
}

impl Moment {
    fn of(value: &Datum) -> SqlResult<Option<Moment>> {
        let micros = |ty: SqlType| match coerce(&ty, value.clone())? {
            Datum::TimestampMicrosecond(Some(micros), _) => at(micros).map(Some),
            Datum::TimestampMicrosecond(None, _) => Ok(None),
            _ => Err(SqlError::internal("a timestamp is of microseconds")),
        };
        if let Datum::IntervalMonthDayNano(interval) = value {
            return Ok(interval.map(Moment::Interval));
        }
        Ok(match SqlType::of_arrow(&value.data_type()) {
            Some(SqlType::Date) => micros(SqlType::Timestamp)?.map(Moment::Date),
            Some(SqlType::Timestamp) => micros(SqlType::Timestamp)?.map(Moment::Timestamp),
            Some(SqlType::TimestampTz) => micros(SqlType::TimestampTz)?.map(Moment::TimestampTz),
            Some(SqlType::Time) => match coerce(&SqlType::Time, value.clone())? {
                Datum::Time64Microsecond(Some(micros)) => {
                    let since = TimeDelta::microseconds(micros);
                    Some(Moment::Time(NaiveTime::MIN.overflowing_add_signed(since).0))
                }
                _ => None,
            },
            _ if value.is_null() => None,
            other => {
                let ty = other.map_or("unknown", |ty| ty.name());
                let message = format!("function date_part(text, {ty}) does not exist");
                return Err(SqlError::new(SqlState::UndefinedFunction, message));
            }
        })
    }

    /// The name of its type.
    fn ty(&self) -> &'static str {
        match self {
            Moment::Date(_) => SqlType::Date.name(),
            Moment::Time(_) => SqlType::Time.name(),
            Moment::Timestamp(_) => SqlType::Timestamp.name(),
            Moment::TimestampTz(_) => SqlType::TimestampTz.name(),
            Moment::Interval(_) => "interval",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Week,
    Month,
    Quarter,
    Year,
    IsoYear,
    Decade,
    Century,
    Millennium,
    Epoch,
    Zone,
}

impl Part {
    fn named(name: &str) -> Option<Part> {
        Some(match name.to_lowercase().as_str() {
            "microseconds" | "microsecond" | "us" | "usec" => Part::Microseconds,
            "milliseconds" | "millisecond" | "ms" | "msec" => Part::Milliseconds,
            "second" | "seconds" | "s" | "sec" | "secs" => Part::Second,
            "minute" | "minutes" | "m" | "min" | "mins" => Part::Minute,
            "hour" | "hours" | "h" | "hr" | "hrs" => Part::Hour,
            "day" | "days" | "d" => Part::Day,
            "dow" => Part::DayOfWeek,
            "isodow" => Part::IsoDayOfWeek,
            "doy" => Part::DayOfYear,
            "week" | "weeks" | "w" => Part::Week,
            "month" | "months" | "mon" | "mons" => Part::Month,
            "quarter" | "qtr" => Part::Quarter,
            "year" | "years" | "y" | "yr" | "yrs" => Part::Year,
            "isoyear" => Part::IsoYear,
            "decade" | "decades" => Part::Decade,
            "century" | "centuries" => Part::Century,
            "millennium" | "millennia" => Part::Millennium,
            "epoch" => Part::Epoch,
            "timezone" | "timezone_hour" | "timezone_minute" => Part::Zone,
            _ => return None,
        })
    }

    /// The decimal places that it has of values of this type.
    fn places(self, of: &DataType) -> i8 {
        match self {
            Part::Second => 6,
            Part::Milliseconds => 3,
            Part::Epoch if !matches!(of, DataType::Date32 | DataType::Date64) => 6,
            _ => 0,
        }
    }

    /// The part, in millionths; `None` if the value has none.
    fn of(self, moment: &Moment) -> Option<i128> {
        let (day, time) = match moment {
            Moment::Date(at) => (Some(at.date()), None),
            Moment::Time(time) => (None, Some(*time)),
            Moment::Interval(interval) => return self.of_interval(interval),
            Moment::Timestamp(at) | Moment::TimestampTz(at) => (Some(at.date()), Some(at.time())),
        };
        let whole = |number: i64| i128::from(number) * i128::from(MICROS_PER_SECOND);
        let micros = |time: NaiveTime| i64::from(time.second()) * MICROS_PER_SECOND + i64::from(time.nanosecond() / 1_000);
        // The year before year 1 is year -1.
        let year = |year: i32| i64::from(if year > 0 { year } else { year - 1 });
        let of_years = |year: i64, years: i64| if year > 0 { (year + years - 1) / years } else { -((years - 1 - year) / years) };
        Some(match self {
            Part::Microseconds => whole(micros(time?)),
            Part::Milliseconds => i128::from(micros(time?)) * 1_000,
            Part::Second => i128::from(micros(time?)),
            Part::Minute => whole(time?.minute().into()),
            Part::Hour => whole(time?.hour().into()),
            Part::Day => whole(day?.day().into()),
            Part::DayOfWeek => whole(day?.weekday().num_days_from_sunday().into()),
            Part::IsoDayOfWeek => whole(day?.weekday().number_from_monday().into()),
            Part::DayOfYear => whole(day?.ordinal().into()),
            Part::Week => whole(day?.iso_week().week().into()),
            Part::Month => whole(day?.month().into()),
            Part::Quarter => whole(i64::from(day?.month0() / 3 + 1)),
            Part::Year => whole(year(day?.year())),
            Part::IsoYear => whole(year(day?.iso_week().year())),
            Part::Decade => whole(i64::from(day?.year().div_euclid(10))),
            Part::Century => whole(of_years(year(day?.year()), 100)),
            Part::Millennium => whole(of_years(year(day?.year()), 1_000)),
            Part::Epoch => match moment {
                Moment::Date(at) | Moment::Timestamp(at) | Moment::TimestampTz(at) => i128::from(at.and_utc().timestamp_micros()),
                Moment::Time(time) => i128::from(time.signed_duration_since(NaiveTime::MIN).num_microseconds()?),
                Moment::Interval(_) => return None,
            },
            Part::Zone if matches!(moment, Moment::TimestampTz(_)) => 0,
            Part::Zone => return None,
        })
    }
}

impl Part {
    /// The part of an interval, in millionths; `None` if it has none. A year has 365 days and a quarter then, and a month 30.
    fn of_interval(self, interval: &IntervalMonthDayNano) -> Option<i128> {
        const DAY: i128 = 86_400 * MICROS_PER_SECOND as i128;
        let (months, days) = (i128::from(interval.months), i128::from(interval.days));
        let micros = i128::from(interval.nanoseconds / 1_000);
        let second = i128::from(MICROS_PER_SECOND);
        let whole = |number: i128| number * second;
        Some(match self {
            Part::Microseconds => whole(micros % (60 * second)),
            Part::Milliseconds => micros % (60 * second) * 1_000,
            Part::Second => micros % (60 * second),
            Part::Minute => whole(micros / (60 * second) % 60),
            Part::Hour => whole(micros / (3_600 * second)),
            Part::Day => whole(days),
            Part::Month => whole(months % 12),
            Part::Quarter => whole(months % 12 / 3 + 1),
            Part::Year => whole(months / 12),
            Part::Decade => whole(months / 120),
            Part::Century => whole(months / 1_200),
            Part::Millennium => whole(months / 12_000),
            Part::Epoch => micros + (days + months % 12 * 30) * DAY + months / 12 * (1_461 * DAY / 4),
            _ => return None,
        })
    }
}

/// `value AT TIME ZONE zone`: of a timestamp of no zone the moment that it is there, of a moment what the clocks there show.
fn timezone() -> RowFunction {
    let is_local = |ty: &DataType| matches!(ty, DataType::Timestamp(_, None));
    RowFunction::new(
        "timezone",
        2..=2,
        move |arguments| {
            let ty = if is_local(arguments.arg_fields[1].data_type()) { SqlType::TimestampTz } else { SqlType::Timestamp };
            Ok(ty.field("timezone", true))
        },
        move |_, values| {
            let [zone, value] = values else { return Err(SqlError::internal("it has two arguments")) };
            let (from, to) = match is_local(&value.data_type()) {
                true => (SqlType::Timestamp, SqlType::TimestampTz),
                false => (SqlType::TimestampTz, SqlType::Timestamp),
            };
            let (Some(Some(zone)), Datum::TimestampMicrosecond(Some(micros), _)) = (zone.try_as_str(), coerce(&from, value.clone())?)
            else {
                return Ok(to.null());
            };
            let (zone, shown) = (Zone::named(zone)?, at(micros)?);
            let shifted = match from {
                SqlType::Timestamp => shown.checked_sub_offset(zone.offset_of_local(shown)),
                _ => shown.checked_add_offset(zone.offset_at(shown)),
            };
            let micros = shifted.map(|at| at.and_utc().timestamp_micros()).ok_or_else(out_of_range)?;
            coerce(&to, Datum::TimestampMicrosecond(Some(micros), None))
        },
    )
}

/// A time zone: one of the database of the IANA, or so far from UTC.
enum Zone {
    Named(Tz),
    Fixed(FixedOffset),
}

impl Zone {
    /// Error 22023.
    fn named(name: &str) -> SqlResult<Zone> {
        let unknown = || SqlError::new(SqlState::InvalidParameterValue, format!("time zone \"{name}\" not recognized"));
        if let Some(zone) = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name)) {
            return Ok(Zone::Named(*zone));
        }
        if name.eq_ignore_ascii_case("z") {
            return Ok(Zone::Named(Tz::UTC));
        }
        // As POSIX has it, hours west of UTC count.
        let (sign, rest) = match (name.strip_prefix('+'), name.strip_prefix('-')) {
            (Some(west), _) => (-1, west),
            (_, Some(east)) => (1, east),
            _ => return Err(unknown()),
        };
        let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
        let (hours, minutes): (i32, i32) = (hours.parse().map_err(|_| unknown())?, minutes.parse().map_err(|_| unknown())?);
        let seconds = hours.checked_mul(3_600).zip(minutes.checked_mul(60)).and_then(|(hours, minutes)| hours.checked_add(minutes));
        seconds.and_then(|seconds| FixedOffset::east_opt(sign * seconds)).map(Zone::Fixed).ok_or_else(unknown)
    }

    fn offset_at(&self, utc: NaiveDateTime) -> FixedOffset {
        match self {
            Zone::Named(zone) => zone.offset_from_utc_datetime(&utc).fix(),
            Zone::Fixed(offset) => *offset,
        }
    }

    /// Of what the clocks show twice, the time after they were set back; of what they never show, as if they had not been set forward.
    fn offset_of_local(&self, local: NaiveDateTime) -> FixedOffset {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => match zone.offset_from_local_datetime(&local) {
                LocalResult::Single(offset) | LocalResult::Ambiguous(_, offset) => offset.fix(),
                LocalResult::None => {
                    let before = local.checked_sub_days(Days::new(1)).unwrap_or(local);
                    zone.offset_from_utc_datetime(&before).fix()
                }
            },
        }
    }
}

/// Error 22008.
fn at(micros: i64) -> SqlResult<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|at| at.naive_utc()).ok_or_else(out_of_range)
}

fn out_of_range() -> SqlError {
    SqlError::new(SqlState::DatetimeFieldOverflow, "timestamp out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> NaiveDateTime {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn clocks_that_are_set_show_some_times_twice_and_some_never() {
        let berlin = Zone::named("europe/berlin").expect("known");
        let hours = |text: &str| berlin.offset_of_local(shown(text)).local_minus_utc() / 3_600;
        assert_eq!((hours("2024-07-01T12:00:00"), hours("2024-01-01T12:00:00")), (2, 1));
        assert_eq!((hours("2024-10-27T02:30:00"), hours("2024-03-31T02:30:00")), (1, 1));
        assert_eq!(Zone::named("+02").expect("an offset").offset_at(shown("2024-01-01T00:00:00")).local_minus_utc(), -7_200);
        assert!(["Nowhere/City", "", "+x", "+99"].iter().all(|name| Zone::named(name).is_err()));
    }

    #[test]
    fn parts_are_those_of_postgresql() {
        let at = |text: &str, part: &str| Part::named(part).and_then(|part| part.of(&Moment::Timestamp(shown(text)))).expect("it has that");
        let whole = |text: &str, part: &str| at(text, part) / i128::from(MICROS_PER_SECOND);
        for (part, expected) in
            [("century", 21), ("millennium", 3), ("decade", 202), ("dow", 4), ("isodow", 4), ("doy", 60), ("week", 9), ("quarter", 1)]
        {
            assert_eq!(whole("2024-02-29T12:34:56", part), expected, "{part}");
        }
        assert_eq!((whole("2000-12-31T00:00:00", "century"), whole("2001-01-01T00:00:00", "century")), (20, 21));
        assert_eq!((whole("-0001-01-01T00:00:00", "year"), whole("0000-12-31T00:00:00", "century")), (-2, -1));
        assert_eq!(at("2024-02-29T12:34:56.789", "second"), 56_789_000);
        let interval = Moment::Interval(IntervalMonthDayNano::new(14, 3, 4 * 3_600_000_000_000));
        let of_interval =
            |part: &str| Part::named(part).and_then(|part| part.of(&interval)).map(|micros| micros / i128::from(MICROS_PER_SECOND));
        assert_eq!(
            (of_interval("year"), of_interval("month"), of_interval("day"), of_interval("hour")),
            (Some(1), Some(2), Some(3), Some(4))
        );
        assert_eq!((of_interval("epoch"), of_interval("dow")), (Some(31_557_600 + 63 * 86_400 + 14_400), None));
    }
}
