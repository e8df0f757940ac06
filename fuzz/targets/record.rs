//! The records that a site keeps on disk, of any commit protocol: never panics nor allocates more than they hold; a record takes all of its bytes
//! and encodes back to the same record.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_catenae::message::{Entry, Progress, Standing};
use rhumb_catenae::records as catenae;
use rhumb_core::record::{decode, encode};
use rhumb_quad::{Configuration, records as quad};
use rhumb_replicated_commit::records::{LogRecord, PlacementRecord, PreparedRecord, VoteRecord};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;

fuzz_target!(|data: &[u8]| {
    check::<VoteRecord>(data);
    check::<PreparedRecord>(data);
    check::<LogRecord>(data);
    check::<PlacementRecord>(data);
    check::<(Standing, Entry)>(data);
    check::<Progress>(data);
    check::<quad::PreparedRecord>(data);
    check::<quad::DecisionRecord>(data);
    check::<quad::CommitRecord>(data);
    check::<quad::AcceptorRecord>(data);
    check::<quad::Base>(data);
    check::<Configuration>(data);
    if let Some((epoch, key)) = quad::read_difference(data) {
        assert_eq!(quad::difference_key(epoch, &key), data);
    }
    if let Some((stream, index)) = catenae::decode_entry_key(data) {
        assert_eq!(catenae::entry_key(stream, index), data);
    }
    let (key, bytes) = data.split_at(data.len().min(2));
    if let Some((stream, ballot)) = catenae::decode_promise(key, bytes) {
        assert_eq!(catenae::decode_promise(&stream.to_be_bytes(), &encode(&ballot)), Some((stream, ballot)));
    }
});

fn check<T: Serialize + DeserializeOwned + Debug + PartialEq>(data: &[u8]) {
    if let Some(record) = decode::<T>(data) {
        assert_eq!(decode::<T>(&[data, &[0]].concat()), None, "a byte too many");
        assert_eq!(decode(&encode(&record)), Some(record));
    }
}
