//! Bytes of a client into the arguments of one command: an array of bulk strings, or a line of words.
//!
//! ```text
//!   *3\r\n$7\r\nACQUIRE\r\n$2\r\nvm\r\n$1\r\n5\r\n          what client libraries send, in RESP2 and RESP3 alike
//!   ACQUIRE vm 5\r\n                                  what people type
//! ```
//!
//! Decoding is a pure function over bytes: it returns what is there, asks for more, or says what is wrong. It borrows the
//! arguments from the bytes, knows no nesting, and panics on no input.

use crate::frame::{ARGUMENTS_MAX, Arguments, COMMAND_BYTES_MAX, Frame, Malformed};
use crate::inline;
use std::borrow::Cow;

/// Digits of a length at the most.
const LENGTH_DIGITS_MAX: usize = 10;

/// The first command in `bytes`; `None` if it is not all there yet.
pub fn decode(bytes: &[u8]) -> Result<Option<Frame<'_>>, Malformed> {
    match bytes.first() {
        None => Ok(None),
        Some(b'*') => array(bytes),
        Some(_) => inline::line(bytes),
    }
}

fn array(bytes: &[u8]) -> Result<Option<Frame<'_>>, Malformed> {
    let Some((count, mut at)) = length(bytes, 1, Malformed::ArrayLength)? else { return Ok(None) };
    if count > ARGUMENTS_MAX {
        return Err(Malformed::ArrayLength);
    }
    let mut arguments = Arguments::new();
    for _ in 0..count {
        match bytes.get(at) {
            None => return unfinished(at),
            Some(b'$') => {}
            Some(&other) => return Err(Malformed::NotBulk(other)),
        }
        let Some((length, begin)) = length(bytes, at + 1, Malformed::BulkLength)? else { return unfinished(at) };
        if length > COMMAND_BYTES_MAX {
            return Err(Malformed::BulkLength);
        }
        let end = begin + length;
        if end > COMMAND_BYTES_MAX {
            return Err(Malformed::TooLong);
        }
        match bytes.get(end..end + 2) {
            Some(b"\r\n") => arguments.push(Cow::Borrowed(&bytes[begin..end])),
            Some(_) => return Err(Malformed::BulkEnd(length)),
            None => return Ok(None),
        }
        at = end + 2;
    }
    Ok(Some(Frame { arguments, length: at }))
}

/// More is to come of an array, `at` bytes of which are there, if it may become that long.
fn unfinished<'a>(at: usize) -> Result<Option<Frame<'a>>, Malformed> {
    if at >= COMMAND_BYTES_MAX { Err(Malformed::TooLong) } else { Ok(None) }
}

/// A length in decimal and `\r\n`, from `at` on, with the place after it; `None` if it is not all there yet.
fn length(bytes: &[u8], at: usize, wrong: Malformed) -> Result<Option<(usize, usize)>, Malformed> {
    let mut number: u64 = 0;
    for (digits, &byte) in bytes[at..].iter().enumerate() {
        match byte {
            b'0'..=b'9' if digits < LENGTH_DIGITS_MAX => number = number * 10 + u64::from(byte - b'0'),
            b'\r' if digits > 0 => {
                return match bytes.get(at + digits + 1) {
                    Some(b'\n') => Ok(Some((usize::try_from(number).map_err(|_| wrong)?, at + digits + 2))),
                    Some(_) => Err(wrong),
                    None => Ok(None),
                };
            }
            _ => return Err(wrong),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> Vec<Vec<u8>> {
        let frame = decode(bytes).expect("well-formed").expect("whole");
        assert_eq!(frame.length, bytes.len());
        frame.arguments.into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn an_array_of_bulk_strings_is_a_command() {
        assert_eq!(words(b"*3\r\n$7\r\nACQUIRE\r\n$2\r\nvm\r\n$1\r\n5\r\n"), [&b"ACQUIRE"[..], b"vm", b"5"]);
        assert_eq!(words(b"*2\r\n$4\r\nECHO\r\n$6\r\n\0\r\n$1\r\r\n"), [&b"ECHO"[..], b"\0\r\n$1\r"]);
        assert_eq!(words(b"*1\r\n$0\r\n\r\n"), [b""]);
        assert!(words(b"*0\r\n").is_empty());
    }

    #[test]
    fn only_a_whole_command_is_decoded() {
        for whole in [&b"*3\r\n$7\r\nACQUIRE\r\n$2\r\nvm\r\n$1\r\n5\r\n"[..], b"ACQUIRE 'v m' 5\r\n"] {
            for cut in 0..whole.len() {
                assert_eq!(decode(&whole[..cut]), Ok(None), "{cut}");
            }
            let two = [whole, whole].concat();
            assert_eq!(decode(&two).expect("well-formed").expect("whole").length, whole.len());
        }
    }

    #[test]
    fn what_breaks_the_protocol_is_refused_as_soon_as_it_shows() {
        for (bytes, wrong) in [
            (&b"*-5\r"[..], Malformed::ArrayLength),
            (b"*\r\n", Malformed::ArrayLength),
            (b"*1025\r\n", Malformed::ArrayLength),
            (b"*99999999999", Malformed::ArrayLength),
            (b"*1 ", Malformed::ArrayLength),
            (b"*1\rX", Malformed::ArrayLength),
            (b"*1\n", Malformed::ArrayLength),
            (b"*1\r\n*", Malformed::NotBulk(b'*')),
            (b"*1\r\n:5\r\n", Malformed::NotBulk(b':')),
            (b"*1\r\n\0", Malformed::NotBulk(0)),
            (b"*1\r\n$-", Malformed::BulkLength),
            (b"*1\r\n$999999999999", Malformed::BulkLength),
            (b"*1\r\n$65537\r\n", Malformed::BulkLength),
            (b"*1\r\n$65536\r\n", Malformed::TooLong),
            (b"*1\r\n$4\r\nPINGXY", Malformed::BulkEnd(4)),
            (b"*1\r\n$4\r\nPING\n\n", Malformed::BulkEnd(4)),
        ] {
            assert_eq!(decode(bytes), Err(wrong), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_command_has_a_bounded_length() {
        let argument = format!("$8180\r\n{}\r\n", "x".repeat(8_180));
        let long = format!("*9\r\n{}", argument.repeat(9));
        assert_eq!(decode(format!("*9\r\n{}", argument.repeat(8)).as_bytes()), Ok(None));
        assert_eq!(decode(long.as_bytes()), Err(Malformed::TooLong));
        assert_eq!(Malformed::NotBulk(0).to_string(), "expected '$', got '\\x00'");
    }
}
