//! The records that a quota site keeps on disk: never panics nor allocates more than they hold; a record takes all of its bytes
//! and encodes back to the same record.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_core::record::{decode, encode};
use rhumb_quota::account::Account;
use rhumb_quota::avantan::{Recent, any, majority};
use rhumb_quota::catalog::{Definition, State};
use rhumb_quota::records::{quota_key, quota_of};
use rhumb_quota::window::Answered;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;

fuzz_target!(|data: &[u8]| {
    check::<State>(data);
    check::<Definition>(data);
    check::<Account>(data);
    check::<majority::State>(data);
    check::<any::State>(data);
    check::<Recent<u64>>(data);
    check::<Recent<any::Instance>>(data);
    check::<Answered>(data);
    if let Some(quota) = quota_of(data) {
        assert_eq!(quota_key(quota), data);
    }
});

fn check<T: Serialize + DeserializeOwned + Debug + PartialEq>(data: &[u8]) {
    if let Some(record) = decode::<T>(data) {
        assert_eq!(decode::<T>(&[data, &[0]].concat()), None, "a byte too many");
        assert_eq!(decode(&encode(&record)), Some(record));
    }
}
