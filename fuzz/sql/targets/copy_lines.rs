//! The data of a COPY in text or CSV: never panics, and means the same wherever its pieces end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_sql::fuzzing::{Lines, fields};
use rhumb_sql::parser::{CopyFormat, CopyKind};

fuzz_target!(|data: &[u8]| {
    let Some(([options, cut], data)) = data.split_first_chunk() else { return };
    let text = CopyFormat { kind: CopyKind::Text, delimiter: b'\t', null: "\\N".into(), header: false, quote: b'"', escape: b'"' };
    let format = match options % 3 {
        0 => text,
        1 => CopyFormat { kind: CopyKind::Csv, delimiter: b',', null: String::new(), ..text },
        _ => CopyFormat { kind: CopyKind::Csv, delimiter: b';', null: "NULL".into(), quote: b'\'', escape: b'\\', ..text },
    };
    let cut = usize::from(*cut).min(data.len());
    assert_eq!(rows(&format, [&data[..cut], &data[cut..]]), rows(&format, [data, &[]]));
});

/// The rows of the data, and whether an error ended them.
fn rows(format: &CopyFormat, pieces: [&[u8]; 2]) -> (Vec<Vec<Option<String>>>, bool) {
    let mut lines = Lines::new(format);
    let mut rows = Vec::new();
    for piece in pieces {
        lines.push(piece);
        loop {
            match lines.take().and_then(|line| line.map(|line| fields(format, &line)).transpose()) {
                Ok(Some(row)) => rows.push(row),
                Ok(None) => break,
                Err(_) => return (rows, true),
            }
        }
    }
    match lines.last().and_then(|line| line.map(|line| fields(format, &line)).transpose()) {
        Ok(row) => (rows.into_iter().chain(row).collect(), false),
        Err(_) => (rows, true),
    }
}
