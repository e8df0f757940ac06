//! The files of segments.

use crate::error::{StoreError, damage, io_error};
use crate::private;
use crate::small_file::sync_folder;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const EXTENSION: &str = "jnl";
const SPARE: &str = "spare";

/// The file of segment `number`.
pub fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.{EXTENSION}"))
}

/// The numbers of the segments in `folder`, without gaps.
pub fn list(folder: &Path) -> Result<Vec<u64>, StoreError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).map_err(|source| io_error(folder, source))? {
        let file = entry.map_err(|source| io_error(folder, source))?.path();
        if file.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        let number = file.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u64>().ok());
        let number = number.filter(|&number| number < u64::MAX && file == path(folder, number));
        numbers.push(number.ok_or_else(|| damage(&file, "a segment of the journal is named by a number"))?);
    }
    numbers.sort_unstable();
    match numbers.windows(2).find(|pair| pair[1] != pair[0] + 1) {
        Some(pair) => Err(damage(&path(folder, pair[0] + 1), "a segment of the journal is missing")),
        None if numbers.is_empty() => Err(damage(folder, "the journal is missing")),
        None => Ok(numbers),
    }
}

/// Makes the file of segment `number`, of the spare one if there is any. Its name is on disk when this returns.
pub fn make(folder: &Path, number: u64) -> io::Result<File> {
    let path = path(folder, number);
    match fs::rename(folder.join(SPARE), &path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = private::open_file(&path, true)?;
    sync_folder(folder)?;
    Ok(file)
}

/// Has the file of segment `number`, which is given up, be the spare one. False if there is one already, or if it is longer than `bytes_max`:
/// one large batch would else have files be large for ever.
pub fn recycle(folder: &Path, number: u64, bytes_max: u64) -> io::Result<bool> {
    let (path, spare) = (path(folder, number), folder.join(SPARE));
    if spare.exists() || fs::metadata(&path)?.len() > bytes_max {
        return Ok(false);
    }
    fs::rename(path, spare)?;
    Ok(true)
}

/// Removes segment `number`, if it is there.
pub fn remove(folder: &Path, number: u64) -> io::Result<()> {
    match fs::remove_file(path(folder, number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
