//! What a plan foretells of the latencies of transactions.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::BenchError;

/// The mean latency of a transaction by region, in milliseconds, as `rhumb plan --json` says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction(BTreeMap<String, f64>);

#[derive(Deserialize)]
struct Plan {
    clients: Vec<Client>,
}

#[derive(Deserialize)]
struct Client {
    region: String,
    latency_ms: f64,
}

impl Prediction {
    /// Reads what `rhumb plan --json` printed.
    pub fn parse(json: &str) -> Result<Prediction, BenchError> {
        let plan: Plan = serde_json::from_str(json)
            .map_err(|error| BenchError::Options(format!("this is no plan as `rhumb plan --json` prints it: {error}")))?;
        Ok(Prediction(plan.clients.into_iter().map(|client| (client.region, client.latency_ms)).collect()))
    }

    /// What it says of `region`, in milliseconds; none if it has no clients there.
    pub fn latency_ms(&self, region: &str) -> Option<f64> {
        self.0.get(region).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plan_is_refused() {
        for text in ["", "[]", r#"{"clients": [{"region": "a"}]}"#] {
            assert!(Prediction::parse(text).expect_err("no plan").to_string().contains("rhumb plan --json"));
        }
    }
}
