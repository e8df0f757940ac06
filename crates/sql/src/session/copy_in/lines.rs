//! The data of a COPY cut into lines, and lines into fields.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::{CopyFormat, CopyKind};
use bytes::{Buf, BytesMut};

/// The longest line, in bytes.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// Cuts pieces of data into lines: at newlines, in CSV only at those outside quotes.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// The bytes of the buffer that hold no end of a line.
    scanned: usize,
    quote: Option<u8>,
    in_quotes: bool,
    ended: bool,
}

impl Lines {
    /// Lines of this format.
    pub fn new(format: &CopyFormat) -> Lines {
        let quote = (format.kind == CopyKind::Csv).then_some(format.quote);
        Lines { buffer: BytesMut::new(), scanned: 0, quote, in_quotes: false, ended: false }
    }

    /// Takes a piece.
    pub fn push(&mut self, data: &[u8]) {
        if !self.ended {
            self.buffer.extend_from_slice(data);
        }
    }

    /// The next whole line, without its end.
    pub fn take(&mut self) -> SqlResult<Option<BytesMut>> {
        while self.scanned < self.buffer.len() {
            let byte = self.buffer[self.scanned];
            self.in_quotes ^= self.quote == Some(byte);
            if byte == b'\n' && !self.in_quotes {
                let line = self.buffer.split_to(self.scanned);
                self.buffer.advance(1);
                self.scanned = 0;
                return Ok(self.whole(line));
            }
            self.scanned += 1;
        }
        if self.scanned > LINE_BYTES_MAX {
            return Err(SqlError::too_large(format!("a line of COPY is longer than {LINE_BYTES_MAX} bytes")));
        }
        Ok(None)
    }

    /// What is left after the last end of a line.
    pub fn last(&mut self) -> SqlResult<Option<BytesMut>> {
        if self.in_quotes {
            return Err(bad("unterminated CSV quoted field"));
        }
        self.scanned = 0;
        let line = std::mem::take(&mut self.buffer);
        Ok(if line.is_empty() { None } else { self.whole(line) })
    }

    fn whole(&mut self, mut line: BytesMut) -> Option<BytesMut> {
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        // Old clients mark the end of the data so.
        if line.as_ref() == b"\\." {
            self.ended = true;
            self.buffer.clear();
            return None;
        }
        Some(line)
    }
}

/// The fields of a line; `None` is NULL.
pub fn fields(format: &CopyFormat, line: &[u8]) -> SqlResult<Vec<Option<String>>> {
    if format.kind == CopyKind::Csv { csv_fields(format, line) } else { text_fields(format, line) }
}

fn bad(message: &str) -> SqlError {
    SqlError::new(SqlState::BadCopyFileFormat, message)
}

fn utf8(bytes: Vec<u8>) -> SqlResult<String> {
    let invalid = || SqlError::new(SqlState::CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\"");
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(invalid)
}

fn text_fields(format: &CopyFormat, line: &[u8]) -> SqlResult<Vec<Option<String>>> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let mut raw = Vec::new();
        let mut value = Vec::new();
        let mut ended = true;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte == format.delimiter {
                ended = false;
                break;
            }
            raw.push(byte);
            if byte != b'\\' {
                value.push(byte);
                continue;
            }
            let (escaped, tail) = unescape(rest);
            raw.extend_from_slice(&rest[..rest.len() - tail.len()]);
            value.push(escaped);
            rest = tail;
        }
        fields.push(if raw == format.null.as_bytes() { None } else { Some(utf8(value)?) });
        if ended {
            return Ok(fields);
        }
    }
}

/// The byte that an escape after its backslash means, and what follows it.
fn unescape(rest: &[u8]) -> (u8, &[u8]) {
    let digits = |base: u32, from: &[u8], most: usize| from.iter().take(most).take_while(|byte| char::from(**byte).is_digit(base)).count();
    let number =
        |base: u32, from: &[u8]| from.iter().fold(0u32, |value, byte| value * base + char::from(*byte).to_digit(base).unwrap_or(0)) as u8;
    match rest.first() {
        None => (b'\\', rest),
        Some(b'b') => (8, &rest[1..]),
        Some(b'f') => (12, &rest[1..]),
        Some(b'n') => (b'\n', &rest[1..]),
        Some(b'r') => (b'\r', &rest[1..]),
        Some(b't') => (b'\t', &rest[1..]),
        Some(b'v') => (11, &rest[1..]),
        Some(b'x') if digits(16, &rest[1..], 2) > 0 => {
            let count = digits(16, &rest[1..], 2);
            (number(16, &rest[1..=count]), &rest[1 + count..])
        }
        Some(b'0'..=b'7') => {
            let count = digits(8, rest, 3);
            (number(8, &rest[..count]), &rest[count..])
        }
        Some(&other) => (other, &rest[1..]),
    }
}

fn csv_fields(format: &CopyFormat, line: &[u8]) -> SqlResult<Vec<Option<String>>> {
    let mut fields = Vec::new();
    let mut position = 0;
    loop {
        let mut value = Vec::new();
        let mut quoted = false;
        let mut in_quotes = false;
        while position < line.len() {
            let byte = line[position];
            let next = line.get(position + 1).copied();
            position += 1;
            if in_quotes
                && byte == format.escape
                && (next == Some(format.quote) || next == Some(format.escape) && format.escape != format.quote)
            {
                value.extend(next);
                position += 1;
            } else if byte == format.quote {
                in_quotes = !in_quotes;
                quoted = true;
            } else if byte == format.delimiter && !in_quotes {
                position -= 1;
                break;
            } else {
                value.push(byte);
            }
        }
        if in_quotes {
            return Err(bad("unterminated CSV quoted field"));
        }
        let is_null = !quoted && value == format.null.as_bytes();
        fields.push(if is_null { None } else { Some(utf8(value)?) });
        if position >= line.len() {
            return Ok(fields);
        }
        position += 1;
        if position == line.len() {
            // The line ends with a delimiter: one more field, empty.
            fields.push(if format.null.is_empty() { None } else { Some(String::new()) });
            return Ok(fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> CopyFormat {
        CopyFormat { kind: CopyKind::Text, delimiter: b'\t', null: "\\N".into(), header: false, quote: b'"', escape: b'"' }
    }

    fn csv() -> CopyFormat {
        CopyFormat { kind: CopyKind::Csv, delimiter: b',', null: String::new(), ..text() }
    }

    fn some(values: &[&str]) -> Vec<Option<String>> {
        values.iter().map(|value| Some(value.to_string())).collect()
    }

    #[test]
    fn text_fields_are_unescaped() {
        let fields = |line: &[u8]| fields(&text(), line).expect("fields");
        assert_eq!(fields(b"a\\tb\t\\N\t\\\\N\t"), [Some("a\tb".into()), None, Some("\\N".into()), Some(String::new())]);
        assert_eq!(fields(b"\\x41\\102\\\tc"), some(&["AB\tc"]));
        assert_eq!(fields(b""), some(&[""]));
        assert!(super::fields(&text(), b"\xff").is_err());
    }

    #[test]
    fn csv_fields_are_unquoted_and_only_unquoted_ones_are_null() {
        let fields = |line: &[u8]| fields(&csv(), line).expect("fields");
        assert_eq!(fields(b"a,\"b,\"\"c\"\"\",,\"\""), [Some("a".into()), Some("b,\"c\"".into()), None, Some(String::new())]);
        assert_eq!(fields(b"a,"), [Some("a".into()), None]);
        assert!(super::fields(&csv(), b"\"a").is_err());
    }

    #[test]
    fn lines_are_cut_wherever_the_pieces_end() {
        let data = b"1,\"a\nb\"\r\n2,c\n3,d";
        for cut in 0..data.len() {
            let mut lines = Lines::new(&csv());
            let mut found = Vec::new();
            for piece in [&data[..cut], &data[cut..]] {
                lines.push(piece);
                while let Some(line) = lines.take().expect("a line") {
                    found.push(line.to_vec());
                }
            }
            found.extend(lines.last().expect("a line").map(|line| line.to_vec()));
            assert_eq!(found, [b"1,\"a\nb\"".to_vec(), b"2,c".to_vec(), b"3,d".to_vec()], "cut at {cut}");
        }
    }
}
