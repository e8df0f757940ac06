//! Runs setups for the experiments, each once however many experiments ask for it.

use super::level::Level;
use super::load::LoadError;
use super::parameters::{LIMIT, MAX_DEMAND_OF_THE_PAPER, MEAN_DEMAND_OF_THE_PAPER, POINTS_MIN, POINTS_OF_AN_HOUR, REGIONS};
use super::setup::{Setup, System};
use super::system::{self, Models, Run};
use crate::experiment::{Options, Progress, RunCache};
use std::rc::Rc;

/// A choice of the maximum limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How it was chosen.
    pub name: String,
    /// Tokens.
    pub tokens: u64,
}

/// The laboratory.
pub struct Lab {
    options: Options,
    models: Option<Models>,
    runs: RunCache<Setup, Run>,
}

impl Lab {
    /// A laboratory. With `models`, sites of Samya that are to have a model get theirs from there.
    pub fn new(options: Options, models: Option<Models>) -> Lab {
        Lab { options, models, runs: RunCache::new() }
    }

    /// Decides the moments of the requests.
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// `points` points of the trace, or as many as are left of them in a shorter run.
    pub fn points(&self, points: usize) -> usize {
        (points / self.options.shorter.max(1)).max(POINTS_MIN)
    }

    /// `system` over `points` points of the trace, all else as in section 5.3.
    pub fn setup(&self, system: System, points: usize) -> Setup {
        Setup { points: self.points(points), ..Setup::new(system, self.options.seed) }
    }

    /// Runs `setup`, unless that was done before.
    pub fn run(&mut self, setup: &Setup, progress: &mut dyn Progress) -> Result<Rc<Run>, LoadError> {
        self.runs.once(setup, || system::run(setup, self.models.as_ref(), progress))
    }

    /// How many times more tokens a region of the replayed trace asks for than one of the paper's series, on average.
    pub fn demand_ratio(&self) -> f64 {
        Level::of(self.points(POINTS_OF_AN_HOUR)).mean() / MEAN_DEMAND_OF_THE_PAPER as f64
    }

    /// The limit as printed; and limits that are to the mean and to the highest demand of a region as the paper's was to that of
    /// its own series.
    pub fn limits(&self) -> [Limit; 3] {
        let peaks = Level::of(self.points(POINTS_OF_AN_HOUR)).max() as f64 / MAX_DEMAND_OF_THE_PAPER as f64;
        [("as printed", 1.0), ("to the peaks", peaks), ("to the mean", self.demand_ratio())].map(|(name, ratio)| {
            let tokens = (LIMIT as f64 * ratio).round() as u64;
            Limit { name: format!("M {tokens} {name}"), tokens }
        })
    }

    /// What the trace asks for, in words, for those who wonder about the ratios.
    pub fn demand_note(&self) -> String {
        let level = Level::of(self.points(POINTS_OF_AN_HOUR));
        let above =
            self.limits().map(|limit| format!("{:.0} % of the time above {}", level.share_above(limit.tokens) * 100.0, limit.tokens));
        format!(
            "Demand: were nothing refused, a region would hold {:.0} tokens on average and {} at the most (the paper's series: 624 and 3118), \
             all {} together {} at the most, {}.",
            level.mean(),
            level.max(),
            REGIONS.len(),
            level.total_max(),
            above.join(", ")
        )
    }
}
