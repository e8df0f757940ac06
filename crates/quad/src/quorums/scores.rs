//! How strong a site is (equations 2 and 3): near to all others, and with little to do.

use super::measures::Measures;
use serde::{Deserialize, Serialize};

/// What tells how busy a site is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scoring {
    /// Its load.
    #[default]
    Load,
    /// How long it will take for what it is asked under that load: where machines are unequal.
    Latency,
}

/// What counts how much; a score is between 0 and the sum of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreWeights {
    /// `w_rtt`, of distance.
    pub rtt: f64,
    /// `w_load`, of load.
    pub load: f64,
    /// What load is.
    #[serde(default)]
    pub scoring: Scoring,
}

impl Default for ScoreWeights {
    /// Both alike; the paper names no weights.
    fn default() -> ScoreWeights {
        ScoreWeights { rtt: 0.5, load: 0.5, scoring: Scoring::Load }
    }
}

/// The score of each site.
pub fn scores(measures: &Measures, weights: ScoreWeights) -> Vec<f64> {
    let score = |site: usize| weights.rtt * (1.0 - measures.remoteness(site)) + weights.load * (1.0 - measures.relative_load(site));
    (0..measures.sites().len()).map(score).collect()
}

/// The indices of the `count` sites with the highest scores, the strongest first. Sites that have not run for a whole period come
/// after all that have: they are taken only if there are not enough of those.
pub fn strongest(measures: &Measures, scores: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, other| {
        let unscored = |site: &usize| !measures.is_scored(*site);
        unscored(one).cmp(&unscored(other)).then(scores[*other].total_cmp(&scores[*one])).then(one.cmp(other))
    });
    order.truncate(count);
    order
}
