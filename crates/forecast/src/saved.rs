//! Models as bytes.
//!
//! ```text
//! "RHFC" | version: u16 LE | model: postcard | CRC-32 of all before: u32 LE
//! ```
//!
//! The version is of the whole format: a change of any model's fields raises it. Bytes that pass the checksum are checked
//! again for sense, so that a loaded model never panics: whoever can write the file can also write its checksum.

use crate::arima::Arima;
use crate::exponential::Exponential;
use crate::forecaster::Forecaster;
use crate::lstm::Lstm;
use crate::moving_average::MovingAverage;
use crate::random_walk::RandomWalk;
use crate::seasonal::SeasonalNaive;
use serde::{Deserialize, Serialize};
use thiserror::Error;

const MAGIC: &[u8; 4] = b"RHFC";
/// The version that this build writes, and the only one that it reads.
const VERSION: u16 = 1;
/// The most bytes of a saved model; the largest LSTM within its bounds takes less.
const BYTES_MAX: usize = 16 << 20;

/// Any model, with all that it has learnt and observed.
#[derive(Serialize, Deserialize)]
pub(crate) enum Saved {
    RandomWalk(RandomWalk),
    MovingAverage(MovingAverage),
    Exponential(Exponential),
    SeasonalNaive(SeasonalNaive),
    Arima(Arima),
    Lstm(Box<Lstm>),
}

/// Why bytes are no model.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LoadError {
    #[error("this is not a saved forecasting model; train one with `rhumb forecast train`")]
    NotAModel,
    #[error("the model was saved in format {found}, this build reads format {VERSION}; train it again")]
    Version { found: u16 },
    #[error("the saved model is damaged: its checksum does not match; restore the file or train the model again")]
    Checksum,
    #[error("the saved model makes no sense: {what}; train it again")]
    Malformed { what: String },
}

impl Saved {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        let mut bytes = postcard::to_extend(self, bytes).expect("models are plain data, and memory grows");
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Saved, LoadError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(LoadError::NotAModel)?;
        let (version, _) = rest.split_first_chunk::<2>().ok_or(LoadError::NotAModel)?;
        let found = u16::from_le_bytes(*version);
        if found != VERSION {
            return Err(LoadError::Version { found });
        }
        let (covered, checksum) = bytes.split_last_chunk::<4>().ok_or(LoadError::Checksum)?;
        let body = covered.get(MAGIC.len() + version.len()..).ok_or(LoadError::Checksum)?;
        if bytes.len() > BYTES_MAX || crc32fast::hash(covered) != u32::from_le_bytes(*checksum) {
            return Err(LoadError::Checksum);
        }
        let (saved, left) = postcard::take_from_bytes(body).map_err(|error| LoadError::Malformed { what: error.to_string() })?;
        if !left.is_empty() {
            return Err(LoadError::Malformed { what: format!("{} bytes follow its end", left.len()) });
        }
        Ok(saved)
    }

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
    let saved = Saved::decode(bytes)?;
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
