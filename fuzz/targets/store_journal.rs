//! The journal of the store's engine: reading it never panics; what a crash left of it is read the same again after it was gone on with, and
//! damage is never mended by a refusal.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rhumb_store::{StoreError, Write, journal};
use std::fs;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (first, second) = (folder.path().join("1.jnl"), folder.path().join("2.jnl"));
    let put = |path: &Path, bytes: &[u8]| fs::write(path, bytes).expect("writable");

    put(&first, data);
    if let Some((mut read, mut recovered)) = recovered(folder.path()) {
        let next = vec![Write::Put { key: Bytes::from_static(b"next"), value: Bytes::from_static(b"value") }];
        recovered.journal.append(Some(None), &next).and_then(|()| recovered.journal.sync()).expect("writable");
        drop(recovered);
        read.push(next);
        assert!(self::recovered(folder.path()).is_some_and(|(again, _)| again == read));
    } else {
        assert!(fs::read(&first).expect("readable") == data);
    }
    put(&first, data);
    put(&second, data);
    is_sound(journal::check(folder.path(), 0));
    assert!(fs::read(&first).expect("readable") == data);
});

fn recovered(folder: &Path) -> Option<(Vec<Vec<Write>>, journal::Recovered)> {
    let mut batches = Vec::new();
    let recovered = is_sound(journal::recover(folder, 0, |batch| batches.push(batch)))?;
    Some((batches, recovered))
}

fn is_sound<T>(result: Result<T, StoreError>) -> Option<T> {
    match result {
        Ok(sound) => Some(sound),
        Err(StoreError::Corrupt { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}
