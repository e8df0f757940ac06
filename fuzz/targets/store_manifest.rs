//! The manifest of the store's engine, and the checksum that vouches for it: checking them never panics, and takes no
//! manifest with another byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_store::manifest;
use std::fs;

fuzz_target!(|input: (&[u8], &[u8], usize)| {
    let (current, manifest, place) = input;
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::write(folder.path().join("version"), []).expect("writable");
    for tree in ["0", "1"] {
        let tree = folder.path().join("keyspaces").join(tree);
        fs::create_dir_all(&tree).expect("a folder can be made");
        fs::write(tree.join("current"), current).expect("writable");
        fs::write(tree.join("v0"), manifest).expect("writable");
    }
    if manifest::check(folder.path()).is_ok() && !manifest.is_empty() {
        let mut harmed = manifest.to_vec();
        harmed[place % manifest.len()] ^= 1;
        fs::write(folder.path().join("keyspaces/1/v0"), harmed).expect("writable");
        manifest::check(folder.path()).expect_err("another byte");
    }
});
