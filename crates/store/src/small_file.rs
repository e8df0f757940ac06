//! A small file that is replaced as a whole: after a crash it is the old one or the new one.

use crate::private;
use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::path::Path;

/// Has the file `name` in `folder` hold `text`; it is on disk when this returns. What is not finished yet is called `name.new`.
pub fn replace_file(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    replace_file_naming_itself(folder, name, |_| text.to_owned())
}

/// The same for a text that says something of the very file that holds it.
pub fn replace_file_naming_itself(folder: &Path, name: &str, text: impl FnOnce(&Metadata) -> String) -> io::Result<()> {
    let unfinished = folder.join(format!("{name}.new"));
    let mut file = private::create_file(&unfinished)?;
    let text = text(&file.metadata()?);
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, folder.join(name))?;
    sync_folder(folder)
}

/// Removes the file `name` from `folder`; it is gone from the disk when this returns.
pub fn remove_file(folder: &Path, name: &str) -> io::Result<()> {
    fs::remove_file(folder.join(name))?;
    sync_folder(folder)
}

/// Makes renames and new names in the folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
