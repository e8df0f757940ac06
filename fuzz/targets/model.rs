//! A saved forecasting model: never panics nor allocates more than it holds; one that is read forecasts finite numbers
//! and is written back byte by byte.
//!
//! The checksum is put right, since the fuzzer cannot: whoever can write the file can also write that.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_forecast::load;

fuzz_target!(|data: &[u8]| {
    let _ = load(data);
    let Some((body, _)) = data.split_last_chunk::<4>() else { return };
    let sealed = [body, &crc32fast::hash(body).to_le_bytes()].concat();
    let Ok(mut model) = load(&sealed) else { return };
    assert_eq!(load(&model.save()).expect("just saved").save(), model.save());
    for value in [0.0, 1e9, -5.0] {
        model.observe(value);
        assert!(model.predict(3).iter().all(|value| value.is_finite()));
    }
});
