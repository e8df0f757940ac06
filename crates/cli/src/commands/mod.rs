//! One module per command.

pub mod bench;
pub mod cert;
pub mod chaos;
pub mod connect;
pub mod demo;
pub mod forecast;
pub mod init;
pub mod join;
pub mod lab;
mod place;
pub mod plan;
pub mod quorum;
pub mod quota;
mod reach;
pub mod region;
pub mod secret;
pub mod sim;
pub mod start;
pub mod status;
pub mod token;

use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};

/// Prints an error as people and scripts expect it, and the exit code that goes with it.
pub fn fail(error: impl std::fmt::Display, code: u8) -> ExitCode {
    eprintln!("rhumb: {error}");
    ExitCode::from(code)
}

/// A runtime of one thread for a command that mostly waits; or the error and its exit code.
fn runtime() -> Result<Runtime, (String, u8)> {
    Builder::new_current_thread().enable_all().build().map_err(|error| (format!("the system gives no event loop: {error}"), 1))
}
