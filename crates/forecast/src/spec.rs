//! The models by name, with orders that serve demand series.

use crate::arima::{Arima, Order};
use crate::exponential::Exponential;
use crate::forecaster::Forecaster;
use crate::lstm::{Lstm, LstmConfig};
use crate::moving_average::MovingAverage;
use crate::random_walk::RandomWalk;
use crate::seasonal::SeasonalNaive;
use thiserror::Error;

/// Epochs of the moving average.
const WINDOW: usize = 12;
/// Past values and past errors of ARIMA.
const ARMA: usize = 3;

/// Which model, and its order.
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    /// [`RandomWalk`]
    RandomWalk,
    /// [`MovingAverage`] over that many epochs.
    MovingAverage(usize),
    /// [`Exponential`]
    Exponential,
    /// [`SeasonalNaive`] with that period.
    SeasonalNaive(usize),
    /// [`Arima`]
    Arima(Order),
    /// [`Lstm`]
    Lstm(LstmConfig),
}

/// A name that no model has, or that needs a period where none is given.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum UnknownModel {
    #[error("no model `{name}`; there are {}", Spec::NAMES.join(", "))]
    Name { name: String },
    #[error("the model `{name}` needs the period of the series: how many epochs a day or a week takes")]
    Period { name: String },
}

impl Spec {
    /// The names of the models.
    pub const NAMES: [&'static str; 7] =
        ["random-walk", "moving-average", "exponential", "seasonal-naive", "arima", "seasonal-arima", "lstm"];

    /// The model of that name, for a series with these periods in epochs, the longest last. `seed` decides what is random in its
    /// training.
    pub fn named(name: &str, periods: &[usize], seed: u64) -> Result<Spec, UnknownModel> {
        let longest = periods.iter().copied().max();
        let season = longest.ok_or_else(|| UnknownModel::Period { name: name.to_owned() });
        let arima = |season| Spec::Arima(Order { p: ARMA, d: usize::from(Option::is_none(&season)), q: ARMA, season });
        Ok(match name {
            "random-walk" => Spec::RandomWalk,
            "moving-average" => Spec::MovingAverage(WINDOW),
            "exponential" => Spec::Exponential,
            "seasonal-naive" => Spec::SeasonalNaive(season?),
            "arima" => arima(None),
            "seasonal-arima" => arima(Some(season?)),
            "lstm" => Spec::Lstm(LstmConfig::with_periods(periods, seed)),
            _ => return Err(UnknownModel::Name { name: name.to_owned() }),
        })
    }

    /// What such a model is called whatever its order.
    pub fn kind(&self) -> &'static str {
        match self {
            Spec::RandomWalk => "random walk",
            Spec::MovingAverage(_) => "moving average",
            Spec::Exponential => "exponential smoothing",
            Spec::SeasonalNaive(_) => "seasonal naive",
            Spec::Arima(order) if order.season.is_some() => "seasonal ARIMA",
            Spec::Arima(_) => "ARIMA",
            Spec::Lstm(_) => "LSTM",
        }
    }

    /// A model of that kind that has seen nothing.
    pub fn build(&self) -> Box<dyn Forecaster> {
        match self {
            Spec::RandomWalk => Box::new(RandomWalk::new()),
            Spec::MovingAverage(window) => Box::new(MovingAverage::new(*window)),
            Spec::Exponential => Box::new(Exponential::new()),
            Spec::SeasonalNaive(period) => Box::new(SeasonalNaive::new(*period)),
            Spec::Arima(order) => Box::new(Arima::new(*order)),
            Spec::Lstm(config) => Box::new(Lstm::new(config.clone())),
        }
    }
}
