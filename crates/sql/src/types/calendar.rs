//! Days and times of day as people write them, and as numbers.
//!
//! The proleptic Gregorian calendar, by the usual count of 400-year cycles that begin on 1 March. Written out here because
//! a `date` of 32 bits reaches further than a calendar library does, and printing a stored value must not fail.

/// Microseconds in a second.
pub(super) const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a day.
pub(crate) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

const DAYS_PER_CYCLE: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_SHIFT: i64 = 719_468;

/// The days from 1970-01-01 to a date; `None` if the month has no such day. The year before year 1 is year 0.
pub(super) fn days_from_civil(year: i64, month: u32, day: u32) -> Option<i64> {
    if !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    Some(cycle * DAYS_PER_CYCLE + day_of_cycle - EPOCH_SHIFT)
}

/// The year, month and day that lie `days` after 1970-01-01.
pub(super) fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + EPOCH_SHIFT;
    let cycle = shifted.div_euclid(DAYS_PER_CYCLE);
    let day_of_cycle = shifted.rem_euclid(DAYS_PER_CYCLE);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    let year = year_of_cycle + cycle * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// `2024-02-29`, and ` BC` at the end of a year before year 1.
pub(super) fn format_date(days: i64) -> String {
    let (date, era) = date_and_era(days);
    date + era
}

/// `23:59:59.5`: the fraction without trailing zeros.
pub(super) fn format_time(micros: i64) -> String {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let fraction = micros.rem_euclid(MICROS_PER_SECOND);
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match fraction {
        0 => clock,
        _ => format!("{clock}.{}", format!("{fraction:06}").trim_end_matches('0')),
    }
}

/// `2024-02-29 23:59:59.5` followed by `zone`.
pub(super) fn format_timestamp(micros: i64, zone: &str) -> String {
    let (date, era) = date_and_era(micros.div_euclid(MICROS_PER_DAY));
    format!("{date} {}{zone}{era}", format_time(micros.rem_euclid(MICROS_PER_DAY)))
}

fn date_and_era(days: i64) -> (String, &'static str) {
    let (year, month, day) = civil_from_days(days);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    (format!("{year:04}-{month:02}-{day:02}"), era)
}

/// Why a date or time could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is not written as one.
    Syntax,
    /// It has a field, say a month, that cannot be.
    Range,
}

/// The days from 1970-01-01 to `2024-02-29`, `2024/2/29`, `20240229`, each perhaps followed by ` BC`.
pub(super) fn parse_date(text: &str) -> Result<i64, Unreadable> {
    let (text, before_christ) = strip_era(text.trim());
    let fields: Vec<&str> = match text.len() {
        8 if text.bytes().all(|byte| byte.is_ascii_digit()) => vec![&text[..4], &text[4..6], &text[6..]],
        _ => text.split(['-', '/']).collect(),
    };
    let [year, month, day] = fields[..] else { return Err(Unreadable::Syntax) };
    if year.len() < 3 || month.len() > 2 || day.len() > 2 {
        return Err(Unreadable::Syntax);
    }
    let year = i64::from(number(year)?);
    if year == 0 {
        return Err(Unreadable::Range);
    }
    days_from_civil(if before_christ { 1 - year } else { year }, number(month)?, number(day)?).ok_or(Unreadable::Range)
}

/// The microseconds from midnight to `23:59`, `23:59:59` or `23:59:59.123456`; further digits are rounded.
pub(super) fn parse_time(text: &str) -> Result<i64, Unreadable> {
    let fields: Vec<&str> = text.trim().split(':').collect();
    let (hour, minute, second) = match fields[..] {
        [hour, minute] => (hour, minute, "0"),
        [hour, minute, second] => (hour, minute, second),
        _ => return Err(Unreadable::Syntax),
    };
    let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
    let (hour, minute, second) = (number(hour)?, number(minute)?, number(second)?);
    // Second 60 is the first of the next minute, and hour 24 the end of the day, as in PostgreSQL.
    if hour > 24 || minute > 59 || second > 60 {
        return Err(Unreadable::Range);
    }
    let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
    let micros = seconds * MICROS_PER_SECOND + fraction_micros(fraction)?;
    if micros <= MICROS_PER_DAY { Ok(micros) } else { Err(Unreadable::Range) }
}

/// The microseconds from 1970-01-01 to a date, perhaps followed by a time (after a blank or `T`) and a zone, which is
/// answered in seconds east of UTC.
pub(super) fn parse_timestamp(text: &str) -> Result<(i64, Option<i64>), Unreadable> {
    let (text, before_christ) = strip_era(text.trim());
    let (date, rest) = text.split_once([' ', 'T', 't']).unwrap_or((text, ""));
    let rest = rest.trim();
    let zone_at = rest.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone_at);
    let days = if before_christ { parse_date(&format!("{date} BC"))? } else { parse_date(date)? };
    let micros = if time.is_empty() { 0 } else { parse_time(time)? };
    let zone = if zone.trim().is_empty() { None } else { Some(parse_zone(zone.trim())?) };
    let at = days.checked_mul(MICROS_PER_DAY).and_then(|day| day.checked_add(micros)).ok_or(Unreadable::Range)?;
    Ok((at, zone))
}

/// `Z`, `UTC`, `+02`, `+0230`, `-02:30`, in seconds east of UTC.
fn parse_zone(text: &str) -> Result<i64, Unreadable> {
    if ["z", "utc", "gmt"].contains(&text.to_ascii_lowercase().as_str()) {
        return Ok(0);
    }
    let (sign, text) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(east), _) => (1, east),
        (_, Some(west)) => (-1, west),
        _ => return Err(Unreadable::Syntax),
    };
    let (hours, minutes) = match text.split_once(':') {
        Some(parts) => parts,
        None if text.len() == 4 && text.is_ascii() => text.split_at(2),
        None => (text, "0"),
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 15 || minutes > 59 {
        return Err(Unreadable::Range);
    }
    Ok(sign * (i64::from(hours) * 3_600 + i64::from(minutes) * 60))
}

fn strip_era(text: &str) -> (&str, bool) {
    for era in [" BC", " bc"] {
        if let Some(text) = text.strip_suffix(era) {
            return (text.trim_end(), true);
        }
    }
    (text, false)
}

fn number(digits: &str) -> Result<u32, Unreadable> {
    if digits.is_empty() || digits.len() > 7 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unreadable::Syntax);
    }
    digits.parse().map_err(|_| Unreadable::Syntax)
}

fn fraction_micros(digits: &str) -> Result<i64, Unreadable> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unreadable::Syntax);
    }
    let micros = digits.bytes().chain(std::iter::repeat(b'0')).take(6).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Ok(micros + i64::from(digits.as_bytes().get(6).is_some_and(|digit| *digit >= b'5')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_three_cycles_round_trips() {
        for days in -DAYS_PER_CYCLE * 2..DAYS_PER_CYCLE {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), Some(days));
        }
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(19_782), (2024, 2, 29));
    }

    #[test]
    fn the_ends_of_the_range_print() {
        assert_eq!(format_date(i64::from(i32::MAX)), "5881580-07-11");
        assert_eq!(format_date(i64::from(i32::MIN)), "5877642-06-23 BC");
        assert_eq!(format_timestamp(i64::MIN, ""), "290309-12-21 19:59:05.224192 BC");
    }

    #[test]
    fn a_day_that_is_not_in_the_calendar_is_out_of_range() {
        for text in ["2023-02-29", "2024-13-01", "2024-00-10", "2024-04-31", "0000-01-01", "1900-02-29"] {
            assert_eq!(parse_date(text), Err(Unreadable::Range), "{text}");
        }
        for text in ["", "2024", "2024-01", "yesterday", "2024-01-01-01", "24-01-01", "2024-001-01"] {
            assert_eq!(parse_date(text), Err(Unreadable::Syntax), "{text}");
        }
    }

    #[test]
    fn a_timestamp_has_date_time_and_zone() {
        let at = |text| parse_timestamp(text).map(|(micros, zone)| (format_timestamp(micros, ""), zone));
        assert_eq!(at("2024-02-29T12:30:00.25Z"), Ok(("2024-02-29 12:30:00.25".into(), Some(0))));
        assert_eq!(at("2024-02-29 12:30:00-03:30"), Ok(("2024-02-29 12:30:00".into(), Some(-12_600))));
        assert_eq!(at("2024-02-29 12:30 +0200"), Ok(("2024-02-29 12:30:00".into(), Some(7_200))));
        assert_eq!(at("2024-02-29"), Ok(("2024-02-29 00:00:00".into(), None)));
        assert_eq!(at("0044-03-15 12:00:00 BC"), Ok(("0044-03-15 12:00:00 BC".into(), None)));
        assert_eq!(at("2024-02-29 23:59:59.9999996"), Ok(("2024-03-01 00:00:00".into(), None)));
        assert_eq!(at("2024-02-29 25:00"), Err(Unreadable::Range));
        assert_eq!(at("2024-02-29 noon"), Err(Unreadable::Syntax));
    }
}
