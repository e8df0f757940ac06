//! The data of a binary COPY: never panics, and means the same wherever its pieces end.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rhumb_sql::fuzzing::Tuples;

fuzz_target!(|data: &[u8]| {
    let Some((cut, data)) = data.split_first() else { return };
    let cut = usize::from(*cut).min(data.len());
    assert_eq!(rows([&data[..cut], &data[cut..]]), rows([data, &[]]));
});

/// The rows of the data, and whether an error ended them.
fn rows(pieces: [&[u8]; 2]) -> (Vec<Vec<Option<Bytes>>>, bool) {
    let mut tuples = Tuples::default();
    let mut rows = Vec::new();
    for piece in pieces {
        tuples.push(piece);
        loop {
            match tuples.take() {
                Ok(Some(row)) => rows.push(row),
                Ok(None) => break,
                Err(_) => return (rows, true),
            }
        }
    }
    let cut_short = tuples.end().is_err();
    (rows, cut_short)
}
