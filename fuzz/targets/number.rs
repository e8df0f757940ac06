//! The numbers that a site keeps on disk: never panics, and what decodes encodes back to the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_core::Batch;
use rhumb_core::actor::Op;
use rhumb_replicated_commit::records::Number;

fuzz_target!(|record: (&[u8], &[u8])| {
    if let Some((number, value)) = Number::decode(record.0, record.1) {
        let mut batch = Batch::new();
        number.put(&mut batch, value);
        let [Op::PutRecord { key, bytes, .. }] = &batch.ops[..] else { panic!("a number is one record") };
        assert_eq!((&key[..], &bytes[..]), record);
    }
});
