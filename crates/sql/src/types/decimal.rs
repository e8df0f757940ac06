//! NUMERIC: exact decimal numbers as an integer and the place of its point.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::SqlType;

/// Exponents beyond this are not worked out: no NUMERIC has that many digits.
const EXPONENT_MAX: i64 = 1_000_000;

/// A decimal number as written: `±digits × 10^exponent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    negative: bool,
    /// Each 0 to 9, the first not 0.
    digits: Vec<u8>,
    exponent: i64,
}

impl Written {
    /// Reads `-12.5e3`. `None` if `text` is no number.
    pub(super) fn parse(text: &str) -> Option<Written> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?.clamp(-EXPONENT_MAX, EXPONENT_MAX)),
            None => (text, 0),
        };
        let negative = mantissa.starts_with('-');
        let mantissa = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = || whole.bytes().chain(fraction.bytes());
        if all().next().is_none() || !all().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = all().map(|byte| byte - b'0').skip_while(|digit| *digit == 0).collect();
        Some(Written { negative, digits, exponent: exponent - fraction.len() as i64 })
    }

    /// `unscaled × 10^-scale`.
    pub(super) fn from_unscaled(unscaled: i128, scale: i8) -> Written {
        let digits = unscaled.unsigned_abs().to_string().bytes().map(|byte| byte - b'0').skip_while(|digit| *digit == 0).collect();
        Written { negative: unscaled < 0, digits, exponent: -i64::from(scale) }
    }

    /// The number times `10^scale`, rounded half away from zero, and whether it had to be rounded. `None` if it has
    /// more than 38 digits then.
    pub(super) fn to_scale(&self, scale: i8) -> Option<(i128, bool)> {
        if self.digits.is_empty() {
            return Some((0, false));
        }
        let shift = self.exponent + i64::from(scale);
        let length = self.digits.len() as i64;
        let kept = (length + shift).clamp(0, length) as usize;
        if length + shift > 38 {
            return None;
        }
        let (kept_digits, dropped) = self.digits.split_at(kept);
        let padding = shift.max(0) as usize;
        let magnitude = kept_digits.iter().chain(std::iter::repeat_n(&0, padding)).fold(0i128, |sum, digit| sum * 10 + i128::from(*digit));
        // A dropped part that begins further right than the first dropped place is below one half.
        let half = length + shift >= 0 && dropped.first().is_some_and(|digit| *digit >= 5);
        let magnitude = magnitude + i128::from(half);
        let inexact = dropped.iter().any(|digit| *digit != 0);
        Some((if self.negative { -magnitude } else { magnitude }, inexact))
    }

    /// The unscaled integer of a NUMERIC of type `ty`. A declared scale rounds half away from zero; without one a number
    /// that does not fit is refused.
    pub(super) fn assign(&self, ty: &SqlType) -> SqlResult<i128> {
        let (precision, scale) = ty.decimal_shape();
        let fitting = self.to_scale(scale).filter(|(unscaled, _)| unscaled.unsigned_abs() < 10u128.pow(u32::from(precision)));
        match (fitting, ty) {
            (Some((unscaled, _)), SqlType::Numeric(Some(_))) | (Some((unscaled, false)), _) => Ok(unscaled),
            (Some((_, true)), _) => {
                let message = format!("numeric without precision holds at most {scale} digits after the decimal point");
                let hint = format!("Round the value to {scale} digits, or declare the column numeric(precision, scale).");
                Err(SqlError::new(SqlState::NumericValueOutOfRange, message).with_hint(hint))
            }
            (None, _) => {
                let whole = i16::from(precision) - i16::from(scale);
                let limit = if whole == 0 { "1".to_string() } else { format!("10^{whole}") };
                let detail =
                    format!("A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}.");
                Err(SqlError::new(SqlState::NumericValueOutOfRange, "numeric field overflow").with_detail(detail))
            }
        }
    }
}

/// The number that a text spells, with the decimal places that it is written with and without an exponent. `None` if it spells none, or one of more than
/// 38 digits.
pub fn written_decimal(text: &str) -> Option<String> {
    let written = Written::parse(text.trim_matches(|c: char| c.is_ascii_whitespace()))?;
    let scale = i8::try_from((-written.exponent).max(0)).ok().filter(|scale| *scale <= 38)?;
    let (unscaled, _) = written.to_scale(scale)?;
    Some(format_decimal(unscaled, scale))
}

/// The digits of `unscaled × 10^-scale`: `-0.50`.
pub(super) fn format_decimal(unscaled: i128, scale: i8) -> String {
    let digits = unscaled.unsigned_abs().to_string();
    let sign = if unscaled < 0 { "-" } else { "" };
    match usize::try_from(scale) {
        Ok(0) => format!("{sign}{digits}"),
        Ok(scale) => {
            let padded = format!("{digits:0>width$}", width = scale + 1);
            let (whole, fraction) = padded.split_at(padded.len() - scale);
            format!("{sign}{whole}.{fraction}")
        }
        Err(_) if unscaled == 0 => "0".to_string(),
        Err(_) => format!("{sign}{digits}{}", "0".repeat(usize::from(scale.unsigned_abs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(text: &str, ty: SqlType) -> Result<i128, &'static str> {
        Written::parse(text).expect("a number").assign(&ty).map_err(|error| error.state().code())
    }

    #[test]
    fn a_number_keeps_the_decimal_places_that_it_is_written_with() {
        for (text, written) in [("1.50", "1.50"), (" -0.5 ", "-0.5"), ("1e3", "1000"), ("15e-3", "0.015"), ("0.00", "0.00")] {
            assert_eq!(written_decimal(text).as_deref(), Some(written), "{text}");
        }
        for text in ["", "x", "NaN", "1e39", "1e-39"] {
            assert_eq!(written_decimal(text), None, "{text}");
        }
    }

    #[test]
    fn a_declared_scale_rounds_half_away_from_zero() {
        let ty = SqlType::Numeric(Some((5, 2)));
        let cases = [("1.005", 101), ("-1.005", -101), ("1.004999", 100), ("0.004", 0), ("0.005", 1), ("0.0049", 0), ("12e1", 12_000)];
        for (text, unscaled) in cases {
            assert_eq!(assigned(text, ty), Ok(unscaled), "{text}");
        }
        assert_eq!(assigned("999.994", ty), Ok(99_999));
        assert_eq!(assigned("999.995", ty), Err("22003"));
        assert_eq!(assigned("1e400000", ty), Err("22003"));
        assert_eq!(assigned("1e-400000", ty), Ok(0));
    }

    #[test]
    fn without_a_scale_what_does_not_fit_is_refused() {
        let ty = SqlType::Numeric(None);
        assert_eq!(assigned("0.1234567891", ty), Ok(1_234_567_891));
        assert_eq!(assigned("0.12345678910", ty), Ok(1_234_567_891));
        assert_eq!(assigned("0.12345678911", ty), Err("22003"));
        assert_eq!(assigned("1e27", ty), Ok(10i128.pow(37)));
        assert_eq!(assigned("1e28", ty), Err("22003"));
    }

    #[test]
    fn what_is_no_number_is_not_read() {
        for text in ["", "-", ".", "1.2.3", "1e", "e5", "0x10", "1 2", "٣"] {
            assert_eq!(Written::parse(text), None, "{text}");
        }
        assert_eq!(Written::parse(".5"), Written::parse("+00.5"));
    }

    #[test]
    fn decimals_print_with_all_digits_of_their_scale() {
        assert_eq!(format_decimal(-50, 2), "-0.50");
        assert_eq!(format_decimal(12_345, 2), "123.45");
        assert_eq!(format_decimal(7, 0), "7");
        assert_eq!(format_decimal(7, -2), "700");
    }
}
