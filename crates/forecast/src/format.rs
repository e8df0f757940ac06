//! The bytes of a saved model.
//!
//! ```text
//! "RHFC" | version: u16 LE | model: postcard | CRC-32 of all before: u32 LE
//! ```
//!
//! The version is of the whole format: a change of any model's fields raises it. Bytes that pass the checksum are checked
//! again for sense, so that a loaded model never panics: whoever can write the file can also write its checksum.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

const MAGIC: &[u8; 4] = b"RHFC";
/// The version that this build writes, and the only one that it reads.
const VERSION: u16 = 1;
/// The most bytes of a saved model; the largest LSTM within its bounds takes less.
const BYTES_MAX: usize = 16 << 20;

/// Which model it is: the first thing that its bytes say. The order is part of the format.
#[derive(Serialize)]
pub(crate) enum Kind {
    RandomWalk,
    MovingAverage,
    Exponential,
    SeasonalNaive,
    Arima,
    Lstm,
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

/// The bytes of `model`, with all that it has learnt and observed.
pub(crate) fn encode(kind: Kind, model: &impl Serialize) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    let mut bytes = postcard::to_extend(&(kind, model), bytes).expect("models are plain data, and memory grows");
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// What [`encode`] wrote: a value of an enum with the kinds for variants, in their order.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, LoadError> {
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
