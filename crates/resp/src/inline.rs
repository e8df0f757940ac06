//! Commands as people type them into `nc` or `telnet`: a line of words, of which some may be quoted.
//!
//! `"…"` knows `\n \r \t \b \a \xHH` and takes any other escaped byte as it is; `'…'` knows only `\'`. A closing quote
//! ends its word.

use crate::frame::{ARGUMENTS_MAX, Arguments, COMMAND_BYTES_MAX, Frame, Malformed};
use std::borrow::Cow;

/// The first line of `bytes` as a command; `None` if it is not all there yet.
pub fn line(bytes: &[u8]) -> Result<Option<Frame<'_>>, Malformed> {
    let searched = &bytes[..bytes.len().min(COMMAND_BYTES_MAX)];
    let Some(end) = searched.iter().position(|&byte| byte == b'\n') else {
        return if bytes.len() < COMMAND_BYTES_MAX { Ok(None) } else { Err(Malformed::LineTooLong) };
    };
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let mut arguments = Arguments::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        if arguments.len() == ARGUMENTS_MAX {
            return Err(Malformed::Words);
        }
        let (word, after) = word(rest)?;
        arguments.push(word);
        rest = after.trim_ascii_start();
    }
    Ok(Some(Frame { arguments, length: end + 1 }))
}

/// The word that `text` begins with, and what comes after it.
fn word(text: &[u8]) -> Result<(Cow<'_, [u8]>, &[u8]), Malformed> {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    if !text[..end].iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        return Ok((Cow::Borrowed(&text[..end]), &text[end..]));
    }
    let mut word = Vec::new();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'"' | b'\'' => {
                let after = quoted(byte, after, &mut word)?;
                return match after.first() {
                    Some(next) if !next.is_ascii_whitespace() => Err(Malformed::Quotes),
                    _ => Ok((Cow::Owned(word), after)),
                };
            }
            blank if blank.is_ascii_whitespace() => break,
            other => word.push(other),
        }
        rest = after;
    }
    Ok((Cow::Owned(word), rest))
}

/// Appends what stands before the closing `quote` to `word`; returns what comes after that quote.
fn quoted<'a>(quote: u8, mut text: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], Malformed> {
    loop {
        text = match text {
            [byte, rest @ ..] if *byte == quote => return Ok(rest),
            [b'\\', b'x', high, low, rest @ ..] if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex(*high) << 4 | hex(*low));
                rest
            }
            [b'\\', escaped, rest @ ..] if quote == b'"' || *escaped == quote => {
                word.push(if quote == b'"' { unescape(*escaped) } else { *escaped });
                rest
            }
            [byte, rest @ ..] => {
                word.push(*byte);
                rest
            }
            [] => return Err(Malformed::Quotes),
        }
    }
}

fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        letter => letter.to_ascii_lowercase() - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_and_unquoted() {
        for (text, words) in [
            (&b"PING\r\n"[..], &[&b"PING"[..]][..]),
            (b"PING\n", &[b"PING"]),
            (b"  ACQUIRE \t vm  5 \r\n", &[b"ACQUIRE", b"vm", b"5"]),
            (b"\r\n", &[]),
            (b"ECHO \"a b\\x00\\x0A\\t\\q\\\"\" 'c\\'d\\n'\n", &[b"ECHO", b"a b\0\n\tq\"", b"c'd\\n"]),
            (b"ECHO pre\"fix ed\" \xff\0\n", &[b"ECHO", b"prefix ed", b"\xff\0"]),
            (b"ECHO '' \"\"\n", &[b"ECHO", b"", b""]),
        ] {
            let frame = line(text).expect("well-formed").expect("whole");
            assert_eq!(frame.length, text.len());
            assert_eq!(frame.arguments.iter().map(|word| &word[..]).collect::<Vec<_>>(), words, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_quote_must_end_its_word() {
        for text in [&b"ECHO \"a\n"[..], b"ECHO 'a\n", b"ECHO \"a\"b\n", b"ECHO 'a\"\n", b"ECHO \"a\\\n"] {
            assert_eq!(line(text), Err(Malformed::Quotes), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_line_is_bounded() {
        assert_eq!(line(&vec![b'x'; COMMAND_BYTES_MAX - 1]), Ok(None));
        assert_eq!(line(&vec![b'x'; COMMAND_BYTES_MAX]), Err(Malformed::LineTooLong));
        let words = |count: usize| [b"x ".repeat(count), b"\n".to_vec()].concat();
        assert_eq!(line(&words(ARGUMENTS_MAX)).expect("allowed").expect("whole").arguments.len(), ARGUMENTS_MAX);
        assert_eq!(line(&words(ARGUMENTS_MAX + 1)), Err(Malformed::Words));
    }
}
