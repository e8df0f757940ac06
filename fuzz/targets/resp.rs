//! What clients of the Redis protocol send: never panics; a command decodes only when all of it is there, stays below its
//! bounds, and written as an array of bulk strings it decodes to the same arguments.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_resp::decode::decode;
use rhumb_resp::frame::{ARGUMENTS_MAX, COMMAND_BYTES_MAX};

/// Beyond that, trying every prefix takes too long.
const PREFIXES_MAX: usize = 256;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Ok(Some(frame)) = decode(rest) {
        assert!((1..=rest.len()).contains(&frame.length));
        assert!(frame.arguments.len() <= ARGUMENTS_MAX);
        assert!(frame.arguments.iter().all(|argument| argument.len() <= COMMAND_BYTES_MAX));
        assert!((0..frame.length.min(PREFIXES_MAX)).all(|cut| decode(&rest[..cut]) == Ok(None)));
        let written = array(frame.arguments.iter().map(|argument| &argument[..]));
        // Written out, a long line of short words is longer than any command may be.
        if written.len() < COMMAND_BYTES_MAX {
            let again = decode(&written).expect("well-formed").expect("whole");
            assert_eq!(again.length, written.len());
            assert!(again.arguments.iter().eq(frame.arguments.iter()));
        }
        rest = &rest[frame.length..];
    }
});

fn array<'a>(arguments: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
