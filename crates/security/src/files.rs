//! Private files: readable by their owner alone, replaced whole.
//!
//! Invariants: a reader sees the file as it was or as it is to be, never a part; what was written is on disk before the call returns. A file that
//! others can read is refused, not mended: whoever could read it may have done so.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The longest file that is read, in bytes: certificates, keys and registers are a few kilobytes.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
const LOCK_FILE: &str = "lock";
/// The permissions that a private file gives to nobody.
const OTHERS: u32 = 0o077;

/// Why a file cannot be read or written. Names the file, never what is in it.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum FileError {
    #[error("{shown} can be read by others than its owner (mode {mode:03o}): run `chmod 600 {shown}`; if others may have read it, replace what is in it", shown = .path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("{} belongs to another user: run this as the user with the number {owner}, who could not read it otherwise", .path.display())]
    Owner { path: PathBuf, owner: u32 },
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

/// Puts `bytes` in the place of the file `path`, for its owner alone. A file of another user is left as it is: that user could read it no more.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    put(path, bytes, true)
}

/// Makes the file `path`, which is not there yet, with `bytes`, for its owner alone.
pub fn create_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    put(path, bytes, false)
}

fn put(path: &Path, bytes: &[u8], replaces: bool) -> Result<(), FileError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Temporary files are made with mode 600.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(FileError::io(path))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(FileError::io(path))?;
    let own = file.as_file().metadata().map_err(FileError::io(path))?.uid();
    match fs::metadata(path) {
        Ok(there) => check_owner(path, there.uid(), own)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(FileError::io(path)(error)),
    }
    let put = if replaces { file.persist(path) } else { file.persist_noclobber(path) };
    put.map_err(|error| FileError::Io { path: path.to_owned(), reason: error.error })?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(FileError::io(folder))
}

fn check_owner(path: &Path, owner: u32, own: u32) -> Result<(), FileError> {
    if owner == own { Ok(()) } else { Err(FileError::Owner { path: path.to_owned(), owner }) }
}

/// Waits until no other process changes what lies in `folder`; none does while what this returns lives.
pub fn lock(folder: &Path) -> Result<File, FileError> {
    let path = folder.join(LOCK_FILE);
    let open = File::options().create(true).write(true).truncate(false).mode(0o600).open(&path);
    open.and_then(|lock| lock.lock().map(|()| lock)).map_err(FileError::io(&path))
}

/// Makes the folder `path`, and those above it, for its owner alone. Leaves one that is there as it is.
pub fn make_folder(path: &Path) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(FileError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_file_that_is_there_is_made_by_nobody_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        create_private(&path, b"first").expect("made");
        let error = create_private(&path, b"second").expect_err("there");
        assert!(matches!(error, FileError::Io { reason, .. } if reason.kind() == io::ErrorKind::AlreadyExists));
        assert_eq!(read_private(&path).expect("as it was"), b"first");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "no part of it stays");
        let error = check_owner(&path, 1_000, 0).expect_err("of another user").to_string();
        assert!(error.contains("run this as the user with the number 1000"), "{error}");
    }

    #[test]
    fn a_file_of_another_user_is_left_to_that() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("register");
        write_private(&path, b"theirs").expect("written");
        // Giving files away takes privileges.
        if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
            assert!(matches!(write_private(&path, b"ours"), Err(FileError::Owner { owner: 12_345, .. })));
            assert_eq!(fs::read(&path).expect("text"), b"theirs");
        }
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
