//! A message between sites: never panics nor allocates more than it holds; it can be printed, and encodes back to the
//! same message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_commit::replicated_commit::{Note, Promise};
use rhumb_node::runtime::decode_message;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = decode_message::<Note, Promise>(data) {
        let _ = message.to_string();
        let bytes = postcard::to_stdvec(&message).expect("messages are plain data");
        assert_eq!(decode_message(&bytes), Ok(message));
    }
});
