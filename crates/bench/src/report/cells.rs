//! How figures are written in tables.

use super::percentiles::Percentiles;

/// What a value that does not exist is shown as.
pub const NONE: &str = "–";

/// A floor below this says nothing: within one site or machine the work itself outweighs the way.
const FLOOR_MS_MIN: f64 = 1.0;

/// True if latencies can be held against this floor.
pub fn tells(floor_ms: f64) -> bool {
    floor_ms >= FLOOR_MS_MIN
}

/// A ratio, to the hundredth.
pub fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or(NONE.to_owned(), |ratio| format!("{ratio:.2}×"))
}

/// The percentiles that tables show.
pub fn percentile_cells(latency: Option<&Percentiles>) -> [String; 3] {
    match latency {
        Some(latency) => [latency.p50_ms, latency.p95_ms, latency.p99_ms].map(millis),
        None => [NONE, NONE, NONE].map(str::to_owned),
    }
}

/// Milliseconds, to three significant digits, as many as the histograms keep.
pub fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 9.995 => format!("{ms:.2}"),
        ms if ms < 99.95 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

/// So many in a time: fewer digits for more of them.
pub fn rate(per_time: f64) -> String {
    if per_time < 99.95 { format!("{per_time:.1}") } else { format!("{per_time:.0}") }
}

/// A share from 0 to 1.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
