//! A model for a site: judged on the last fifth of the series, then trained on all of it.

use super::demand::Demand;
use super::error::ForecastError;
use super::{TRAINED_SHARE, Watch};
use rhumb_forecast::lstm::PASSES_MAX;
use rhumb_forecast::{Errors, Forecaster, Spec, evaluate};
use std::fmt;

/// The model that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// One of [`Spec::NAMES`].
    pub model: String,
    /// Passes over the series in the training of an LSTM, if not as many as usual.
    pub passes: Option<usize>,
    /// Decides what is random in a training.
    pub seed: u64,
}

impl Choice {
    fn spec(&self, periods: &[usize]) -> Result<Spec, ForecastError> {
        let spec = Spec::named(&self.model, periods, self.seed)?;
        match (spec, self.passes) {
            (spec, None) => Ok(spec),
            (Spec::Lstm(_), Some(found)) if !(1..=PASSES_MAX).contains(&found) => Err(ForecastError::Passes { found }),
            (Spec::Lstm(config), Some(passes)) => Ok(Spec::Lstm(rhumb_forecast::LstmConfig { passes, ..config })),
            (_, Some(_)) => Err(ForecastError::NoPasses { model: self.model.clone() }),
        }
    }
}

/// A trained model, and how good it is.
pub struct Trained {
    /// It stands at the end of the series, as if it had observed all of it.
    pub model: Box<dyn Forecaster>,
    /// What the series is called.
    pub series: String,
    /// How many values it was trained on in the end.
    pub epochs: usize,
    /// The errors of the same model trained on the first part of the series alone, on the rest.
    pub errors: Errors,
}

/// Trains twice: on the first part of `demand`, to see how well such a model forecasts what it did not see, and on all of
/// it, which is the model returned.
pub fn train(demand: &Demand, choice: &Choice, watch: &mut dyn Watch) -> Result<Trained, ForecastError> {
    let spec = choice.spec(&demand.periods)?;
    let mut model = spec.build();
    let failed = |error| ForecastError::Train { name: demand.name.clone(), error };
    let (trained, test) = demand.split();
    watch.begin("the part that is not held back", 1, 2);
    let errors = evaluate(model.as_mut(), trained, test, &mut |progress| watch.passed(progress)).map_err(failed)?;
    watch.begin("the whole series", 2, 2);
    model.train(demand.values(), &mut |progress| watch.passed(progress)).map_err(failed)?;
    Ok(Trained { model, series: demand.name.clone(), epochs: demand.values().len(), errors })
}

impl fmt::Display for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Errors { mae, rmse, random_walk_mae, epochs } = self.errors;
        writeln!(f, "{} trained on {} epochs of {}", self.model.name(), self.epochs, self.series)?;
        writeln!(f, "trained on the first {:.0} % alone, it forecast each of the other {epochs} epochs with", 100.0 * TRAINED_SHARE)?;
        writeln!(f, "  MAE {mae:.2}, RMSE {rmse:.2}; a random walk: MAE {random_walk_mae:.2}")?;
        match self.errors.share() {
            share if share < 1.0 => writeln!(f, "  that is {share:.3} of the random walk's error"),
            _ => writeln!(f, "  no better than a random walk: try another model, or its periods"),
        }
    }
}
