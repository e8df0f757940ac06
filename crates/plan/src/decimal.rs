//! Decimal numbers to the digit: what is counted in thousandths or millionths never goes through a float.

/// A number without sign or exponent and with at most `decimals` decimals, in units of 10^-`decimals`, to the digit.
pub fn decimal(text: &str, decimals: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || fraction.is_some_and(|fraction| !digits(fraction) || fraction.len() > decimals) {
        return None;
    }
    format!("{whole}{:0<decimals$}", fraction.unwrap_or_default()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_to_the_digit_or_not_at_all() {
        assert_eq!(decimal("2.5", 3), Some(2_500));
        assert_eq!(decimal("0", 3), Some(0));
        assert_eq!(decimal("12", 0), Some(12));
        assert_eq!(decimal("18446744073709551615", 0), Some(u64::MAX));
        for bad in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1.2345", "NaN", "0x1", "1 000", "18446744073709551616"] {
            assert_eq!(decimal(bad, 3), None, "{bad}");
        }
        assert_eq!(decimal("1.0", 0), None);
    }
}
