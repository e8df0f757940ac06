//! Entries of the catalog: never panics nor allocates more than they hold; what decodes encodes back to the same entry.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_sql::catalog::{Entry, decode_entry, encode_entry};

fuzz_target!(|data: &[u8]| {
    let Ok(entry) = decode_entry(data) else { return };
    let bytes = encode_entry(&entry).expect("what was decoded can be encoded").0;
    assert_eq!(decode_entry(&bytes).as_ref(), Ok(&entry));
    if let Entry::Table(table) = entry {
        table.arrow_schema();
    }
});
