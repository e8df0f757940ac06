//! The records that a site keeps on disk: never panics nor allocates more than they hold; a record takes all of its bytes
//! and encodes back to the same record.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_commit::replicated_commit::records::{LogRecord, PlacementRecord, PreparedRecord, VoteRecord, decode, encode};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;

fuzz_target!(|data: &[u8]| {
    check::<VoteRecord>(data);
    check::<PreparedRecord>(data);
    check::<LogRecord>(data);
    check::<PlacementRecord>(data);
});

fn check<T: Serialize + DeserializeOwned + Debug + PartialEq>(data: &[u8]) {
    if let Some(record) = decode::<T>(data) {
        assert_eq!(decode::<T>(&[data, &[0]].concat()), None, "a byte too many");
        assert_eq!(decode(&encode(&record)), Some(record));
    }
}
