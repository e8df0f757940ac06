//! Every model on series whose next value is known.

use rhumb_forecast::{Forecaster, LstmConfig, Order, Spec, evaluate};
use std::f64::consts::TAU;

const PERIOD: usize = 24;

fn sine(epochs: usize) -> Vec<f64> {
    (0..epochs).map(|epoch| 100.0 + 50.0 * (TAU * epoch as f64 / PERIOD as f64).sin()).collect()
}

fn trend(epochs: usize) -> Vec<f64> {
    (0..epochs).map(|epoch| 10.0 + 3.0 * epoch as f64).collect()
}

fn small_lstm(passes: usize) -> Spec {
    let config = LstmConfig::with_periods(&[PERIOD], 7);
    Spec::Lstm(LstmConfig { hidden: 8, window: 12, passes, ..config })
}

fn arima(p: usize, d: usize, q: usize, season: Option<usize>) -> Spec {
    Spec::Arima(Order { p, d, q, season })
}

fn all() -> Vec<Spec> {
    vec![
        Spec::RandomWalk,
        Spec::MovingAverage(4),
        Spec::Exponential,
        Spec::SeasonalNaive(PERIOD),
        arima(2, 1, 1, None),
        arima(1, 0, 1, Some(PERIOD)),
        small_lstm(2),
    ]
}

fn trained(spec: &Spec, series: &[f64]) -> Box<dyn Forecaster> {
    let mut model = spec.build();
    model.train(series, &mut |_| ()).expect("long enough");
    model
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64], within: f64) {
    assert_eq!(found.len(), expected.len());
    let near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= within);
    assert!(near, "{found:?}, expected {expected:?}");
}

#[test]
fn a_model_that_saw_nothing_says_nothing_and_then_repeats_the_last_value() {
    for spec in all() {
        let mut model = spec.build();
        assert_eq!(model.predict(3), [], "{}", model.name());
        model.observe(42.0);
        assert_eq!(model.predict(3), [42.0; 3], "{}", model.name());
    }
}

#[test]
fn every_model_forecasts_a_constant() {
    for spec in all() {
        let model = trained(&spec, &[250.0; 300]);
        assert_near(&model.predict(5), &[250.0; 5], 1e-6);
    }
}

#[test]
fn a_trend_lags_in_the_averages_and_not_in_arima() {
    let series = trend(300);
    assert_eq!(trained(&Spec::RandomWalk, &series).predict(2), [907.0, 907.0]);
    assert_eq!(trained(&Spec::MovingAverage(4), &series).predict(1), [902.5]);
    assert_eq!(trained(&Spec::SeasonalNaive(PERIOD), &series).predict(1), [838.0]);
    assert_near(&trained(&arima(2, 1, 1, None), &series).predict(3), &[910.0, 913.0, 916.0], 1e-3);
    assert_near(&trained(&arima(0, 2, 0, None), &series).predict(3), &[910.0, 913.0, 916.0], 1e-6);
    assert_near(&trained(&arima(1, 0, 1, Some(PERIOD)), &series).predict(2), &[910.0, 913.0], 1e-3);
}

#[test]
fn a_sine_is_its_last_period_and_two_past_values() {
    let series = sine(400 + 30);
    let (past, future) = series.split_at(400);
    assert_near(&trained(&Spec::SeasonalNaive(PERIOD), past).predict(30), future, 1e-9);
    assert_near(&trained(&arima(0, 0, 0, Some(PERIOD)), past).predict(30), future, 1e-9);
    // x(t) = 2 cos(2π/24) x(t−1) − x(t−2), but for the mean.
    assert_near(&trained(&arima(2, 0, 0, None), past).predict(30), future, 0.05);
}

#[test]
fn an_lstm_learns_what_a_random_walk_cannot_know() {
    let series = sine(600);
    let (train, test) = series.split_at(500);
    let errors = evaluate(small_lstm(15).build().as_mut(), train, test, &mut |_| ()).expect("long enough");
    assert_eq!(errors.epochs, 100);
    assert!(errors.share() < 0.1, "{errors:?}");
}

#[test]
fn an_lstm_without_periods_learns_a_sine_from_its_values_alone() {
    let series = sine(600);
    let (train, test) = series.split_at(500);
    let config = LstmConfig { hidden: 8, window: 12, passes: 15, ..LstmConfig::with_periods(&[], 7) };
    let errors = evaluate(Spec::Lstm(config).build().as_mut(), train, test, &mut |_| ()).expect("long enough");
    assert!(errors.share() < 0.35, "{errors:?}");
}

#[test]
fn an_lstm_that_is_not_taught_is_a_random_walk() {
    let series = sine(600);
    let (train, test) = series.split_at(500);
    let Spec::Lstm(config) = small_lstm(0) else { unreachable!() };
    let spec = Spec::Lstm(LstmConfig { refresh: 0.0, ..config });
    let errors = evaluate(spec.build().as_mut(), train, test, &mut |_| ()).expect("long enough");
    assert!((errors.share() - 1.0).abs() < 1e-9, "{errors:?}");
}

#[test]
fn an_lstm_follows_demand_that_changes_its_ways() {
    // From now on the sine swings twice as often.
    let changed: Vec<f64> = (0..600).map(|epoch| 100.0 + 50.0 * (2.0 * TAU * epoch as f64 / PERIOD as f64).sin()).collect();
    let share = |refresh| {
        let config = LstmConfig { hidden: 8, window: 12, passes: 15, refresh, ..LstmConfig::with_periods(&[], 7) };
        evaluate(Spec::Lstm(config).build().as_mut(), &sine(480), &changed, &mut |_| ()).expect("long enough").share()
    };
    let (left_alone, refreshed) = (share(0.0), share(0.01));
    assert!(refreshed < 0.7 * left_alone, "{refreshed} refreshed, {left_alone} left alone");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let series = sine(300);
    let bytes = |seed| {
        let Spec::Lstm(config) = small_lstm(2) else { unreachable!() };
        trained(&Spec::Lstm(LstmConfig { seed, ..config }), &series).save()
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn training_again_forgets_what_was_before() {
    for spec in all() {
        let mut model = trained(&spec, &sine(300));
        model.train(&trend(300), &mut |_| ()).expect("long enough");
        assert_eq!(model.save(), trained(&spec, &trend(300)).save(), "{}", model.name());
    }
}

#[test]
fn the_errors_are_those_of_a_walk_by_hand() {
    let errors = evaluate(Spec::MovingAverage(2).build().as_mut(), &[2.0, 4.0], &[9.0, 4.5], &mut |_| ()).expect("two values");
    // Forecasts 3 and 6.5, random walk 4 and 9.
    assert_eq!((errors.mae, errors.rmse, errors.random_walk_mae), (4.0, 20.0_f64.sqrt(), 4.75));
}
