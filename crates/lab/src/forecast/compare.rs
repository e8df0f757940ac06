//! All models on the same series, side by side.

use super::demand::Demand;
use super::error::ForecastError;
use super::{TRAINED_SHARE, Watch};
use rhumb_forecast::{Errors, Row, Spec, Table, UnknownModel, walk_forward};
use std::fmt;

/// The models on one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Their errors.
    pub table: Table,
    /// What they forecast of the part held back, in the order of the table's rows.
    pub forecasts: Vec<Vec<f64>>,
    /// What it was.
    pub actual: Vec<f64>,
    /// The length of an epoch, if it is known.
    pub epoch_seconds: Option<u64>,
}

/// The models on every series.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// In the order in which they were given.
    pub series: Vec<Measured>,
}

/// Trains `models` on each of `demands`, and has them forecast the part held back epoch by epoch. Without names: all models
/// that the periods of a series allow.
pub fn compare(demands: &[Demand], models: &[String], seed: u64, watch: &mut dyn Watch) -> Result<Comparison, ForecastError> {
    let specs = demands.iter().map(|demand| specs(demand, models, seed)).collect::<Result<Vec<_>, _>>()?;
    let parts = specs.iter().map(Vec::len).sum();
    let mut part = 0;
    let mut series = Vec::new();
    for (demand, specs) in demands.iter().zip(specs) {
        let (train, test) = demand.split();
        let (mut rows, mut forecasts) = (Vec::new(), Vec::new());
        for spec in specs {
            let mut model = spec.build();
            part += 1;
            watch.begin(&format!("{}, {}", demand.name, model.name()), part, parts);
            let forecast = walk_forward(model.as_mut(), train, test, &mut |progress| watch.passed(progress))
                .map_err(|error| ForecastError::Train { name: demand.name.clone(), error })?;
            rows.push(Row::new(&spec, Errors::of(&forecast, test, train[train.len() - 1])));
            forecasts.push(forecast);
        }
        let table = Table { series: demand.name.clone(), trained: train.len(), rows };
        series.push(Measured { table, forecasts, actual: test.to_vec(), epoch_seconds: demand.epoch_seconds });
    }
    Ok(Comparison { series })
}

fn specs(demand: &Demand, models: &[String], seed: u64) -> Result<Vec<Spec>, ForecastError> {
    let named = |name: &str| Spec::named(name, &demand.periods, seed);
    if models.is_empty() {
        let possible = |name: &&str| !matches!(named(name), Err(UnknownModel::Period { .. }));
        return Ok(Spec::NAMES.into_iter().filter(possible).map(named).collect::<Result<_, _>>()?);
    }
    Ok(models.iter().map(|name| named(name)).collect::<Result<_, _>>()?)
}

impl Comparison {
    /// A row per series and model, with a header.
    pub fn to_csv(&self) -> String {
        let tables = self.series.iter().map(|series| series.table.to_csv()).enumerate();
        tables.flat_map(|(index, text)| text.lines().skip(index.min(1)).map(|line| format!("{line}\n")).collect::<Vec<_>>()).collect()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for series in &self.series {
            writeln!(f, "{}", series.table)?;
        }
        writeln!(f, "Errors of one-step forecasts of the last {:.0} %, in the unit of each series.", 100.0 * (1.0 - TRAINED_SHARE))?;
        writeln!(f, "The paper's are of another series, which is not public: compare the shares.")
    }
}
