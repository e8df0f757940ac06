//! A stream of frames between sites: never panics; a frame decodes only when all of it is there, and encodes back to the
//! same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_node::transport::frame::{Frame, decode, encode};
use std::convert::Infallible;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Ok(Some((frame, length))) = decode(rest) {
        assert_eq!(bytes(frame), rest[..length]);
        assert!((0..length).all(|cut| decode(&rest[..cut]) == Ok(None)));
        rest = &rest[length..];
    }
});

fn bytes(frame: Frame<'_>) -> Vec<u8> {
    let Ok(bytes) = encode(frame.kind, frame.sent, |header| Ok::<_, Infallible>([&header, frame.data].concat()));
    bytes
}
