//! The report's text, in full.

use std::time::Duration;

use super::super::meter::Meter;
use super::super::percentiles::Percentiles;
use super::*;
use crate::driver::Meter as _;

fn meter(committed: u64, latency_ms: u64) -> Meter {
    let mut meter = Meter::default();
    for _ in 0..committed {
        meter.commit(Duration::from_millis(latency_ms), &[Duration::from_millis(latency_ms / 2)]);
    }
    meter
}

fn report() -> Report {
    let mut near = meter(900, 180);
    (0..100).for_each(|i| near.abort("40001 conflict", i > 0));
    near.rolled_back = 10;
    let mut far = meter(300, 420);
    far.unknown = 2;
    far.unavailable("57P03 unavailable", true);
    let mut total = near.clone();
    total.add(&far);
    let region = |name: &str, floor_ms| RegionReport { region: name.into(), clients: 8, floor_ms, ..RegionReport::default() };
    Report {
        workload: "tpcc, 10 warehouses".into(),
        conditions: Conditions { load: "closed loop, 8 clients per region".into(), seed: 7, warmup_s: 5.0, measured_s: 30.0 },
        statements: Vec::new(),
        kinds: vec![KindReport::new("new order", &near, 1210, 30.0), KindReport::new("payment", &far, 1210, 30.0)],
        regions: vec![region("california", Some(86.0)).filled(&near, 30.0), region("são paulo", None).filled(&far, 30.0)],
        total: RegionReport { region: "all".into(), clients: 16, overdue: 4, ..RegionReport::default() }.filled(&total, 30.0),
        predictions: Vec::new(),
        warnings: vec!["the accounts were not checked".into()],
        violations: vec!["the total is 999, not 1000".into()],
    }
}

#[test]
fn the_text_is_aligned_and_complete() {
    assert_eq!(report().to_string(), include_str!("run_golden.txt"));
}

#[test]
fn a_floor_below_a_millisecond_is_no_measure() {
    let region = |floor_ms| RegionReport { floor_ms: Some(floor_ms), ..RegionReport::default() }.filled(&meter(1, 10), 1.0);
    let shown = |floor_ms| region(floor_ms).cells()[12..].to_vec();
    assert_eq!(shown(0.04), ["–", "–", "–"]);
    assert_eq!(shown(1.0), ["1.00", "10.01×", "5.00×"]);
    assert_eq!(region(0.04).p50_over_floor, None);
}

#[test]
fn json_carries_every_figure() {
    let json: serde_json::Value = serde_json::from_str(&report().to_json()).expect("valid JSON");
    assert_eq!(json["regions"][0]["committed"], 900);
    assert_eq!(json["regions"][0]["throughput_per_s"], 30.0);
    assert_eq!(json["regions"][0]["aborts"]["40001 conflict"]["retried"], 99);
    assert_eq!(json["regions"][1]["floor_ms"], serde_json::Value::Null);
    assert_eq!(json["total"]["unknown"], 2);
    assert_eq!(json["kinds"][0]["rolled_back"], 10);
    let ratio = json["regions"][0]["commit_p50_over_floor"].as_f64().expect("a ratio");
    assert!((ratio - 90.0 / 86.0).abs() < 0.001, "{ratio}");
}

fn measured(medians: &[(&str, f64)]) -> Report {
    let latency = |p50_ms| Some(Percentiles { p50_ms, p95_ms: p50_ms, p99_ms: p50_ms, mean_ms: p50_ms, max_ms: p50_ms });
    let region = |(name, p50): &(&str, f64)| RegionReport { region: (*name).into(), latency: latency(*p50), ..RegionReport::default() };
    Report { regions: medians.iter().map(region).collect(), ..Report::default() }
}

#[test]
fn a_median_is_as_predicted_within_five_percent_and_three_milliseconds() {
    let plan =
        r#"{"mean_ms": 1.0, "clients": [{"region": "a", "latency_ms": 100.0, "floor_ms": 90.0}, {"region": "b", "latency_ms": 100.0}]}"#;
    let prediction = Prediction::parse(plan).expect("a plan");
    let mut report = measured(&[("a", 108.0), ("b", 91.9), ("c", 5.0)]);
    report.hold_against(&prediction);
    let verdicts: Vec<_> = report.predictions.iter().map(|it| it.as_predicted).collect();
    assert_eq!(verdicts, [Some(true), Some(false), None]);
    assert_eq!(report.warnings, ["the plan has no clients in c"]);
    let shown = comparison::table(&report.predictions).to_string();
    assert!(shown.contains("+8.0") && shown.contains("-8.1"), "{shown}");
}
