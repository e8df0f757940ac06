//! A matrix of round-trip times in CSV: never panics; what is read is a whole matrix.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_core::{RegionId, RttMatrix};

fuzz_target!(|text: &str| {
    let Ok(matrix) = RttMatrix::parse("matrix.csv", text) else { return };
    let names: Vec<&str> = matrix.names().iter().map(String::as_str).collect();
    assert_eq!(matrix.restrict(&names).as_ref(), Some(&matrix));
    let regions = || (0..names.len() as u16).map(RegionId);
    for from in regions() {
        assert!(regions().any(|to| matrix.one_way(from, to) + matrix.one_way(to, from) == matrix.floor(from)));
    }
});
