//! Training and comparing on small series.

use super::*;
use rhumb_forecast::load;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const PERIOD: usize = 24;

/// A file of a series with a season and some noise.
fn file(folder: &TempDir, epochs: usize) -> PathBuf {
    let value = |epoch: usize| 100 + 40 * (epoch % PERIOD) + epoch * 37 % 11;
    let rows: String = (0..epochs).map(|epoch| format!("{epoch},{}\n", value(epoch))).collect();
    let path = folder.path().join("demand.csv");
    std::fs::write(&path, format!("epoch,vms\n{rows}")).expect("written");
    path
}

fn demand(epochs: usize, periods: &[usize]) -> Demand {
    let folder = tempfile::tempdir().expect("a folder");
    Demand::read(&file(&folder, epochs), None, periods).expect("a good series")
}

fn choice(model: &str, passes: Option<usize>) -> Choice {
    Choice { model: model.into(), passes, seed: 1 }
}

/// Writes down what it is told.
#[derive(Default)]
struct Notes(Vec<String>);

impl Watch for Notes {
    fn begin(&mut self, what: &str, part: usize, parts: usize) {
        self.0.push(format!("{part}/{parts} {what}"));
    }

    fn passed(&mut self, progress: Progress) {
        self.0.push(format!("{}/{}", progress.done, progress.total));
    }
}

#[test]
fn a_model_is_judged_on_what_is_held_back_and_trained_on_all() {
    let demand = demand(500, &[PERIOD]);
    let mut notes = Notes::default();
    let trained = train(&demand, &choice("lstm", Some(2)), &mut notes).expect("long enough");
    assert_eq!(notes.0, ["1/2 the part that is not held back", "1/2", "2/2", "2/2 the whole series", "1/2", "2/2"]);
    assert_eq!((trained.epochs, trained.errors.epochs), (500, 100));
    let Spec::Lstm(config) = Spec::named("lstm", &[PERIOD], 1).expect("a model") else { unreachable!() };
    let mut alone = Spec::Lstm(rhumb_forecast::LstmConfig { passes: 2, ..config }).build();
    alone.train(demand.values(), &mut |_| ()).expect("long enough");
    assert_eq!(trained.model.save(), alone.save());
    assert_eq!(load(&trained.model.save()).expect("just saved").predict(3), trained.model.predict(3));
}

#[test]
fn what_a_training_reached_is_told() {
    let demand = demand(500, &[PERIOD]);
    let told = |model: &str| train(&demand, &choice(model, None), &mut ()).expect("long enough").to_string();
    let expected = "\
seasonal naive(24) trained on 500 epochs of demand
trained on the first 80 % alone, it forecast each of the other 100 epochs with
  MAE 4.35, RMSE 4.88; a random walk: MAE 75.14
  that is 0.058 of the random walk's error
";
    assert_eq!(told("seasonal-naive"), expected);
    assert!(told("random-walk").ends_with("  no better than a random walk: try another model, or its periods\n"));
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let demand = demand(500, &[]);
    let refusal =
        |model: &str, passes| train(&demand, &choice(model, passes), &mut ()).err().map(|error| (error.is_usage(), error.to_string()));
    let usage = |message: &str| Some((true, message.to_owned()));
    assert_eq!(refusal("lstm", Some(0)), usage("0 passes: the training of an LSTM takes 1 to 10000"));
    assert_eq!(refusal("arima", Some(3)), usage("the model `arima` is not trained in passes; only `lstm` is"));
    let period = "the model `seasonal-naive` needs the period of the series: how many epochs a day or a week takes";
    assert_eq!(refusal("seasonal-naive", None), usage(period));
    let short = super::tests::demand(100, &[90]);
    let error = train(&short, &choice("seasonal-naive", None), &mut ()).map(|_| ()).expect_err("80 are to train on");
    let line =
        "demand: seasonal naive(90) needs 90 values or more to train on, but the series has 80; give a longer series or a smaller model";
    assert_eq!((error.is_usage(), error.to_string()), (false, line.to_owned()));
}

#[test]
fn a_file_that_is_no_series_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, 10);
    let error = |path: &Path, column, periods: &[usize]| Demand::read(path, column, periods).map(|_| ()).expect_err("bad").to_string();
    let nowhere = folder.path().join("nowhere.csv");
    let line = format!("{}: cannot read the series: No such file or directory (os error 2)", nowhere.display());
    assert_eq!(error(&nowhere, None, &[]), line);
    assert_eq!(error(&path, Some("seats"), &[]), format!("{}: no column `seats`; there are `epoch`, `vms`", path.display()));
    assert_eq!(error(&path, None, &[24, 1]), "a period of 1 epochs: it must be 2 to 105120");
    std::fs::write(&path, "epoch,vms\n0,1\n1,many\n").expect("written");
    let line = format!("{}, line 3, column `vms`: `many` is not a number of at most 1e15", path.display());
    assert_eq!(error(&path, None, &[]), line);
    std::fs::write(&path, b"vms\n\xff\n").expect("written");
    assert_eq!(error(&path, None, &[]), format!("{}: cannot read the series: stream did not contain valid UTF-8", path.display()));
}

#[test]
fn models_are_compared_on_every_series() {
    let demands = [demand(500, &[PERIOD]), demand(300, &[])];
    let names = ["random-walk", "arima"].map(str::to_owned);
    let mut notes = Notes::default();
    let comparison = compare(&demands, &names, 1, &mut notes).expect("long enough");
    let begun: Vec<&str> = notes.0.iter().filter(|note| note.contains("demand")).map(String::as_str).collect();
    assert_eq!(begun, ["1/4 demand, random walk", "2/4 demand, ARIMA(3,1,3)", "3/4 demand, random walk", "4/4 demand, ARIMA(3,1,3)"]);
    let first = &comparison.series[0];
    assert_eq!((first.table.trained, first.actual.len(), first.forecasts[0].len()), (400, 100, 100));
    assert_eq!(first.forecasts[0][1..], first.actual[..99], "a random walk repeats");
    assert_eq!(first.table.rows[0].errors.share(), 1.0);
    let csv = comparison.to_csv();
    assert_eq!(csv.lines().count(), 5);
    assert_eq!(csv.lines().filter(|line| line.starts_with("series,")).count(), 1);
}

#[test]
fn without_names_all_models_are_compared_that_can_be() {
    let kinds = |periods: &[usize]| {
        let comparison = compare(&[demand(600, periods)], &[], 1, &mut ()).expect("long enough");
        comparison.series[0].table.rows.iter().map(|row| row.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&[]), ["random walk", "moving average", "exponential smoothing", "ARIMA", "LSTM"]);
    let all = ["random walk", "moving average", "exponential smoothing", "seasonal naive", "ARIMA", "seasonal ARIMA", "LSTM"];
    assert_eq!(kinds(&[6, PERIOD]), all);
}

#[test]
fn the_plots_show_the_errors_and_the_best_model() {
    let names = ["random-walk", "seasonal-naive", "arima"].map(str::to_owned);
    let comparison = compare(&[demand(500, &[PERIOD])], &names, 1, &mut ()).expect("long enough");
    let errors = comparison.errors_svg().expect("finite errors");
    for text in ["random walk", "seasonal naive", "ARIMA", "1.00", "0.06", "Samya, Table 4 (another series)"] {
        assert!(errors.contains(&format!(">\n{text}\n")), "{text}");
    }
    let stretch = comparison.series[0].stretch_svg().expect("finite values");
    for (text, shown) in [("what came", true), ("seasonal naive(24), one epoch before", true), ("ARIMA(3,1,3), one epoch before", false)] {
        assert_eq!(stretch.contains(&format!(">\n{text}\n")), shown, "{text}");
    }
}
