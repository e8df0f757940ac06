//! How the models are set side by side.

use rhumb_forecast::{Errors, Row, Spec, Table, UnknownModel};

fn table() -> Table {
    let row = |name: &str, mae: f64, rmse: f64| {
        let spec = Spec::named(name, &[24], 1).expect("there is such a model");
        Row::new(&spec, Errors { mae, rmse, random_walk_mae: 200.0, epochs: 20 })
    };
    let rows =
        vec![row("random-walk", 200.0, 250.5), row("seasonal-naive", 90.0, 120.0), row("arima", 100.0, 130.0), row("lstm", 50.0, 61.25)];
    Table { series: "demand".into(), trained: 80, rows }
}

#[test]
fn the_table_stands_beside_the_papers() {
    let expected = "\
demand: 80 epochs to train on, 20 forecast one by one
model                                MAE        RMSE  of random walk   paper's MAE  of random walk
random walk                       200.00      250.50           1.000       1212.19           1.000
seasonal naive(24)                 90.00      120.00           0.450             -               -
ARIMA(3,1,3)                      100.00      130.00           0.500        609.13           0.503
LSTM(24)                           50.00       61.25           0.250        259.21           0.214
";
    assert_eq!(table().to_string(), expected);
}

#[test]
fn the_table_is_csv_too() {
    let text = table().to_csv();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "series,model,mae,rmse,share_of_random_walk,paper_mae,paper_share_of_random_walk");
    assert_eq!(lines[2], "demand,\"seasonal naive(24)\",90.0000,120.0000,0.4500,,");
    assert_eq!(lines[3], "demand,\"ARIMA(3,1,3)\",100.0000,130.0000,0.5000,609.1300,0.5025");
}

#[test]
fn every_name_is_a_model() {
    let names: Vec<String> = Spec::NAMES.iter().map(|name| Spec::named(name, &[48, 336], 1).expect("listed").build().name()).collect();
    let expected = [
        "random walk",
        "moving average(12)",
        "exponential smoothing",
        "seasonal naive(336)",
        "ARIMA(3,1,3)",
        "ARIMA(3,0,3) season 336",
        "LSTM(24)",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_name_that_no_model_has_is_refused() {
    let error = |name: &str, periods: &[usize]| Spec::named(name, periods, 1).map_err(|error| error.to_string());
    let names = "random-walk, moving-average, exponential, seasonal-naive, arima, seasonal-arima, lstm";
    assert_eq!(error("prophet", &[24]), Err(format!("no model `prophet`; there are {names}")));
    assert_eq!(
        error("seasonal-naive", &[]),
        Err("the model `seasonal-naive` needs the period of the series: how many epochs a day or a week takes".to_owned())
    );
    assert_eq!(Spec::named("seasonal-arima", &[], 1), Err(UnknownModel::Period { name: "seasonal-arima".into() }));
}
