//! Folders and files that their owner alone can read: what clients have stored is nobody else's business on the machine.
//!
//! Whatever is made here has these rights whatever the umask says. The engine makes its files by itself, but in a folder that others
//! cannot enter.

use crate::error::StoreError;
use crate::error::io_error;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The rights of the group and of all others.
const OTHERS: u32 = 0o077;

/// Makes the folder `path` and those above it, as far as they are not there.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Makes the file `path` anew, to be written.
pub fn create_file(path: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)
}

/// Opens the file `path` to be written, as it is; makes it if `make` says so and it is not there.
pub fn open_file(path: &Path, make: bool) -> io::Result<File> {
    File::options().write(true).create(make).mode(FILE_MODE).open(path)
}

/// Takes the rights that others may have on a folder away.
pub fn close_folder(path: &Path) -> Result<(), StoreError> {
    let mode = fs::metadata(path).map_err(|source| io_error(path, source))?.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let closed = Permissions::from_mode(mode & !OTHERS);
    fs::set_permissions(path, closed).map_err(|source| StoreError::Exposed { path: path.to_owned(), mode, source })?;
    tracing::warn!("{} was open to other users of the machine (mode {mode:o}), and is so no more", path.display());
    Ok(())
}
