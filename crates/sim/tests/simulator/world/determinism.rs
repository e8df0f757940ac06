//! One seed decides all.

use super::runs::SOUND;
use rhumb_sim::{Report, Scenario};

fn run(seed: u64, tracing: bool) -> Report {
    SOUND.run(seed, tracing)
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in 0..5 {
        let first = run(seed, true);
        assert!(first.trace.lines().count() > 1_000, "something happened");
        assert_eq!(first, run(seed, true));
    }
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(run(1, true).trace, run(2, true).trace);
}

#[test]
fn tracing_changes_nothing() {
    let (plain, traced) = (run(3, false), run(3, true));
    assert_eq!(plain.trace, "");
    assert_eq!(Report { trace: String::new(), ..traced }, plain);
}
