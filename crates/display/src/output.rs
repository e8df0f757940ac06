//! Files that results are written to: whole or not at all, and refused before the work if they cannot be there.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Readable by all whom the user's mask lets.
const MODE: u32 = 0o666;

/// A file that will be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    path: PathBuf,
}

impl Output {
    /// The file at `path`, which is not touched yet. Its folder must be there, and no folder may have its name.
    pub fn at(path: &Path) -> io::Result<Output> {
        let output = Output { path: path.to_owned() };
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if path.file_name().is_none() || !output.folder().is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}", output.folder().display())));
        }
        Ok(output)
    }

    /// The file beside this one whose name has `-suffix` before its extension.
    pub fn beside(&self, suffix: &str) -> Output {
        let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, extension) = (part(self.path.file_stem()), part(self.path.extension()));
        let dot = if extension.is_empty() { "" } else { "." };
        Output { path: self.path.with_file_name(format!("{stem}-{suffix}{dot}{extension}")) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `bytes`, so that a reader sees either all of them or what was there before.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(MODE)).tempfile_in(self.folder())?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }

    fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_others_can_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Output::at(&folder.path().join("vm.model")).expect("the folder is there");
        output.write(b"long ago").expect("written");
        output.write(b"now").expect("written");
        assert_eq!(std::fs::read(output.path()).expect("readable"), b"now");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1);
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode();
        std::fs::write(folder.path().join("plain"), "").expect("written");
        assert_eq!(mode(output.path()), mode(&folder.path().join("plain")));
    }

    #[test]
    fn a_file_that_cannot_be_there_is_refused_before_the_work() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = |path: &Path| Output::at(path).map_err(|error| error.to_string());
        let nowhere = folder.path().join("nowhere");
        assert_eq!(error(&nowhere.join("vm.model")), Err(format!("there is no folder {}", nowhere.display())));
        assert_eq!(error(folder.path()), Err("is a directory".into()));
        assert_eq!(error(Path::new("vm.model")).map(|output| output.path), Ok("vm.model".into()));
    }

    #[test]
    fn a_file_beside_has_a_suffix() {
        let beside = |path: &str| Output { path: path.into() }.beside("taxi").path;
        assert_eq!(beside("plots/errors.svg"), Path::new("plots/errors-taxi.svg"));
        assert_eq!(beside("errors"), Path::new("errors-taxi"));
    }
}
