//! Why a demo does not start or does not go on.

use crate::running::RunningError;
use crate::wan::WanError;
use rhumb_config::{ConfigError, FOLDER_NAMES};
use rhumb_node::secret::SecretError;
use rhumb_security::authority::AuthorityError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Why a demo does not start or does not go on.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum DemoError {
    #[error("--wan: {0}")]
    Wan(#[from] WanError),
    #[error("--wan {wan}: the region `{region}` cannot name a folder; expected {FOLDER_NAMES}")]
    RegionName { wan: String, region: String },
    #[error("--regions {asked}: {wan} has {there} regions; expected 1 to {there}")]
    TooManyRegions { asked: usize, wan: String, there: usize },
    #[error("{regions} regions of {sites_per_region} sites would be {sites} processes; a demo runs 1 to {max}")]
    Sites { regions: usize, sites_per_region: u16, sites: usize, max: usize },
    #[error("{} is not the data folder of a demo (it is not empty and has no file {file}): name an empty or a new folder", folder.display())]
    Foreign { folder: PathBuf, file: &'static str },
    #[error("{} holds a cluster of {kept}, not of {asked}: ask for the same, or name another folder", folder.display())]
    OtherShape { folder: PathBuf, kept: String, asked: String },
    #[error("--{key}: {why}")]
    Placement { key: String, why: String },
    #[error("{} holds a cluster with {kept}, not with {asked}: ask for the same or for none, or name another folder", folder.display())]
    OtherPlacement { folder: PathBuf, kept: String, asked: String },
    #[error("{} holds a cluster {}: ask for the same, or name another folder", folder.display(), if *.kept { "whose sites are encrypted, and this is without --secure" } else { "in plain text, and this is with --secure" })]
    OtherSecurity { folder: PathBuf, kept: bool },
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error("a demo is already running (process {pid}): stop it, or give this one a state file of its own with --state FILE")]
    AlreadyRunning { pid: u32 },
    #[error("no port from {from} to {to} is free on 127.0.0.1")]
    NoPort { from: u16, to: u16 },
    #[error("{doing} {}: {reason}", path.display())]
    File { doing: &'static str, path: PathBuf, reason: io::Error },
    #[error("{doing}: {reason}")]
    System { doing: &'static str, reason: io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    State(#[from] RunningError),
    #[error("{site} did not start ({status}); the end of {}:\n{last_words}", log.display())]
    Died { site: String, status: std::process::ExitStatus, log: PathBuf, last_words: String },
    #[error("not ready after {} s; {missing}", after.as_secs())]
    NotReady { after: Duration, missing: String },
}

impl DemoError {
    /// The exit code of the process: 2 for what was asked wrongly, 1 for what went wrong.
    pub fn exit_code(&self) -> u8 {
        match self {
            DemoError::Wan(_)
            | DemoError::RegionName { .. }
            | DemoError::TooManyRegions { .. }
            | DemoError::Sites { .. }
            | DemoError::Foreign { .. }
            | DemoError::OtherShape { .. }
            | DemoError::Placement { .. }
            | DemoError::OtherPlacement { .. }
            | DemoError::OtherSecurity { .. }
            | DemoError::Config(_) => 2,
            _ => 1,
        }
    }
}

/// For `map_err`: what was being done to which file.
pub fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> DemoError {
    let path = path.into();
    move |reason| DemoError::File { doing, path, reason }
}
