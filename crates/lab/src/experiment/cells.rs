//! How figures are written in tables.

/// A rate or a time with one decimal.
pub fn one(value: f64) -> String {
    format!("{value:.1}")
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `part` over `whole`; zero if there is no whole.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
