//! Writes the newest segment of the journal.
//!
//! ```text
//!   file     ████████████████████████▒▒▒▒|00000000|·······
//!            in the file, synced   buffer^        ^ allocated
//! ```
//!
//! `buffer` begins at a block's edge with what the file holds of that block. It goes to the file in whole blocks, filled up with zeroes,
//! at a sync or when it is long; what is in it until then is lost with the process.

use super::record::{self, Seed};
use super::segment;
use crate::engine::Write;
use crate::private;
use crate::stamp::Stamp;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// What is written at once is a multiple of this, and begins at one: no page of a file has to be read before it is written.
pub const BLOCK_BYTES: usize = 4_096;
/// So much of a new file is filled with zeroes at a time.
const ALLOCATED_AT_ONCE: usize = 256 << 10;
/// A longer buffer goes to the file before anybody syncs.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// The newest segment of a journal.
pub struct Journal {
    folder: PathBuf,
    segment: u64,
    secret: Seed,
    file: File,
    /// What follows `start` in the segment; what of that is in the file already lies before `written`.
    buffer: Vec<u8>,
    written: usize,
    /// Where the buffer begins in the file, at the edge of a block.
    start: u64,
    /// Up to here blocks of the file are on the disk.
    allocated: u64,
    /// The number of the last batch.
    last: u64,
}

impl Journal {
    /// Makes the first segment of a journal in the folder `folder`, which is there. It is on disk when this returns.
    pub fn make(folder: &Path) -> io::Result<()> {
        Journal::begin(folder, 1, 0, None)?.sync()
    }

    /// Goes on in segment `number`, which has `bytes` and is free behind them.
    pub(super) fn resume(folder: &Path, number: u64, secret: Seed, bytes: &[u8], last: u64) -> io::Result<Journal> {
        let file = private::open_file(&segment::path(folder, number), false)?;
        let start = bytes.len() / BLOCK_BYTES * BLOCK_BYTES;
        let buffer = bytes[start..].to_vec();
        let (written, start, allocated) = (buffer.len(), start as u64, file.metadata()?.len());
        Ok(Journal { folder: folder.to_owned(), segment: number, secret, file, buffer, written, start, allocated, last })
    }

    /// Begins segment `number`, which is not there.
    fn begin(folder: &Path, number: u64, last: u64, stamp: Option<Stamp>) -> io::Result<Journal> {
        let secret = draw_secret()?;
        let file = segment::make(folder, number)?;
        let allocated = file.metadata()?.len() / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        let mut buffer = Vec::new();
        record::put_begin(&mut buffer, number, last, secret, stamp);
        Ok(Journal { folder: folder.to_owned(), segment: number, secret, file, buffer, written: 0, start: 0, allocated, last })
    }

    /// The number of the newest segment.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// The number of the last batch.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The length of the newest segment, in bytes.
    pub fn bytes(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    /// Adds a batch; `mark` is there if it is the first one after a sync.
    pub fn append(&mut self, mark: Option<Option<Stamp>>, writes: &[Write]) -> io::Result<()> {
        self.last += 1;
        record::put_batch(&mut self.buffer, self.secret, self.last, mark, writes);
        if self.buffer.len() > BUFFER_BYTES_MAX { self.flush() } else { Ok(()) }
    }

    /// Makes durable what was added.
    pub fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        #[cfg(test)]
        super::tests::note_sync(self);
        self.file.sync_data()
    }

    /// Gives what was added to the system, and syncs nothing.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.written == self.buffer.len() {
            return Ok(());
        }
        let length = self.buffer.len();
        self.buffer.resize(length.next_multiple_of(BLOCK_BYTES), 0);
        self.file.write_all_at(&self.buffer, self.start)?;
        let end = self.start + self.buffer.len() as u64;
        if end > self.allocated {
            self.file.write_all_at(&[0; ALLOCATED_AT_ONCE], end)?;
            self.allocated = end + ALLOCATED_AT_ONCE as u64;
        }
        let full = length / BLOCK_BYTES * BLOCK_BYTES;
        self.buffer.truncate(length);
        self.buffer.drain(..full);
        self.buffer.shrink_to(2 * BUFFER_BYTES_MAX);
        self.start += full as u64;
        self.written = self.buffer.len();
        Ok(())
    }

    /// Gives up a segment before the newest: its file becomes the spare one. False if there is one already, or if it has more than `bytes_max`
    /// bytes; then it is to be removed.
    pub fn recycle(&self, number: u64, bytes_max: u64) -> io::Result<bool> {
        segment::recycle(&self.folder, number, bytes_max)
    }

    /// The file of a segment.
    pub fn path_of(&self, number: u64) -> PathBuf {
        segment::path(&self.folder, number)
    }

    /// Ends the segment and begins the next; all is durable then. The next is there before the end of this one says so, and is used only
    /// after: so its loss would be noticed.
    pub fn seal(&mut self, stamp: Option<Stamp>) -> io::Result<()> {
        // The end vouches for what is before it.
        self.sync()?;
        let mut next = Journal::begin(&self.folder, self.segment + 1, self.last, stamp)?;
        next.sync()?;
        record::put_end(&mut self.buffer, self.secret, self.last);
        self.sync()?;
        *self = next;
        Ok(())
    }
}

/// A number that nobody can guess.
fn draw_secret() -> io::Result<Seed> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(Seed::from_le_bytes(bytes))
}
