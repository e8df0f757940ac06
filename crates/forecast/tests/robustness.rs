//! What no input may do: bad series and bad bytes are refused with a reason, and no model panics or forgets.

use proptest::prelude::*;
use rhumb_forecast::{EPOCHS_MAX, Forecaster, LoadError, LstmConfig, Order, Series, Spec, TrainError, VALUE_MAX, load};

fn specs() -> Vec<Spec> {
    let lstm = LstmConfig { hidden: 3, window: 4, passes: 1, ..LstmConfig::with_periods(&[6], 1) };
    vec![
        Spec::RandomWalk,
        Spec::MovingAverage(3),
        Spec::Exponential,
        Spec::SeasonalNaive(6),
        Spec::Arima(Order { p: 2, d: 1, q: 1, season: None }),
        Spec::Arima(Order { p: 1, d: 0, q: 1, season: Some(6) }),
        Spec::Lstm(lstm),
    ]
}

fn trained(spec: &Spec) -> Box<dyn Forecaster> {
    let series: Vec<f64> = (0..200).map(|epoch| f64::from(epoch * 37 % 101)).collect();
    let mut model = spec.build();
    model.train(&series, &mut |_| ()).expect("long enough");
    model
}

#[track_caller]
fn refused(text: &str, column: Option<&str>, message: &str) {
    assert_eq!(Series::parse("demand.csv", text, column).map_err(|error| error.to_string()), Err(message.to_owned()));
}

#[test]
fn a_bad_series_is_refused_with_the_line() {
    refused("", None, "demand.csv: empty; expected a line that names the columns and a line per epoch");
    refused("# nothing\n", None, "demand.csv: empty; expected a line that names the columns and a line per epoch");
    refused("t,v\n", None, "demand.csv: 0 epochs; a series needs at least 2");
    refused("t,v\n1,2\n", None, "demand.csv: 1 epochs; a series needs at least 2");
    refused("t,v\n1,2\n2\n", None, "demand.csv, line 3: 1 cells, expected 2");
    refused("t,v\n1,2\n2,NaN\n", None, "demand.csv, line 3, column `v`: `NaN` is not a number of at most 1e15");
    refused("# a\nt,v\n\n1,inf\n", None, "demand.csv, line 4, column `v`: `inf` is not a number of at most 1e15");
    refused("t,v\n1,\n", None, "demand.csv, line 2, column `v`: `` is not a number of at most 1e15");
    refused("t,v\n1,2e15\n", None, "demand.csv, line 2, column `v`: `2e15` is not a number of at most 1e15");
    refused("t,v\n1,2\n", Some("w"), "demand.csv: no column `w`; there are `t`, `v`");
    refused("t,v,w\n1,2,3\n", None, "demand.csv: which column is the series? Name one of `t`, `v`, `w`");
}

#[test]
fn a_good_series_is_read() {
    let read = |text, column| Series::parse("demand.csv", text, column).expect("good").values().to_vec();
    assert_eq!(read("v\n1\n2\n", None), [1.0, 2.0]);
    assert_eq!(read("# by me\nt,v\r\n0, 1.5\r\n1,-2e3\r\n", None), [1.5, -2000.0]);
    assert_eq!(read("t,v,w\n0,1,2\n1,3,4\n", Some("w")), [2.0, 4.0]);
}

#[test]
fn a_series_is_split_and_shifted() {
    let series = Series::parse("demand", "v\n1\n2\n3\n4\n5\n", None).expect("good");
    assert_eq!(series.split(0.8), (&[1.0, 2.0, 3.0, 4.0][..], &[5.0][..]));
    assert_eq!(series.split(2.0).1, [5.0]);
    assert_eq!(series.split(-1.0).0, [1.0]);
    assert_eq!(series.shifted(7).values(), [3.0, 4.0, 5.0, 1.0, 2.0]);
}

#[test]
fn a_series_too_short_or_out_of_range_is_refused_and_changes_nothing() {
    for spec in specs() {
        let mut model = trained(&spec);
        let before = model.save();
        assert!(matches!(model.train(&[], &mut |_| ()), Err(TrainError::TooShort { found: 0, .. })), "{}", model.name());
        let error = |series: &[f64]| spec.build().train(series, &mut |_| ()).map_err(|error| error.to_string());
        assert_eq!(error(&[1.0, f64::NAN]), Err("value 2 of the series is NaN, not a number of at most 1e15".to_owned()));
        assert_eq!(error(&[-2e15, 1.0]), Err("value 1 of the series is -2000000000000000, not a number of at most 1e15".to_owned()));
        assert_eq!(model.save(), before);
    }
}

#[test]
fn the_shortest_series_that_is_accepted_is_enough() {
    for spec in specs() {
        let mut model = spec.build();
        let Err(TrainError::TooShort { needed, .. }) = model.train(&[], &mut |_| ()) else { panic!("{} needs nothing", model.name()) };
        let series: Vec<f64> = (0..needed).map(|epoch| (epoch % 7) as f64).collect();
        assert_eq!(model.train(&series, &mut |_| ()), Ok(()), "{}", model.name());
        assert_eq!(model.predict(2).len(), 2);
    }
}

#[test]
fn a_saved_model_goes_on_where_it_stood() {
    for spec in specs() {
        let mut model = trained(&spec);
        let mut loaded = load(&model.save()).expect("just saved");
        assert_eq!(loaded.name(), model.name());
        for value in [3.0, 50.0, 12.0] {
            model.observe(value);
            loaded.observe(value);
            assert_eq!(loaded.predict(10), model.predict(10), "{}", model.name());
        }
        assert_eq!(loaded.save(), model.save());
    }
}

#[test]
fn bytes_that_are_no_model_are_refused() {
    let good = trained(&Spec::RandomWalk).save();
    let error = |bytes: &[u8]| load(bytes).err();
    assert_eq!(error(b""), Some(LoadError::NotAModel));
    assert_eq!(error(b"PK\x03\x04"), Some(LoadError::NotAModel));
    let mut newer = good.clone();
    newer[4] = 2;
    assert_eq!(error(&newer), Some(LoadError::Version { found: 2 }));
    for cut in 6..good.len() {
        assert_eq!(error(&good[..cut]), Some(LoadError::Checksum), "cut to {cut}");
    }
    for at in 6..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        assert_eq!(error(&flipped), Some(LoadError::Checksum), "flipped {at}");
    }
}

#[test]
fn the_largest_values_and_the_longest_forecasts_stay_finite() {
    for spec in specs() {
        let mut model = trained(&spec);
        for value in [f64::MAX, -f64::MAX, VALUE_MAX, 0.0, f64::MIN_POSITIVE] {
            model.observe(value);
            assert!(model.predict(3).iter().all(|value| value.is_finite()), "{}", model.name());
        }
        let forecast = model.predict(usize::MAX);
        assert_eq!(forecast.len(), EPOCHS_MAX, "{}", model.name());
        assert!(forecast.iter().all(|value| value.is_finite()), "{}", model.name());
    }
}

/// The bytes with a body changed at will and a checksum that fits.
fn forged(bytes: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut body = bytes[..bytes.len() - 4].to_vec();
    let header = 6;
    for (at, value) in changes {
        let at = header + at % (body.len() - header);
        body[at] = *value;
    }
    let checksum = crc32fast::hash(&body);
    body.extend(checksum.to_le_bytes());
    body
}

proptest! {
    #[test]
    fn no_text_panics_the_reader(text in "[a-c0-9,.\n\"#eN-]{0,60}") {
        let _ = Series::parse("demand", &text, None);
    }

    #[test]
    fn no_forged_model_panics(which in 0..7_usize, changes in prop::collection::vec((0..400_usize, any::<u8>()), 1..4)) {
        let bytes = trained(&specs()[which]).save();
        if let Ok(mut model) = load(&forged(&bytes, &changes)) {
            for value in [5.0, 9.0] {
                model.observe(value);
                prop_assert!(model.predict(3).iter().all(|value| value.is_finite()));
            }
        }
    }
}
