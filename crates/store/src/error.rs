//! What can go wrong in a store. Every message names the place and says what to do.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the store could not be opened, read or written. None of these changes or loses what is stored.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The data is of a format that this program does not know.
    #[error("{place} holds data of format `{found}`, but this version of rhumb knows only `{known}`: run the version that wrote it")]
    UnknownFormat {
        /// Where.
        place: String,
        /// The format found.
        found: String,
        /// The format known.
        known: String,
    },
    /// The data contradicts its checksums or its layout.
    #[error(
        "{place} is damaged: {detail}; do not put a copy in its place, the site would break what it promised since. If the disk can be mended, \
         start the site with this very folder; if not, leave it stopped and declare it lost: the other regions have its data"
    )]
    Corrupt {
        /// Where.
        place: String,
        /// What was found.
        detail: String,
    },
    /// The folder has files in it, but none that says it is Rhumb's.
    #[error("{path} is not a data folder of rhumb (it is not empty and has no file FORMAT): name an empty or a new folder")]
    NotRhumb {
        /// The folder.
        path: PathBuf,
    },
    /// The folder, or a file in it, may not be written.
    #[error("{path} cannot be written: {source}; give this user write access to the folder, or name another one")]
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Other users may enter the folder, and that cannot be changed.
    #[error(
        "{path} is open to other users (mode {mode:o}) and cannot be closed to them: {source}; run as its owner, or say `chmod go= {path}`"
    )]
    Exposed {
        /// The folder.
        path: PathBuf,
        /// Its rights.
        mode: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is full.
    #[error("no space is left on the disk of {path}: {source}; free some and start the site again, what was committed is kept")]
    Full {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error("{path} is in use by another process: stop that one first, or name another folder")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// An earlier write failed, so that nothing more is taken.
    #[error("{path} takes no more writes since an earlier one failed ({cause}): mend the cause and start the site again; nothing is lost")]
    Poisoned {
        /// The folder.
        path: PathBuf,
        /// What a write there says now.
        cause: String,
    },
    /// A key is longer than the store takes.
    #[error("a key of {bytes} bytes is too long: {bytes_max} is the most that can be stored")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        bytes_max: usize,
    },
    /// The system refused something else.
    #[error("{path}: {source}")]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Damage at `place`.
pub(crate) fn damage(place: &Path, detail: impl Into<String>) -> StoreError {
    StoreError::Corrupt { place: place.display().to_string(), detail: detail.into() }
}

/// What the error of a file system call on `path` means to the operator.
pub(crate) fn io_error(path: &Path, source: io::Error) -> StoreError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { path, source },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { path, source },
        _ => StoreError::Io { path, source },
    }
}
