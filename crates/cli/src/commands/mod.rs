//! One module per command.

pub mod sim;
pub mod start;

use std::process::ExitCode;

/// Prints an error as people and scripts expect it, and the exit code that goes with it.
pub fn fail(error: impl std::fmt::Display, code: u8) -> ExitCode {
    eprintln!("rhumb: {error}");
    ExitCode::from(code)
}
