//! A series of demand in CSV: never panics; what is read are finite numbers, two or more.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_forecast::{Series, VALUE_MAX};

fuzz_target!(|text: &str| {
    for column in [None, Some("vms")] {
        let Ok(series) = Series::parse("demand.csv", text, column) else { continue };
        assert!(series.values().len() >= 2 && series.values().iter().all(|value| value.abs() <= VALUE_MAX));
        let (train, test) = series.split(0.8);
        assert!(!train.is_empty() && !test.is_empty());
        assert_eq!(series.shifted(series.values().len()), series);
    }
});
