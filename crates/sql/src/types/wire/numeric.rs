//! NUMERIC in binary: groups of four decimal digits, exact both ways.
//!
//! ```text
//! count: u16 | weight: i16 | sign: u16 | scale: u16 | count × group: u16
//! ```
//! The value is Σ group[i] · 10000^(weight − i); `scale` is the number of decimals to print.

use bytes::{Buf, BufMut, BytesMut};

const NEGATIVE: u16 = 0x4000;
const GROUP_DIGITS: usize = 4;
const GROUP_MAX: u16 = 9_999;
/// No NUMERIC of ours has more digits before or after the point; a client may send more, in vain.
const GROUPS_MAX: i32 = 1_000;

/// Appends `value · 10^-scale`.
pub fn put(out: &mut BytesMut, value: i128, scale: i8) {
    let scale = usize::from(scale.max(0).unsigned_abs());
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let whole_groups = whole.len().div_ceil(GROUP_DIGITS);
    let mut padded = format!("{whole:0>width$}", width = whole_groups * GROUP_DIGITS);
    padded.push_str(&format!("{fraction:0<width$}", width = scale.div_ceil(GROUP_DIGITS) * GROUP_DIGITS));
    let groups: Vec<u16> = padded.as_bytes().chunks(GROUP_DIGITS).map(group).collect();

    let leading = groups.iter().take_while(|&&group| group == 0).count();
    let trailing = groups[leading..].iter().rev().take_while(|&&group| group == 0).count();
    let kept = &groups[leading..groups.len() - trailing];
    let weight = if kept.is_empty() { 0 } else { whole_groups as i16 - 1 - leading as i16 };
    out.put_u16(kept.len() as u16);
    out.put_i16(weight);
    out.put_u16(if value < 0 { NEGATIVE } else { 0 });
    out.put_u16(scale as u16);
    kept.iter().for_each(|&group| out.put_u16(group));
}

fn group(digits: &[u8]) -> u16 {
    digits.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'))
}

/// The number as text; `None` if the bytes are malformed or it is not finite.
pub fn read(mut bytes: &[u8]) -> Option<String> {
    if bytes.len() < 8 {
        return None;
    }
    let count = usize::from(bytes.get_u16());
    let weight = i32::from(bytes.get_i16());
    let sign = bytes.get_u16();
    let scale = usize::from(bytes.get_u16());
    if bytes.len() != count * 2 || weight.abs() > GROUPS_MAX || scale > GROUPS_MAX as usize * GROUP_DIGITS {
        return None;
    }
    let groups: Vec<u16> = (0..count).map(|_| bytes.get_u16()).collect();
    if !matches!(sign, 0 | NEGATIVE) || groups.iter().any(|&group| group > GROUP_MAX) {
        return None;
    }
    // The group that stands for 10000^power.
    let at = |power: i32| usize::try_from(weight - power).ok().and_then(|index| groups.get(index)).copied().unwrap_or(0);
    let mut text = String::from(if sign == NEGATIVE { "-" } else { "" });
    (0..=weight.max(0)).rev().for_each(|power| text.push_str(&format!("{:04}", at(power))));
    if scale > 0 {
        let groups = scale.div_ceil(GROUP_DIGITS) as i32;
        let fraction: String = (1..=groups).map(|power| format!("{:04}", at(-power))).collect();
        text.push('.');
        text.push_str(&fraction[..scale]);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(value: i128, scale: i8) -> Vec<u8> {
        let mut out = BytesMut::new();
        put(&mut out, value, scale);
        out.to_vec()
    }

    #[test]
    fn the_layout_is_that_of_postgresql() {
        // numeric_send of 12345.678, -0.0001, 0.00 and 10000.
        assert_eq!(bytes(12_345_678, 3), [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c]);
        assert_eq!(bytes(-1, 4), [0, 1, 0xff, 0xff, 0x40, 0, 0, 4, 0, 1]);
        assert_eq!(bytes(0, 2), [0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(bytes(10_000, 0), [0, 1, 0, 1, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn malformed_numbers_are_refused() {
        let whole = bytes(12_345_678, 3);
        (0..whole.len()).for_each(|length| assert_eq!(read(&whole[..length]), None));
        assert_eq!(read(&[0, 0, 0, 0, 0xc0, 0, 0, 0]), None, "NaN");
        assert_eq!(read(&[0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10]), None, "a group of five digits");
    }

    proptest! {
        #[test]
        fn every_decimal_survives(value in -(10i128.pow(38) - 1)..10i128.pow(38), scale in 0i8..=38) {
            let text = read(&bytes(value, scale)).expect("well formed");
            let digits: String = text.chars().filter(|character| character.is_ascii_digit()).collect();
            let sign = if text.starts_with('-') { -1 } else { 1 };
            prop_assert_eq!(sign * digits.parse::<i128>().expect("digits"), value);
            prop_assert_eq!(text.rsplit_once('.').map_or(0, |(_, fraction)| fraction.len()), scale as usize);
        }

        #[test]
        fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = read(&bytes);
        }
    }
}
