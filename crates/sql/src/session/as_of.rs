//! `AS OF SYSTEM TIME`: a moment in the past, as a text.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, SqlType, parse_text};
use rhumb_core::{Span, Time, Timestamp};

/// The timestamp that `text` means: `-5s` and the like, before `now`, or a date and time in UTC.
pub fn timestamp(text: &str, now: Timestamp) -> SqlResult<Timestamp> {
    let text = text.trim();
    if let Some(ago) = text.strip_prefix('-') {
        return Ok(now.minus(span(ago.trim()).ok_or_else(|| invalid(text))?));
    }
    let micros = match parse_text(&SqlType::TimestampTz, text) {
        Ok(Datum::TimestampMicrosecond(Some(micros), _)) => u64::try_from(micros).map_err(|_| invalid(text))?,
        _ => return Err(invalid(text)),
    };
    let at = Time::from_micros(micros);
    if at > now.time() {
        let message = format!("AS OF SYSTEM TIME '{text}' lies in the future");
        return Err(SqlError::new(SqlState::InvalidParameterValue, message));
    }
    Ok(Timestamp::from_time(at))
}

fn invalid(text: &str) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, format!("invalid AS OF SYSTEM TIME: \"{text}\""))
        .with_hint("Write how long ago, as '-5s' or '-300ms', or a time, as '2026-01-31 12:00:00+00'.")
}

/// A length of time: a number, with a fraction or without, and a unit.
fn span(text: &str) -> Option<Span> {
    let split = text.find(|character: char| !character.is_ascii_digit() && character != '.')?;
    let number: f64 = text[..split].parse().ok()?;
    let millis = match text[split..].trim() {
        "us" => 0.001,
        "ms" => 1.0,
        "s" | "sec" | "second" | "seconds" => 1_000.0,
        "m" | "min" | "minute" | "minutes" => 60_000.0,
        "h" | "hour" | "hours" => 3_600_000.0,
        _ => return None,
    };
    Span::from_millis_f64(number * millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_the_past_is_relative_or_absolute() {
        let now = Timestamp::from_time(Time::from_micros(2_000_000_000_000_000));
        assert_eq!(timestamp("-5s", now), Ok(now.minus(Span::from_secs(5))));
        assert_eq!(timestamp("-1.5 ms", now), Ok(now.minus(Span::from_micros(1_500))));
        assert_eq!(timestamp("1970-01-01 00:00:01+00", now), Ok(Timestamp::from_time(Time::from_micros(1_000_000))));
        for text in ["5s", "-5", "-x", "yesterday at noon", "3000-01-01 00:00:00+00"] {
            assert_eq!(timestamp(text, now).expect_err(text).state(), SqlState::InvalidParameterValue);
        }
    }
}
