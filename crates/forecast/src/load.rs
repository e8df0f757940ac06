//! A saved model of any kind, read again.

use crate::arima::Arima;
use crate::exponential::Exponential;
use crate::forecaster::Forecaster;
use crate::format::{LoadError, decode};
use crate::lstm::Lstm;
use crate::moving_average::MovingAverage;
use crate::random_walk::RandomWalk;
use crate::seasonal::SeasonalNaive;
use serde::Deserialize;

/// Any model, with all that it has learnt and observed: the variants in the order of [`Kind`](crate::format::Kind).
#[derive(Deserialize)]
enum Saved {
    RandomWalk(RandomWalk),
    MovingAverage(MovingAverage),
    Exponential(Exponential),
    SeasonalNaive(SeasonalNaive),
    Arima(Arima),
    Lstm(Box<Lstm>),
}

impl Saved {
    fn is_sound(&self) -> bool {
        match self {
            Saved::RandomWalk(model) => model.is_sound(),
            Saved::MovingAverage(model) => model.is_sound(),
            Saved::Exponential(model) => model.is_sound(),
            Saved::SeasonalNaive(model) => model.is_sound(),
            Saved::Arima(model) => model.is_sound(),
            Saved::Lstm(model) => model.is_sound(),
        }
    }
}

/// The model that [`save`](Forecaster::save) made `bytes` of, standing where it stood.
pub fn load(bytes: &[u8]) -> Result<Box<dyn Forecaster>, LoadError> {
    let saved: Saved = decode(bytes)?;
    if !saved.is_sound() {
        return Err(LoadError::Malformed { what: "its parts do not fit together".into() });
    }
    Ok(match saved {
        Saved::RandomWalk(model) => Box::new(model),
        Saved::MovingAverage(model) => Box::new(model),
        Saved::Exponential(model) => Box::new(model),
        Saved::SeasonalNaive(model) => Box::new(model),
        Saved::Arima(model) => Box::new(model),
        Saved::Lstm(model) => model,
    })
}
