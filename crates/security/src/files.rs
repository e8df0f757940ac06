//! Private files: readable by their owner alone, replaced whole.
//!
//! Invariants: a reader sees the file as it was or as it is to be, never a part; what was written is on disk before the call returns. A file that
//! others can read is refused, not mended: whoever could read it may have done so.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The longest file that is read, in bytes: certificates, keys and registers are a few kilobytes.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// The permissions that a private file gives to nobody.
const OTHERS: u32 = 0o077;

/// Why a file cannot be read or written. Names the file, never what is in it.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum FileError {
    #[error("{shown} can be read by others than its owner (mode {mode:03o}): run `chmod 600 {shown}`; if others may have read it, replace what is in it", shown = .path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("{} is longer than {FILE_BYTES_MAX} bytes", .0.display())]
    Long(PathBuf),
    #[error("{}: {reason}", .path.display())]
    Io { path: PathBuf, reason: io::Error },
    #[error("{} {what}", .path.display())]
    Content { path: PathBuf, what: String },
}

impl FileError {
    /// For `map_err`: what the system said of `path`.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> FileError {
        let path = path.to_owned();
        move |reason| FileError::Io { path, reason }
    }

    /// What is wrong with what `path` holds. `what` must not quote it.
    pub fn content(path: &Path, what: impl Into<String>) -> FileError {
        FileError::Content { path: path.to_owned(), what: what.into() }
    }

    /// True if there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, FileError::Io { reason, .. } if reason.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a file that may be public.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    read_from(path, File::open(path).map_err(FileError::io(path))?)
}

/// Reads a file that its owner alone may be able to read.
pub fn read_private(path: &Path) -> Result<Vec<u8>, FileError> {
    let file = File::open(path).map_err(FileError::io(path))?;
    let mode = file.metadata().map_err(FileError::io(path))?.permissions().mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(FileError::Open { path: path.to_owned(), mode });
    }
    read_from(path, file)
}

fn read_from(path: &Path, file: File) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(FileError::io(path))?;
    if bytes.len() as u64 > FILE_BYTES_MAX { Err(FileError::Long(path.to_owned())) } else { Ok(bytes) }
}

/// Puts `bytes` in the place of the file `path`, for its owner alone.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Temporary files are made with mode 600.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(FileError::io(path))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(FileError::io(path))?;
    file.persist(path).map_err(|error| FileError::Io { path: path.to_owned(), reason: error.error })?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(FileError::io(folder))
}

/// Makes the folder `path`, and those above it, for its owner alone. Leaves one that is there as it is.
pub fn make_folder(path: &Path) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(FileError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_private_file_is_its_owners_and_replaced_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        for text in ["first", "second"] {
            write_private(&path, text.as_bytes()).expect("written");
            assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
            assert_eq!(read_private(&path).expect("its owner reads it"), text.as_bytes());
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "no part of it stays");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).expect("set");
        let error = read_private(&path).expect_err("others can read it").to_string();
        assert!(error.starts_with(&format!("{} can be read by others than its owner (mode 604)", path.display())), "{error}");
        assert!(!error.contains("second"));
        assert_eq!(read(&path).expect("as a public one"), b"second");
    }

    #[test]
    fn a_file_beyond_the_bound_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("long");
        fs::write(&path, vec![0; FILE_BYTES_MAX as usize + 1]).expect("written");
        assert!(matches!(read(&path), Err(FileError::Long(_))));
        assert!(read(&folder.path().join("none")).expect_err("none").is_missing());
    }
}
