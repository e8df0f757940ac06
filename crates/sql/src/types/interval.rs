//! Intervals: months, days and microseconds, as people write them and as PostgreSQL prints them.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::Datum;
use crate::types::calendar::{MICROS_PER_DAY, MICROS_PER_SECOND, Unreadable, format_time, parse_time};
use datafusion::arrow::datatypes::IntervalMonthDayNano;

const NANOS_PER_MICRO: i64 = 1_000;
const MONTHS_PER_YEAR: i64 = 12;
const DAYS_PER_MONTH: i64 = 30;
const DAYS_PER_WEEK: i64 = 7;
const SECONDS_PER_DAY: f64 = 86_400.0;
/// Longer texts spell no interval.
const TEXT_BYTES_MAX: usize = 1_000;

/// An interval. Equal ones may have different parts: a month has 30 days then, and a day 24 hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Months, years among them.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// The rest.
    pub micros: i64,
}

impl Interval {
    /// What the query engine holds; a part of a microsecond is left out.
    pub fn of_arrow(value: IntervalMonthDayNano) -> Interval {
        Interval { months: value.months, days: value.days, micros: value.nanoseconds / NANOS_PER_MICRO }
    }

    /// The value, if it is an interval that is not NULL.
    pub fn of(value: &Datum) -> Option<Interval> {
        match value {
            Datum::IntervalMonthDayNano(value) => value.map(Interval::of_arrow),
            _ => None,
        }
    }

    /// As the query engine holds it. Error 22008 if it has more than 292 years of hours.
    pub fn stored(self) -> SqlResult<Datum> {
        let nanos = self.micros.checked_mul(NANOS_PER_MICRO).ok_or_else(out_of_range)?;
        Ok(Datum::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(self.months, self.days, nanos))))
    }

    /// How long it is, by which intervals are compared, in microseconds.
    pub fn span(self) -> i128 {
        let days = i128::from(self.months) * i128::from(DAYS_PER_MONTH) + i128::from(self.days);
        days * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }

    /// Part by part. Error 22008.
    pub fn plus(self, other: Interval) -> SqlResult<Interval> {
        let sum = || {
            Some(Interval {
                months: self.months.checked_add(other.months)?,
                days: self.days.checked_add(other.days)?,
                micros: self.micros.checked_add(other.micros)?,
            })
        };
        sum().ok_or_else(out_of_range)
    }

    /// As long the other way. Error 22008.
    pub fn negated(self) -> SqlResult<Interval> {
        let negative =
            || Some(Interval { months: self.months.checked_neg()?, days: self.days.checked_neg()?, micros: self.micros.checked_neg()? });
        negative().ok_or_else(out_of_range)
    }

    /// With each part as `scale` makes it, times or divided by a number; parts of months become days, and parts of days hours. Error 22008.
    pub fn scaled(self, scale: impl Fn(f64) -> f64) -> SqlResult<Interval> {
        // Numbers that are not exact, as exact as they are shown.
        let rounded = |number: f64| (number * MICROS_PER_SECOND as f64).round() / MICROS_PER_SECOND as f64;
        let (months, days) = (scale(self.months.into()), scale(self.days.into()));
        let of_months = rounded(months.fract() * DAYS_PER_MONTH as f64);
        let seconds = rounded((days.fract() + of_months.fract()) * SECONDS_PER_DAY);
        let of_seconds = (seconds / SECONDS_PER_DAY).trunc();
        let micros = scale(self.micros as f64) + (seconds - of_seconds * SECONDS_PER_DAY) * MICROS_PER_SECOND as f64;
        let days = whole(days.trunc() + of_months.trunc() + of_seconds);
        let sum = || Sum { months: whole(months)?, days: days?, micros: whole(micros.round_ties_even())? }.interval();
        sum().ok_or_else(out_of_range)
    }

    /// With hours of whole days as days, and days of whole months as months, and all parts of one sign where that is possible. Error 22008.
    pub fn justified(self, hours: bool, days: bool) -> SqlResult<Interval> {
        let Interval { months, days: own, micros } = self;
        let (mut sum, day, month) = (Sum { months: months.into(), days: own.into(), micros }, MICROS_PER_DAY, DAYS_PER_MONTH);
        if hours {
            sum.days += sum.micros / day;
            sum.micros %= day;
        }
        if days {
            sum.months += sum.days / month;
            sum.days %= month;
            // Hours have a sign of their own unless they become days.
            let below = if sum.days == 0 && hours { sum.micros.signum() } else { sum.days.signum() };
            if sum.months.signum() * below < 0 {
                sum.days -= below * month;
                sum.months += below;
            }
        }
        if hours && sum.days.signum() * sum.micros.signum() < 0 {
            let below = sum.micros.signum();
            sum.micros -= below * day;
            sum.days += below;
        }
        sum.interval().ok_or_else(out_of_range)
    }
}

/// Error 22008.
pub fn out_of_range() -> SqlError {
    SqlError::new(SqlState::DatetimeFieldOverflow, "interval out of range")
}

fn whole(number: f64) -> Option<i64> {
    (number.is_finite() && number.abs() < 2f64.powi(62)).then_some(number.trunc() as i64)
}

/// Parts on their way into an interval.
#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i64,
}

impl Sum {
    /// Adds days, whose part behind the point is hours.
    fn add_days(&mut self, days: f64) -> Option<()> {
        self.days = self.days.checked_add(whole(days)?)?;
        self.micros = self.micros.checked_add(whole((days.fract() * MICROS_PER_DAY as f64).round_ties_even())?)?;
        Some(())
    }

    fn interval(self) -> Option<Interval> {
        Some(Interval { months: self.months.try_into().ok()?, days: self.days.try_into().ok()?, micros: self.micros })
    }

    /// Adds a number of a unit. `None` if it is out of range.
    fn add(&mut self, Number { whole, rest }: Number, unit: Unit) -> Option<()> {
        match unit {
            Unit::Months(months) => {
                self.months = self.months.checked_add(whole.checked_mul(months)?)?;
                if months == 1 {
                    self.add_days(rest * DAYS_PER_MONTH as f64)?;
                } else {
                    // A part of a year is whole months.
                    self.months = self.months.checked_add(self::whole((rest * months as f64).round_ties_even())?)?;
                }
            }
            Unit::Days(days) => {
                self.days = self.days.checked_add(whole.checked_mul(days)?)?;
                self.add_days(rest * days as f64)?;
            }
            Unit::Micros(micros) => {
                let rest = self::whole((rest * micros as f64).round_ties_even())?;
                self.micros = self.micros.checked_add(whole.checked_mul(micros)?)?.checked_add(rest)?;
            }
        }
        Some(())
    }
}

/// A number with its part behind the point, of the same sign: `2.3` months are 2 months and 9 days, which one number alone would miss.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    rest: f64,
}

impl Number {
    fn parse(text: &str) -> Result<Number, Unreadable> {
        let (negative, text) = signed(text);
        let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + rest.len() == 0 || !is_digits(whole) || !is_digits(rest) {
            return Err(Unreadable::Syntax);
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| Unreadable::Range)? };
        let rest: f64 = format!("0.{rest}0").parse().map_err(|_| Unreadable::Syntax)?;
        Ok(if negative { Number { whole: -whole, rest: -rest } } else { Number { whole, rest } })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Months(i64),
    Days(i64),
    Micros(i64),
}

fn unit(name: &str) -> Option<Unit> {
    Some(match name.to_lowercase().as_str() {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => Unit::Micros(1),
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Unit::Micros(1_000),
        "second" | "seconds" | "s" | "sec" | "secs" => Unit::Micros(MICROS_PER_SECOND),
        "minute" | "minutes" | "m" | "min" | "mins" => Unit::Micros(60 * MICROS_PER_SECOND),
        "hour" | "hours" | "h" | "hr" | "hrs" => Unit::Micros(3_600 * MICROS_PER_SECOND),
        "day" | "days" | "d" => Unit::Days(1),
        "week" | "weeks" | "w" => Unit::Days(DAYS_PER_WEEK),
        "month" | "months" | "mon" | "mons" => Unit::Months(1),
        "year" | "years" | "y" | "yr" | "yrs" => Unit::Months(MONTHS_PER_YEAR),
        "decade" | "decades" | "dec" | "decs" => Unit::Months(10 * MONTHS_PER_YEAR),
        "century" | "centuries" | "cent" | "c" => Unit::Months(100 * MONTHS_PER_YEAR),
        "millennium" | "millennia" | "mil" | "mils" => Unit::Months(1_000 * MONTHS_PER_YEAR),
        _ => return None,
    })
}

/// `1 year 2 mons 3 days 04:05:06.7`, each part with a sign; `1 day ago`; `P1Y2M3DT4H5M6S`; `1-2` years and months; a number alone is seconds.
pub(super) fn parse_interval(text: &str) -> Result<Interval, Unreadable> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return Err(Unreadable::Syntax);
    }
    let mut sum = Sum::default();
    match text.strip_prefix(['P', 'p']) {
        Some(parts) => iso(parts, &mut sum)?,
        None => words(text, &mut sum)?,
    }
    sum.interval().ok_or(Unreadable::Range)
}

fn words(text: &str, sum: &mut Sum) -> Result<(), Unreadable> {
    let text = apart(text.trim_start_matches('@'));
    let mut words = text.split_ascii_whitespace().peekable();
    let (mut found, mut units) = (false, Vec::new());
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("ago") && found && words.peek().is_none() {
            let negated = |number: i64| number.checked_neg().ok_or(Unreadable::Range);
            *sum = Sum { months: negated(sum.months)?, days: negated(sum.days)?, micros: negated(sum.micros)? };
            return Ok(());
        }
        found = true;
        if word.contains(':') {
            let (negative, clock) = signed(word);
            let micros = clock_micros(clock)?;
            let time = Number { whole: if negative { -micros } else { micros }, rest: 0.0 };
            sum.add(time, Unit::Micros(1)).ok_or(Unreadable::Range)?;
            continue;
        }
        let (negative, bare) = signed(word);
        if let Some((years, months)) = bare.split_once('-') {
            let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
                true => text.parse::<i64>().map_err(|_| Unreadable::Syntax),
                false => Err(Unreadable::Syntax),
            };
            let (years, months) = (number(years)?, number(months)?);
            if months >= MONTHS_PER_YEAR {
                return Err(Unreadable::Range);
            }
            let months = years.checked_mul(MONTHS_PER_YEAR).and_then(|years| years.checked_add(months)).ok_or(Unreadable::Range)?;
            sum.months = sum.months.checked_add(if negative { -months } else { months }).ok_or(Unreadable::Range)?;
            continue;
        }
        // A unit may stand beside its number.
        let end = bare.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(bare.len());
        let (digits, name) = bare.split_at(end);
        let Number { whole, rest } = Number::parse(digits)?;
        let number = if negative { Number { whole: -whole, rest: -rest } } else { Number { whole, rest } };
        let unit = match name {
            "" => match words.peek().and_then(|name| unit(name)) {
                Some(unit) => {
                    words.next();
                    unit
                }
                // Days stand before a time of day without their unit, and seconds by themselves.
                None if words.peek().is_some_and(|next| next.contains(':')) => Unit::Days(1),
                None if words.peek().is_none() => Unit::Micros(MICROS_PER_SECOND),
                None => return Err(Unreadable::Syntax),
            },
            name => unit(name).ok_or(Unreadable::Syntax)?,
        };
        if units.contains(&unit) {
            return Err(Unreadable::Syntax);
        }
        units.push(unit);
        sum.add(number, unit).ok_or(Unreadable::Range)?;
    }
    if found { Ok(()) } else { Err(Unreadable::Syntax) }
}

/// With a blank before each number that a unit stands right before: `1h30m` is two parts.
fn apart(text: &str) -> String {
    let mut made = String::with_capacity(text.len() + 8);
    let mut last = ' ';
    for next in text.chars() {
        if last.is_ascii_alphabetic() && next.is_ascii_digit() {
            made.push(' ');
        }
        made.push(next);
        last = next;
    }
    made
}

fn signed(word: &str) -> (bool, &str) {
    match word.strip_prefix('-') {
        Some(bare) => (true, bare),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    }
}

/// Hours, which may be more than a day has, minutes and seconds.
fn clock_micros(clock: &str) -> Result<i64, Unreadable> {
    let (hours, rest) = clock.split_once(':').ok_or(Unreadable::Syntax)?;
    let hours: i64 = hours.parse().map_err(|_| Unreadable::Syntax)?;
    let rest = parse_time(&format!("0:{rest}"))?;
    hours.checked_mul(3_600 * MICROS_PER_SECOND).and_then(|hours| hours.checked_add(rest)).ok_or(Unreadable::Range)
}

fn iso(text: &str, sum: &mut Sum) -> Result<(), Unreadable> {
    let (date, time) = text.split_once(['T', 't']).map_or((text, None), |(date, time)| (date, Some(time)));
    let mut found = false;
    for (mut part, in_time) in [(date, false), (time.unwrap_or_default(), true)] {
        while !part.is_empty() {
            let end = part.find(|c: char| c.is_ascii_alphabetic()).ok_or(Unreadable::Syntax)?;
            let (number, rest) = part.split_at(end);
            let number = Number::parse(number)?;
            let unit = match (rest.as_bytes()[0].to_ascii_uppercase(), in_time) {
                (b'Y', false) => Unit::Months(MONTHS_PER_YEAR),
                (b'M', false) => Unit::Months(1),
                (b'W', false) => Unit::Days(DAYS_PER_WEEK),
                (b'D', false) => Unit::Days(1),
                (b'H', true) => Unit::Micros(3_600 * MICROS_PER_SECOND),
                (b'M', true) => Unit::Micros(60 * MICROS_PER_SECOND),
                (b'S', true) => Unit::Micros(MICROS_PER_SECOND),
                _ => return Err(Unreadable::Syntax),
            };
            sum.add(number, unit).ok_or(Unreadable::Range)?;
            (part, found) = (&rest[1..], true);
        }
    }
    if found { Ok(()) } else { Err(Unreadable::Syntax) }
}

/// `1 year 2 mons 3 days 04:05:06.7`, as PostgreSQL prints it.
pub(super) fn format_interval(interval: &Interval) -> String {
    let years = i64::from(interval.months) / MONTHS_PER_YEAR;
    let months = i64::from(interval.months) % MONTHS_PER_YEAR;
    let mut parts: Vec<String> = Vec::new();
    let mut was_negative = false;
    for (number, name) in [(years, "year"), (months, "mon"), (i64::from(interval.days), "day")] {
        if number != 0 {
            let sign = if was_negative && number > 0 { "+" } else { "" };
            parts.push(format!("{sign}{number} {name}{}", if number == 1 { "" } else { "s" }));
            was_negative = number < 0;
        }
    }
    if interval.micros != 0 || parts.is_empty() {
        let sign = match interval.micros {
            ..0 => "-",
            _ if was_negative => "+",
            _ => "",
        };
        // No interval is as long as to have no positive counterpart but one.
        parts.push(format!("{sign}{}", format_time(interval.micros.saturating_abs())));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, Unreadable> {
        parse_interval(text).map(|interval| format_interval(&interval))
    }

    #[test]
    fn intervals_are_read_and_printed_as_by_postgresql() {
        for (text, printed) in [
            ("1 day", "1 day"),
            ("1 year 2 months 3 days 04:05:06.7", "1 year 2 mons 3 days 04:05:06.7"),
            ("36 hours", "36:00:00"),
            ("1.5 days", "1 day 12:00:00"),
            ("1.5 months", "1 mon 15 days"),
            ("-1 day", "-1 days"),
            ("1 week", "7 days"),
            ("14 months", "1 year 2 mons"),
            ("0", "00:00:00"),
            ("10", "00:00:10"),
            ("1 second 500 milliseconds", "00:00:01.5"),
            ("1 day ago", "-1 days"),
            ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
            ("1-2", "1 year 2 mons"),
            ("1 2:03:04", "1 day 02:03:04"),
            ("-1 day +02:03", "-1 days +02:03:00"),
            ("-1 year 1 day", "-1 years +1 day"),
            ("1h 30m", "01:30:00"),
            ("1 day 2", "1 day 00:00:02"),
            ("2.3 months", "2 mons 9 days"),
            ("4.1 months", "4 mons 3 days"),
            ("1.1 years", "1 year 1 mon"),
            ("1.15 years", "1 year 2 mons"),
            ("-1.5 days", "-1 days -12:00:00"),
            ("1h30m", "01:30:00"),
            ("0.5 weeks", "3 days 12:00:00"),
            ("P0.5Y", "6 mons"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(printed), "{text}");
        }
        for text in ["", "x", "1 x", "ago", "P", "1 2 days", "1:2:3:4", "1 day 2 days", "1--2", ". days"] {
            assert_eq!(read(text), Err(Unreadable::Syntax), "{text:?}");
        }
        for text in ["9999999999 years", "-4611686018427387904 us -4611686018427387904 ms ago", "99999999999999999999 us"] {
            assert_eq!(read(text), Err(Unreadable::Range), "{text}");
        }
    }

    #[test]
    fn a_month_is_as_long_as_thirty_days() {
        let span = |text: &str| parse_interval(text).expect("an interval").span();
        assert_eq!((span("1 mon"), span("1 day")), (span("30 days"), span("24:00")));
        assert!(span("1 day") < span("25 hours"));
        let times = |text: &str, factor| {
            parse_interval(text).expect("an interval").scaled(|part| part * factor).ok().map(|made| format_interval(&made))
        };
        assert_eq!(times("1 day", 1.5).as_deref(), Some("1 day 12:00:00"));
        assert_eq!(times("1 day", 0.5).as_deref(), Some("12:00:00"));
        assert_eq!(times("1 mon", 1.5).as_deref(), Some("1 mon 15 days"));
        assert_eq!(times("02:00:00", 2.0).as_deref(), Some("04:00:00"));
        assert_eq!(times("1 mon", 1.2).as_deref(), Some("1 mon 6 days"));
        assert_eq!(times("1 mon 1 day", 1.5).as_deref(), Some("1 mon 16 days 12:00:00"));
        assert_eq!(times("100000 years", 2000.0), None);
    }

    #[test]
    fn whole_days_and_months_are_told_as_such() {
        let made = |text: &str, hours, days| {
            let made = parse_interval(text).expect("an interval").justified(hours, days);
            made.map(|made| format_interval(&made)).expect("in range")
        };
        assert_eq!(made("35 days", false, true), "1 mon 5 days");
        assert_eq!(made("27 hours", true, false), "1 day 03:00:00");
        assert_eq!(made("1 mon -1 hour", true, true), "29 days 23:00:00");
        assert_eq!(made("1 mon -1 day", false, true), "29 days");
        assert_eq!(made("1 day -1 hour", true, false), "23:00:00");
        assert_eq!(made("-1 mon 1 hour", true, true), "-29 days -23:00:00");
    }
}
