//! `rhumb forecast` through the binary: a model file, a table with its files, and what is refused.

use crate::common::{done, refused};
use std::fs;
use std::path::{Path, PathBuf};

/// Hours of demand over three weeks, with a day and a trend.
fn series(folder: &Path) -> PathBuf {
    let rows: String = (0..504).map(|hour| format!("{hour},{}\n", 200 + hour + 30 * (hour % 24) + hour * 37 % 11)).collect();
    let path = folder.join("vms.csv");
    fs::write(&path, format!("# VMs\nhour,created\n{rows}")).expect("written");
    path
}

#[test]
fn a_model_is_trained_into_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (series, model) = (series(folder.path()), folder.path().join("vm.model"));
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let train =
        |model: &str, output: &Path| done(&["forecast", "train", &text(&series), "--model", model, "--period", "24", "-o", &text(output)]);
    let said = train("seasonal-arima", &model);
    assert!(said.starts_with("ARIMA(3,0,3) season 24 trained on 504 epochs of vms\n"), "{said}");
    assert!(said.ends_with(&format!("written to {}\n", model.display())), "{said}");
    let bytes = fs::read(&model).expect("written");
    assert_eq!(&bytes[..4], b"RHFC");
    train("seasonal-arima", &model);
    assert_eq!(fs::read(&model).expect("written again"), bytes);
    train("random-walk", &model);
    assert_ne!(fs::read(&model).expect("written again"), bytes);
}

#[test]
fn a_table_is_printed_and_written_with_its_plots() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let series = series(folder.path()).display().to_string();
    let files = ["--csv", &file("errors.csv"), "--svg", &file("errors.svg")];
    let said = done(&[&["forecast", "table", &series, "--models", "random-walk,arima"], &files[..]].concat());
    assert!(said.starts_with("vms: 403 epochs to train on, 101 forecast one by one\nmodel "), "{said}");
    let written: String = ["errors.csv", "errors.svg", "errors-vms.svg"].map(|name| format!("written to {}\n", file(name))).concat();
    assert!(said.ends_with(&written), "{said}");
    assert_eq!(fs::read_to_string(file("errors.csv")).expect("written").lines().count(), 3);
    for name in ["errors.svg", "errors-vms.svg"] {
        assert!(fs::read_to_string(file(name)).expect("written").starts_with("<svg "), "{name}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let series = series(folder.path()).display().to_string();
    let model = folder.path().join("vm.model");
    let output = model.display().to_string();
    let train = |code, options: &[&str], line: &str| refused(&[&["forecast", "train", &series], options].concat(), code, line);
    let period = "the model `seasonal-naive` needs the period of the series: how many epochs a day or a week takes";
    train(2, &["--model", "seasonal-naive", "-o", &output], period);
    train(2, &["--model", "arima", "--epochs", "5", "-o", &output], "the model `arima` is not trained in passes; only `lstm` is");
    train(
        1,
        &["--model", "arima", "--column", "deleted", "-o", &output],
        &format!("{series}: no column `deleted`; there are `hour`, `created`"),
    );
    let nowhere = folder.path().join("nowhere");
    let lost = nowhere.join("vm.model").display().to_string();
    train(1, &["--model", "arima", "-o", &lost], &format!("{lost}: cannot be written: there is no folder {}", nowhere.display()));
    assert!(!model.exists());
}
