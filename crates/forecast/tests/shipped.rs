//! The models on the series that ship: what must stay true of them.

use rhumb_forecast::{LstmConfig, Spec, evaluate, shipped};

fn share(series: &str, model: &str) -> f64 {
    let shipped = shipped(series).expect("it ships");
    let series = shipped.series();
    let (train, test) = series.split(0.8);
    let mut model = Spec::named(model, &shipped.periods, 1).expect("there is such a model").build();
    evaluate(model.as_mut(), train, test, &mut |_| ()).expect("long enough").share()
}

#[test]
fn arima_beats_the_random_walk_and_the_season_helps_where_there_is_one() {
    let (plain, seasonal) = (share("nyc_taxi_30min", "arima"), share("nyc_taxi_30min", "seasonal-arima"));
    assert!(seasonal < 0.6 && plain < 0.75, "{seasonal} seasonal, {plain} plain");
    let azure = share("azure2017_vm_creations_5min", "arima");
    assert!(azure < 0.98, "{azure}");
}

#[test]
fn an_lstm_of_three_passes_already_beats_the_random_walk_on_the_taxi() {
    let shipped = shipped("nyc_taxi_30min").expect("it ships");
    let series = shipped.series();
    let (train, test) = series.values()[..3_000].split_at(2_400);
    let config = LstmConfig { hidden: 8, passes: 3, ..LstmConfig::with_periods(&shipped.periods, 1) };
    let errors = evaluate(Spec::Lstm(config).build().as_mut(), train, test, &mut |_| ()).expect("long enough");
    assert!(errors.share() < 0.75, "{errors:?}");
}

#[test]
fn the_same_seed_gives_the_same_bits_in_every_build() {
    let series: Vec<f64> = (0..300).map(|epoch| f64::from(epoch * epoch % 97)).collect();
    let config = LstmConfig { hidden: 4, window: 8, passes: 2, ..LstmConfig::with_periods(&[24], 1) };
    let mut model = Spec::Lstm(config).build();
    model.train(&series, &mut |_| ()).expect("long enough");
    assert_eq!(model.predict(1)[0].to_bits(), 4_634_269_421_093_472_717);
}
