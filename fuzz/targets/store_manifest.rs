//! The list of table files of the store's engine, and the checksum that vouches for it: checking them never panics, and takes no
//! manifest that was changed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_store::disk::manifest;
use std::fs;

/// Number, checksum and kind of checksum.
const CURRENT_BYTES: usize = 25;

fuzz_target!(|data: &[u8]| {
    let (current, manifest) = data.split_at(data.len().min(CURRENT_BYTES));
    let number = current.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::write(folder.path().join("current"), current).expect("writable");
    fs::write(folder.path().join(format!("v{number}")), manifest).expect("writable");
    if manifest::check(folder.path()).is_err() {
        return;
    }
    let longer = [manifest, &[0]].concat();
    let shorter = manifest.split_last().map_or(&[1][..], |(_, rest)| rest).to_vec();
    for changed in [longer, shorter] {
        fs::write(folder.path().join(format!("v{number}")), changed).expect("writable");
        manifest::check(folder.path()).expect_err("its checksum is that of other bytes");
    }
});
