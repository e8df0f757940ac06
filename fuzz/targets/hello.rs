//! The greeting and the hello of a site: never panic, and what decodes encodes back to the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_node::secret::Secret;
use rhumb_node::transport::frame::{self, GREETING_BYTES, Greeting, Greetings, HELLO_BYTES, Hello, NONCE_BYTES, Side};

fuzz_target!(|data: &[u8]| {
    let Some((bytes, rest)) = data.split_first_chunk::<GREETING_BYTES>() else { return };
    let Ok(greeting) = Greeting::decode(bytes) else { return };
    assert_eq!(greeting.encode(), *bytes);
    assert!((0..GREETING_BYTES).all(|length| frame::may_be_greeting(&bytes[..length])));
    let Some(bytes) = rest.first_chunk::<HELLO_BYTES>() else { return };
    let greetings = Greetings { connecting: greeting, accepting: Greeting { nonce: [0; NONCE_BYTES] } };
    let secret = Secret::of([0; 32]);
    if let Ok(hello) = Hello::open(bytes, &secret, &greetings, Side::Connecting) {
        assert_eq!(hello.seal(&secret, &greetings, Side::Connecting), *bytes);
    }
});
