//! Reads a file as the device has it, not as the system remembers it.
//!
//! When a sync fails, the system may take the pages that it could not write for clean: they can still be read, the next sync succeeds, and
//! with the next power failure they are gone. So after a restart nothing may rest on what was read from memory. Here the file is synced,
//! its pages are dropped, and only then it is read.
//!
//! The drop is a request, which the system grants for pages that are clean and that nobody maps. A file system without a device
//! has nothing else than its memory.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The bytes of the file at `path`.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    forget(&file)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Has the system forget what it remembers of a file.
#[cfg(target_os = "linux")]
fn forget(file: &File) -> io::Result<()> {
    file.sync_all()?;
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// A development machine: there is no such request.
#[cfg(not(target_os = "linux"))]
fn forget(file: &File) -> io::Result<()> {
    file.sync_all()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    use std::fs;
    use std::io::IoSliceMut;
    use std::time::Duration;

    const TMPFS: i64 = 0x0102_1994;

    /// True if the first page of a file is in memory.
    fn is_remembered(file: &File) -> bool {
        match preadv2(file, &mut [IoSliceMut::new(&mut [0; 64])], 0, ReadWriteFlags::NOWAIT) {
            Ok(read) => read > 0,
            Err(Errno::AGAIN) => false,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn what_is_read_comes_from_the_device() {
        let folder = tempfile::tempdir().expect("a folder");
        if rustix::fs::statfs(folder.path()).expect("a file system").f_type as i64 == TMPFS {
            return;
        }
        let path = folder.path().join("1.jnl");
        fs::write(&path, vec![7; 100_000]).expect("written");
        let file = File::open(&path).expect("there");
        assert!(is_remembered(&file), "it was written just now");
        // The system refuses a page that another of its threads holds at this moment, and asking after a page can read it ahead.
        let is_forgotten = (0..200).any(|attempt| {
            std::thread::sleep(Duration::from_millis(attempt));
            forget(&file).expect("asked for");
            !is_remembered(&file)
        });
        assert!(is_forgotten, "the next read asks the device");
        assert_eq!(read(&path).expect("readable"), vec![7; 100_000]);
    }
}
