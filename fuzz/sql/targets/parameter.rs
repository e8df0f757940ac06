//! Parameters in either format: never panics; a value that was read is written, in either format, as bytes that read as
//! the same value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_sql::fuzzing::{Format, TYPES, read_parameter, written};

const FORMATS: [Format; 2] = [Format::Text, Format::Binary];

fuzz_target!(|data: &[u8]| {
    let Some(([kind, format], bytes)) = data.split_first_chunk() else { return };
    let ty = &TYPES[usize::from(*kind) % TYPES.len()];
    let Ok(value) = read_parameter(ty, Some(bytes), FORMATS[usize::from(format & 1)]) else { return };
    for format in FORMATS {
        let bytes = written(ty, &value, format).expect("a value that was read can be written");
        let reread = read_parameter(ty, bytes.as_deref(), format).expect("what was written can be read");
        // As text, since all NaNs are one.
        let text = |value| written(ty, value, Format::Text).expect("it was written before");
        assert_eq!(text(&reread), text(&value), "{ty} {format:?}");
    }
});
