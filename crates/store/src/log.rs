//! A write-ahead log as bytes: one checksummed record per batch of writes.
//!
//! ```text
//!   length:4 (little-endian, of the body) · CRC-32 of the body:4 · body (postcard of the writes)
//! ```
//!
//! A record is whole or it is nothing: a reader stops at the first that is cut short or fails its checksum.

use crate::engine::Write;

const LENGTH_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;

/// Appends `writes` as one record.
pub fn append(log: &mut Vec<u8>, writes: &[Write]) {
    let body = postcard::to_stdvec(writes).expect("writes always have an encoding");
    let length = u32::try_from(body.len()).expect("a batch is far below 4 GiB");
    log.extend_from_slice(&length.to_le_bytes());
    log.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    log.extend_from_slice(&body);
}

/// The first record of `log` and the bytes behind it; `None` if it is not whole.
pub fn next(log: &[u8]) -> Option<(Vec<Write>, &[u8])> {
    let (length, rest) = log.split_first_chunk::<LENGTH_BYTES>()?;
    let (checksum, rest) = rest.split_first_chunk::<CHECKSUM_BYTES>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return None;
    }
    Some((postcard::from_bytes(body).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn put(key: &'static str) -> Vec<Write> {
        vec![
            Write::Put { key: Bytes::from_static(key.as_bytes()), value: Bytes::from_static(b"value") },
            Write::Remove { key: Bytes::new() },
        ]
    }

    #[test]
    fn records_come_back_in_order() {
        let mut log = Vec::new();
        append(&mut log, &put("a"));
        append(&mut log, &put("b"));
        let (first, rest) = next(&log).expect("whole");
        let (second, rest) = next(rest).expect("whole");
        assert_eq!((first, second, rest), (put("a"), put("b"), &[][..]));
    }

    #[test]
    fn a_record_cut_short_or_changed_anywhere_is_nothing() {
        let mut log = Vec::new();
        append(&mut log, &put("a"));
        for length in 0..log.len() {
            assert_eq!(next(&log[..length]), None, "cut to {length} bytes");
        }
        for index in 0..log.len() {
            let mut changed = log.clone();
            changed[index] ^= 1;
            assert_eq!(next(&changed), None, "byte {index} changed");
        }
        assert_eq!(next(&[0; 64]), None, "zeroes are no record");
    }
}
