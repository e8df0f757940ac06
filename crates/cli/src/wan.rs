//! A matrix of round-trip times as options name it: a shipped profile, or a file.

use rhumb_core::rtt::RttError;
use rhumb_core::{RttMatrix, wan};
use std::io;
use thiserror::Error;

/// Why there is no matrix of that name.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum WanError {
    #[error("`{name}` is neither a shipped profile, nor a file that can be read ({reason}); the profiles are {known}")]
    Unknown { name: String, reason: io::Error, known: String },
    #[error(transparent)]
    Matrix(#[from] RttError),
}

/// The shipped profile called `name`, or else the matrix in the file of that name.
pub fn read(name: &str) -> Result<RttMatrix, WanError> {
    if let Some(profile) = wan::profile(name) {
        return Ok(profile.matrix());
    }
    let known = || wan::PROFILES.map(|profile| profile.name).join(", ");
    let unknown = |reason| WanError::Unknown { name: name.to_owned(), reason, known: known() };
    Ok(RttMatrix::parse(name, &std::fs::read_to_string(name).map_err(unknown)?)?)
}
