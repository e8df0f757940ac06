//! The hello of a site: never panics, and what decodes encodes back to the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_node::frame::{self, HELLO_BYTES, Hello};

fuzz_target!(|data: &[u8]| {
    let Some(bytes) = data.first_chunk::<HELLO_BYTES>() else { return };
    if let Ok(hello) = Hello::decode(bytes) {
        assert_eq!(hello.encode(), *bytes);
        assert!((0..HELLO_BYTES).all(|length| frame::may_be_hello(&bytes[..length])));
    }
});
