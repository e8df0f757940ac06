//! What ends a benchmark: its own errors, and those of finding the demo.

use crate::running::RunningError;
use rhumb_bench::BenchError;
use thiserror::Error;

/// What ends a benchmark.
#[derive(Debug, Error)]
#[error(transparent)]
pub enum Error {
    /// The benchmark itself.
    Bench(#[from] BenchError),
    /// The demo that it was to drive.
    Demo(#[from] RunningError),
}

impl Error {
    /// The exit code of the process: 2 for what was asked wrongly, 1 for what went wrong.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Bench(BenchError::Options(_) | BenchError::Address { .. } | BenchError::RedisAddress { .. }) => 2,
            Error::Bench(_) | Error::Demo(_) => 1,
        }
    }
}
