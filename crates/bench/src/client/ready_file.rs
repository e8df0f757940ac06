//! The file that a demo writes when it is ready.

use crate::error::BenchError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The file; `R` is what its reader wants to know of a region.
#[derive(Deserialize)]
struct ReadyFile<R> {
    regions: Vec<R>,
}

/// What the ready file at `path` says of the regions.
pub(super) fn regions<R: DeserializeOwned>(path: &Path) -> Result<Vec<R>, BenchError> {
    let text = std::fs::read_to_string(path).map_err(|error| refused(path, error.to_string()))?;
    let ready: ReadyFile<R> = serde_json::from_str(&text).map_err(|error| refused(path, error.to_string()))?;
    Ok(ready.regions)
}

/// The error of a ready file that cannot be used.
pub(super) fn refused(path: &Path, reason: String) -> BenchError {
    BenchError::ReadyFile { path: path.display().to_string(), reason }
}
