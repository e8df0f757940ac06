//! What a client sends: an opening and then messages. Never panics, and its memory is bounded by what was sent.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_sql::wire::frame::FrameReader;
use tokio::runtime::Builder;

fuzz_target!(|data: &[u8]| {
    Builder::new_current_thread().build().expect("a runtime").block_on(async {
        let mut reader = FrameReader::new(data);
        if reader.opening().await.is_err() {
            // A client that is connected already.
            reader = FrameReader::new(data);
        }
        while let Ok(Some(_)) = reader.next().await {}
    });
});
