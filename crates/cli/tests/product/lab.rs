//! `rhumb lab` through the binary: what there is, an experiment with its files, and what is refused.

use crate::common::{done, refused};
use std::fs;

#[test]
fn every_table_and_figure_is_listed() {
    let list = done(&["lab", "list"]);
    for name in [
        "samya-table4",
        "samya-table6",
        "samya-figure8",
        "samya-figure17",
        "gplacer-figure2",
        "gplacer-figure12",
        "catenae-figure7",
        "quad-figure4",
        "quad-figure10",
    ] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
}

#[test]
fn an_experiment_is_printed_and_written_the_same_by_the_same_seed() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = |name: &str| folder.path().join(name).display().to_string();
    let run = |name: &str| done(&["lab", "samya-figure10", "--quick", "--seed", "3", "--out", &out(name)]);
    let said = run("one");
    assert!(said.starts_with("samya-figure10 · Throughput while sites crash, one after another · seed 3, 12 times shorter"), "{said}");
    run("two");
    let mut names: Vec<_> = fs::read_dir(out("one")).expect("made").map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert!(names.iter().any(|name| name.to_string_lossy().ends_with(".csv")), "{names:?}");
    assert!(names.iter().any(|name| name.to_string_lossy().ends_with(".svg")), "{names:?}");
    for name in names {
        let read = |of: &str| fs::read(folder.path().join(of).join(&name)).expect("written");
        assert_eq!(read("one"), read("two"), "{name:?}");
    }
}

#[test]
fn what_there_is_not_is_refused() {
    refused(&["lab", "samya-figure99"], 2, "there is no experiment `samya-figure99`; `rhumb lab list` names those that there are");
    refused(&["lab", "samya"], 2, "`rhumb lab samya --all` runs all experiments; `rhumb lab list` names them");
    refused(&["lab", "gplacer"], 2, "`rhumb lab gplacer --all` runs all experiments; `rhumb lab list` names them");
}
