//! The mark of a site that runs: the file [`FILE`], written before anything else at a start and removed after all else at a stop.
//!
//! ```text
//!   incarnation 1732000400000000
//!   RUNNING 1732000400.123456789
//!   commit 1732000000.003141592
//!   …
//! ```
//!
//! It tells two things to the next start. That the site died, if it is there. And that it died *here*: the file names the birth of itself
//! and of the folders of the stores, which the file system notes and no copy has. So a copy that was taken while the site ran, or after
//! it died, is found out without asking anybody. Where the file system notes no births the inode's number stands for it. A snapshot of
//! the whole disk has the same births: that is for the peers to find out.

use super::IncarnationId;
use crate::service::Service;
use rhumb_store::{remove_file, replace_file_naming_itself};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The file.
pub const FILE: &str = "RUNNING";
const INCARNATION: &str = "incarnation";

/// When a file or folder was made, or which it is where nobody knows that.
type Birth = String;

/// What the mark says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The incarnation that runs, or ran when it died.
    pub incarnation: IncarnationId,
    /// The birth of the file itself, and of the folders of stores, by name.
    births: BTreeMap<String, Birth>,
}

impl Running {
    /// The mark in a data folder, if there is one.
    pub fn read(folder: &Path) -> io::Result<Option<Running>> {
        let mut births: BTreeMap<String, String> = super::read_lines(folder, FILE, parse)?.into_iter().collect();
        if births.is_empty() && !folder.join(FILE).exists() {
            return Ok(None);
        }
        let incarnation = births.remove(INCARNATION).and_then(|incarnation| incarnation.parse().ok());
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it names no incarnation");
        Ok(Some(Running { incarnation: incarnation.ok_or_else(damaged)?, births }))
    }

    /// Leaves the mark of `incarnation`, which writes the stores whose files are in these folders. It is on disk when this returns.
    pub fn write<'a>(folder: &Path, incarnation: IncarnationId, stores: impl Iterator<Item = (Service, &'a Path)>) -> io::Result<()> {
        let line = |name: &str, birth: &str| format!("{name} {birth}\n");
        let stores = stores.map(|(store, files)| Ok(line(store.name(), &birth(&fs::metadata(files)?))));
        let stores: String = stores.collect::<io::Result<_>>()?;
        replace_file_naming_itself(folder, FILE, |own| {
            [line(INCARNATION, &incarnation.to_string()), line(FILE, &birth(own)), stores].concat()
        })
    }

    /// Whether the mark is one of a copy, of itself or of a store's files.
    pub fn is_copied(&self, folder: &Path) -> io::Result<bool> {
        self.differs(FILE, &folder.join(FILE))
    }

    /// Whether the files of `store` are others than those that were there when the site ran.
    pub fn is_copied_store(&self, store: Service, files: &Path) -> io::Result<bool> {
        self.differs(store.name(), files)
    }

    fn differs(&self, name: &str, path: &Path) -> io::Result<bool> {
        let Some(expected) = self.births.get(name) else { return Ok(false) };
        Ok(birth(&fs::metadata(path)?) != *expected)
    }

    /// Takes the mark away: the site has stopped.
    pub fn remove(folder: &Path) -> io::Result<()> {
        remove_file(folder, FILE)
    }
}

fn parse(line: &str) -> Option<(String, String)> {
    line.split_once(' ').map(|(name, birth)| (name.to_owned(), birth.to_owned()))
}

fn birth(metadata: &Metadata) -> Birth {
    match metadata.created().map(|created| created.duration_since(UNIX_EPOCH)) {
        Ok(Ok(since)) => format!("{}.{:09}", since.as_secs(), since.subsec_nanos()),
        _ => format!("inode:{}", metadata.ino()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_knows_itself_and_the_folders_of_its_stores_from_copies() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        assert_eq!(Running::read(at).expect("none"), None);
        let files = at.join("engine");
        fs::create_dir(&files).expect("made");
        Running::write(at, 7, [(Service::Commit, files.as_path())].into_iter()).expect("written");
        let running = Running::read(at).expect("readable").expect("there");
        assert_eq!(running.incarnation, 7);
        assert_eq!(
            (running.is_copied(at).expect("there"), running.is_copied_store(Service::Commit, &files).expect("there")),
            (false, false)
        );
        assert!(!running.is_copied_store(Service::Quad, &files).expect("there"), "it knows nothing of that");

        // Later than what the clock of a file system cannot tell apart.
        std::thread::sleep(std::time::Duration::from_millis(30));
        fs::rename(&files, at.join("before")).expect("moved");
        fs::create_dir(&files).expect("made");
        assert!(running.is_copied_store(Service::Commit, &files).expect("there"));
        assert!(!running.is_copied_store(Service::Commit, &at.join("before")).expect("there"), "moved, not copied");
        let copy = tempfile::tempdir().expect("a folder");
        fs::copy(at.join(FILE), copy.path().join(FILE)).expect("copied");
        assert!(Running::read(copy.path()).expect("readable").expect("there").is_copied(copy.path()).expect("there"));

        Running::remove(at).expect("removed");
        assert_eq!(Running::read(at).expect("none"), None);
        fs::write(at.join(FILE), "RUNNING 7\n").expect("written");
        assert_eq!(Running::read(at).expect_err("damaged").to_string(), "it names no incarnation");
    }
}
