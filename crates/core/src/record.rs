//! Records as bytes: what a protocol keeps on disk besides rows. The encoding is postcard's; the version of the data folder covers it.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Encodes a record.
///
/// # Panics
///
/// If `record` is no plain data: a sequence without a length, or a serializer of its own that fails.
pub fn encode<T: Serialize>(record: &T) -> Bytes {
    postcard::to_stdvec(record).expect("records are plain data").into()
}

/// Bytes that [`encode`] returns. Nothing is encoded, and nothing allocated.
///
/// # Panics
///
/// As [`encode`] does.
pub fn encoded_bytes<T: Serialize>(record: &T) -> usize {
    postcard::experimental::serialized_size(record).expect("records are plain data")
}

/// Decodes a record, which takes all of `bytes`; none if it does not, or is none.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((record, [])) => Some(record),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SiteId, Timestamp, TxnId};

    #[test]
    fn a_record_takes_all_of_its_bytes() {
        let txn = TxnId { began: Timestamp::from_bits(300), gateway: SiteId::new(2, 1) };
        let bytes = encode(&txn);
        assert_eq!(decode(&bytes), Some(txn));
        assert_eq!(encoded_bytes(&txn), bytes.len());
        assert_eq!(decode::<TxnId>(&bytes[..bytes.len() - 1]), None, "a byte too few");
        assert_eq!(decode::<TxnId>(&[&bytes[..], &[0]].concat()), None, "a byte too many");
    }
}
