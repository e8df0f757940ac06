//! Lengths of time as people write them: `200ms`, `30s`, `5m`.

use std::time::Duration;

/// Longer ones are mistakes.
const SECONDS_MAX: f64 = 7.0 * 86_400.0;

/// Reads a length of time: a number and its unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("`{text}` is not a length of time; expected a number and its unit, such as 200ms, 30s or 5m");
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(expected)?;
    let (number, unit) = text.split_at(unit_at);
    let seconds_each = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return Err(expected()),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| expected())? * seconds_each;
    if (0.0..=SECONDS_MAX).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_a_unit() {
        for (text, millis) in [("200ms", 200), ("1.5s", 1_500), ("2m", 120_000), ("1h", 3_600_000), ("0s", 0)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "s", "-1s", "5 parsecs", "NaNs", "1e99s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
