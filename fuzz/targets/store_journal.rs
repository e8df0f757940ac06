//! The journal of the store's engine: checking it never panics; what it leaves of one is whole, and one that another
//! follows is never cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_store::{StoreError, journal};
use std::fs;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (first, second) = (folder.path().join("0.jnl"), folder.path().join("1.jnl"));
    let put = |path: &Path, bytes: &[u8]| fs::write(path, bytes).expect("writable");
    let get = || fs::read(&first).expect("readable");

    put(&first, data);
    if is_sound(journal::check(folder.path())) {
        let left = get();
        assert!(data.starts_with(&left));
        assert!(is_sound(journal::check(folder.path())) && get() == left);
    }
    put(&first, data);
    put(&second, &[]);
    is_sound(journal::check(folder.path()));
    assert!(get() == data);
});

fn is_sound(result: Result<(), StoreError>) -> bool {
    match result {
        Ok(()) => true,
        Err(StoreError::Corrupt { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}
