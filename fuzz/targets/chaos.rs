//! What `POST /chaos` takes: never panics; what is read is written back as JSON that says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_api::chaos::Chaos;

fuzz_target!(|data: &[u8]| {
    let Ok(chaos) = serde_json::from_slice::<Chaos>(data) else { return };
    let written = serde_json::to_string(&chaos).expect("plain data");
    let reread: Chaos = serde_json::from_str(&written).expect("what is written can be read");
    match (&chaos, &reread) {
        // JSON numbers are read to within one unit in the last place.
        (Chaos::Slow { extra_ms: once, .. }, Chaos::Slow { extra_ms: twice, .. }) => {
            assert!((once - twice).abs() <= once.abs() * f64::EPSILON, "{once:e} {twice:e}");
        }
        (Chaos::Load { percent, for_s: Some(once) }, Chaos::Load { percent: reread, for_s: Some(twice) }) => {
            assert!(percent == reread && (once - twice).abs() <= once.abs() * f64::EPSILON, "{once:e} {twice:e}");
        }
        _ => assert_eq!(chaos, reread),
    }
});
