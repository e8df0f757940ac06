//! Why a site does not go on with its data folder.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// What to do about a folder that is not what the site left. There is one answer, whatever happened to the folder.
pub const ADVICE: &str = "the site would break what it promised since. No copy will do, however new. Start it with the very folder that it had; \
                          if that is lost, leave it stopped and declare it lost, as docs/configuration.md says: the others go on without it";

/// Why a data folder is refused at the start.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum IncarnationError {
    #[error("{path} cannot be read or written: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{folder} is missing or empty, but the site has written there: {ADVICE}")]
    Missing { folder: PathBuf },
    #[error(
        "{path} is a copy, or stands where it was copied to, of a folder in use: {ADVICE}. (To move a folder, stop the site with SIGTERM first. \
         A site that was killed is started once where it was)"
    )]
    Copied { path: PathBuf },
    #[error("{folder} holds what the site wrote {found}, but it was written last {expected}: it is an older copy, and {ADVICE}")]
    Older { folder: PathBuf, found: String, expected: String },
    #[error("{path} is missing, although the site was not stopped but died: a part of the folder is lost, and {ADVICE}")]
    Torn { path: PathBuf },
}
