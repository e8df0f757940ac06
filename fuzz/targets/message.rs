//! A message between sites, of any commit protocol or of quotas: never panics nor allocates more than it holds; it can be printed, and
//! encodes back to the same message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_core::Body;
use rhumb_node::runtime::{Wire, decode_message};
use rhumb_quad::Stamped;
use rhumb_quota::message as quota;
use std::fmt::{Debug, Display};

fn check<N, P>(data: &[u8])
where
    N: Wire + Debug + Display + PartialEq,
    P: Wire + Debug + Display + PartialEq,
{
    if let Ok(message) = decode_message::<N, P>(data) {
        let _ = message.to_string();
        let bytes = postcard::to_stdvec(&message).expect("messages are plain data");
        assert_eq!(decode_message(&bytes), Ok::<Body<N, P>, _>(message));
    }
}

fuzz_target!(|data: &[u8]| {
    check::<rhumb_replicated_commit::Note, rhumb_replicated_commit::Promise>(data);
    check::<rhumb_catenae::Note, rhumb_catenae::Promise>(data);
    check::<Stamped<rhumb_quad::Note>, Stamped<rhumb_quad::Promise>>(data);
    check::<quota::Note, quota::Promise>(data);
});
