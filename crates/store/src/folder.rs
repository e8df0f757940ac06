//! A site's data folder: whose it is, which format it has, and who may use it now.
//!
//! ```text
//!   FORMAT      `rhumb 13` and a line feed: the folder is Rhumb's, and the format of what is in it
//!   engine/     the engine's files
//!   creating/   the engine's files while the folder is being made
//! ```
//!
//! Whatever else is in a folder that has its `FORMAT` is left alone: a site keeps a second data folder there.
//!
//! Making a folder is atomic: the engine is made in `creating`, `FORMAT` is written and synced, then `creating` is
//! renamed to `engine`; a crash in between is taken up where it was. A folder that is refused is left as it is. While in
//! use, the folder itself is locked; the system drops the lock with the process. Nobody but its owner can enter it: a folder that others
//! could enter is closed to them.

use crate::error::{StoreError, io_error};
use crate::layout::FORMAT_VERSION;
use crate::private;
use crate::small_file::{replace_file, sync_folder};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

const FORMAT: &str = "FORMAT";
const FORMAT_UNFINISHED: &str = "FORMAT.new";
const ENGINE: &str = "engine";
const CREATING: &str = "creating";

/// A data folder in use by this process.
pub struct Folder {
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl Folder {
    /// Takes the folder into use, making it if it is empty or not there; `make` then makes an empty engine in the path
    /// it is given.
    pub fn open(path: &Path, make: impl FnOnce(&Path) -> Result<(), StoreError>) -> Result<Folder, StoreError> {
        private::make_folder(path).map_err(|source| io_error(path, source))?;
        let lock = lock(path)?;
        let folder = Folder { path: path.to_owned(), _lock: lock };
        let new = folder.is_new()?;
        if !new {
            folder.check_format()?;
        }
        private::close_folder(path)?;
        if new {
            folder.create(make)?;
        }
        folder.check_engine()?;
        Ok(folder)
    }

    /// Whether a data folder was made in `path`.
    pub fn is_made(path: &Path) -> bool {
        path.join(FORMAT).exists()
    }

    /// Where the engine's files are in the data folder `path`.
    pub fn engine_of(path: &Path) -> PathBuf {
        path.join(ENGINE)
    }

    /// Where the engine's files are.
    pub fn engine(&self) -> PathBuf {
        Folder::engine_of(&self.path)
    }

    /// True if nothing is in the folder but what an interrupted making may have left.
    fn is_new(&self) -> Result<bool, StoreError> {
        let mut new = true;
        for entry in fs::read_dir(&self.path).map_err(|source| self.error(source))? {
            let name = entry.map_err(|source| self.error(source))?.file_name();
            if name == FORMAT {
                return Ok(false);
            }
            new &= name == CREATING || name == FORMAT_UNFINISHED;
        }
        if new { Ok(true) } else { Err(StoreError::NotRhumb { path: self.path.clone() }) }
    }

    fn create(&self, make: impl FnOnce(&Path) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let creating = self.path.join(CREATING);
        if creating.exists() {
            fs::remove_dir_all(&creating).map_err(|source| self.error(source))?;
        }
        private::make_folder(&creating).map_err(|source| self.error(source))?;
        make(&creating)?;
        replace_file(&self.path, FORMAT, &known_format()).map_err(|source| self.error(source))
    }

    fn check_format(&self) -> Result<(), StoreError> {
        let found = fs::read(self.path.join(FORMAT)).map_err(|source| self.error(source))?;
        if found == known_format().as_bytes() {
            return Ok(());
        }
        let readable = |text: &str| text.trim_end().to_owned();
        Err(StoreError::UnknownFormat {
            place: self.path.display().to_string(),
            found: readable(&String::from_utf8_lossy(&found)),
            known: readable(&known_format()),
        })
    }

    fn check_engine(&self) -> Result<(), StoreError> {
        let (creating, engine) = (self.path.join(CREATING), self.engine());
        if engine.exists() {
            return Ok(());
        }
        if !creating.exists() {
            return Err(StoreError::Corrupt {
                place: self.path.display().to_string(),
                detail: format!("the folder `{ENGINE}` is missing"),
            });
        }
        fs::rename(&creating, &engine).and_then(|()| sync_folder(&self.path)).map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> StoreError {
        io_error(&self.path, source)
    }
}

fn known_format() -> String {
    format!("rhumb {FORMAT_VERSION}\n")
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let folder = File::open(path).map_err(|source| io_error(path, source))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io_error(path, source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_the_system_becomes_what_the_operator_can_act_on() {
        let message = |kind: io::ErrorKind| io_error(Path::new("data"), kind.into()).to_string();
        assert!(message(io::ErrorKind::StorageFull).starts_with("no space is left on the disk of data"));
        assert!(message(io::ErrorKind::QuotaExceeded).starts_with("no space is left on the disk of data"));
        assert!(message(io::ErrorKind::ReadOnlyFilesystem).starts_with("data cannot be written"));
        assert!(message(io::ErrorKind::PermissionDenied).starts_with("data cannot be written"));
        assert_eq!(message(io::ErrorKind::Interrupted), "data: operation interrupted");
    }
}
