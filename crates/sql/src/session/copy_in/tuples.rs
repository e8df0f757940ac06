//! The data of a binary COPY cut into rows.
//!
//! ```text
//! "PGCOPY\n\xff\r\n\0" | flags: u32 | extension: u32 bytes | rows … | -1: i16
//! row: count: i16 | count × (length: i32, -1 for NULL | value)
//! ```

use super::lines::LINE_BYTES_MAX;
use crate::error::{SqlError, SqlResult, SqlState};
use bytes::{Buf, Bytes, BytesMut};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
const END: i16 = -1;

/// Cuts pieces of data into rows.
#[derive(Debug, Default)]
pub struct Tuples {
    buffer: BytesMut,
    header_read: bool,
    ended: bool,
}

impl Tuples {
    /// Takes a piece.
    pub fn push(&mut self, data: &[u8]) {
        if !self.ended {
            self.buffer.extend_from_slice(data);
        }
    }

    /// The fields of the next whole row; `None` in a field is NULL.
    pub fn take(&mut self) -> SqlResult<Option<Vec<Option<Bytes>>>> {
        if self.ended || !self.header_read && !self.header()? {
            return Ok(None);
        }
        let Some(bytes) = whole(&self.buffer)? else {
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(SqlError::too_large(format!("a row of COPY is longer than {LINE_BYTES_MAX} bytes")));
            }
            return Ok(None);
        };
        let mut row = self.buffer.split_to(bytes).freeze();
        let count = row.get_i16();
        if count == END {
            self.ended = true;
            self.buffer.clear();
            return Ok(None);
        }
        let field = |_| usize::try_from(row.get_i32()).ok().map(|length| row.split_to(length));
        Ok(Some((0..count).map(field).collect()))
    }

    /// Refuses data that ends within a row.
    pub fn end(&self) -> SqlResult<()> {
        if self.ended || self.buffer.is_empty() && self.header_read { Ok(()) } else { Err(bad("unexpected end of COPY data")) }
    }

    /// Reads the header; false if it is not all there.
    fn header(&mut self) -> SqlResult<bool> {
        let known = self.buffer.len().min(SIGNATURE.len());
        if self.buffer[..known] != SIGNATURE[..known] {
            return Err(bad("COPY file signature not recognized"));
        }
        if self.buffer.len() < HEADER_BYTES {
            return Ok(false);
        }
        let mut lengths = &self.buffer[SIGNATURE.len()..HEADER_BYTES];
        let (flags, extension) = (lengths.get_u32(), lengths.get_u32() as usize);
        if flags != 0 || extension > LINE_BYTES_MAX {
            return Err(bad("unrecognized flags or extension in COPY file header"));
        }
        if self.buffer.len() < HEADER_BYTES + extension {
            return Ok(false);
        }
        self.buffer.advance(HEADER_BYTES + extension);
        self.header_read = true;
        Ok(true)
    }
}

fn bad(message: &str) -> SqlError {
    SqlError::new(SqlState::BadCopyFileFormat, message)
}

/// The bytes of the row at the front of the buffer, if it is whole.
fn whole(buffer: &[u8]) -> SqlResult<Option<usize>> {
    let Some(count) = buffer.first_chunk().map(|bytes| i16::from_be_bytes(*bytes)) else { return Ok(None) };
    if count < END {
        return Err(bad("invalid number of fields in COPY data"));
    }
    let mut position = 2;
    for _ in 0..count.max(0) {
        let Some(length) = buffer.get(position..).and_then(<[u8]>::first_chunk).map(|bytes| i32::from_be_bytes(*bytes)) else {
            return Ok(None);
        };
        position += 4;
        match usize::try_from(length) {
            Ok(length) if length <= LINE_BYTES_MAX => position += length,
            Ok(_) => return Err(SqlError::too_large(format!("a field of COPY is longer than {LINE_BYTES_MAX} bytes"))),
            Err(_) if length == -1 => {}
            Err(_) => return Err(bad("invalid field size in COPY data")),
        }
    }
    Ok((position <= buffer.len()).then_some(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_wherever_the_pieces_end() {
        let data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\x01\0\0\0\0\xff\xff";
        for cut in 0..data.len() {
            let mut tuples = Tuples::default();
            let mut rows = Vec::new();
            for piece in [&data[..cut], &data[cut..]] {
                tuples.push(piece);
                while let Some(row) = tuples.take().expect("a row") {
                    rows.push(row);
                }
            }
            assert_eq!(rows, [vec![Some(Bytes::from_static(b"a")), None], vec![Some(Bytes::new())]], "cut at {cut}");
            assert_eq!(tuples.end(), Ok(()));
        }
    }

    #[test]
    fn malformed_data_is_refused() {
        let refused = |data: &[u8]| {
            let mut tuples = Tuples::default();
            tuples.push(data);
            tuples.take().and_then(|_| tuples.end()).is_err()
        };
        assert!(refused(b"1\ta\n"));
        assert!(refused(b"PGCOPY\n\xff\r\n\0\0\0\0\x01\0\0\0\0"));
        assert!(refused(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x05a"));
        assert!(refused(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\xff\xf0"));
        assert!(refused(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01\xff\xff\xff\xfe"));
    }
}
