//! Data folders that are copied and put back, as a snapshot of a disk does.

use std::fs;
use std::path::{Path, PathBuf};

/// Copies all that is in `from`.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for path in entries(from) {
        let copied = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, copied).expect("copied");
        }
    }
}

/// Makes of a folder what it was when the copy was taken: all that is in both stays the same file.
pub fn roll_back(folder: &Path, copied: &Path) {
    for path in entries(folder) {
        let before = copied.join(path.file_name().expect("a name"));
        match (path.is_dir(), before.exists()) {
            (true, true) => roll_back(&path, &before),
            (false, true) => fs::write(&path, fs::read(&before).expect("readable")).expect("written"),
            (true, false) => fs::remove_dir_all(&path).expect("removed"),
            (false, false) => fs::remove_file(&path).expect("removed"),
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
}
