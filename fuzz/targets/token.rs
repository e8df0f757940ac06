//! A join token as a person types it, and what is in one: never panics; a token is written in one way and read back the same, and no other text of its
//! length is it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_security::token::{TOKEN_CHARS_MAX, Token};

fuzz_target!(|data: &[u8]| {
    if let Some(token) = std::str::from_utf8(data).ok().and_then(|text| text.parse::<Token>().ok()) {
        assert_eq!(token.to_string().parse(), Ok(token));
    }
    // The sum in a text keeps the fuzzer out, so that what it guards is tried by itself.
    if let Ok(token) = postcard::from_bytes::<Token>(data) {
        let text = token.to_string();
        assert_eq!(text.len() <= TOKEN_CHARS_MAX, text.parse() == Ok(token));
    }
});
