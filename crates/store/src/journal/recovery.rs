//! Reads the segments of a journal, and tells what a crash left from damage.

use super::record::{self, Kind, Record};
use super::segment::{self, damage};
use super::writer::{BLOCK_BYTES, Journal};
use crate::device;
use crate::engine::Write;
use crate::error::{StoreError, io_error};
use crate::stamp::Stamp;
use bytes::Bytes;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A journal as it was found.
pub struct Recovered {
    /// To go on with.
    pub journal: Journal,
    /// The segments before the newest.
    pub sealed: Vec<u64>,
    /// The stamp that was written last.
    pub stamp: Option<Stamp>,
}

/// What was read of a segment.
struct Segment {
    number: u64,
    bytes: Bytes,
    /// The length of the whole records that it begins with.
    whole: usize,
    ended: bool,
}

/// How far one has read.
struct Reader<'a> {
    folder: &'a Path,
    /// The number of the last batch that was seen; none before the first segment.
    last: Option<u64>,
    stamp: Option<Stamp>,
    /// The number of the last batch that table files hold.
    flushed: u64,
}

/// Reads the journal in `folder` and hands over its batches in order, but for the first `flushed`, which table files hold. Then makes it
/// ready to be gone on with: what a crash left of writes that were not synced is gone. If it is damaged nothing is changed.
pub fn recover(folder: &Path, flushed: u64, mut batch: impl FnMut(Vec<Write>)) -> Result<Recovered, StoreError> {
    let (mut segments, reader) = read_all(folder, flushed, &mut batch)?;
    let newest = segments.pop().expect("a journal has a segment");
    let journal = go_on(folder, &newest, reader.last.unwrap_or_default()).map_err(|source| io_error(folder, source))?;
    Ok(Recovered { journal, sealed: segments.iter().map(|segment| segment.number).collect(), stamp: reader.stamp })
}

/// Reads the journal in `folder` as one would to go on with it, and changes nothing. Returns the number of the last batch.
pub fn check(folder: &Path, flushed: u64) -> Result<u64, StoreError> {
    let (_, reader) = read_all(folder, flushed, &mut |_| {})?;
    Ok(reader.last.unwrap_or_default())
}

fn go_on(folder: &Path, newest: &Segment, last: u64) -> io::Result<Journal> {
    segment::remove(folder, newest.number + 1)?;
    clear_behind(folder, newest)?;
    Journal::resume(folder, newest.number, &newest.bytes[..newest.whole], last)
}

/// Reads all segments up to the one to go on with.
fn read_all<'a>(folder: &'a Path, flushed: u64, batch: &mut dyn FnMut(Vec<Write>)) -> Result<(Vec<Segment>, Reader<'a>), StoreError> {
    let numbers = segment::list(folder)?;
    let mut reader = Reader { folder, last: None, stamp: None, flushed };
    let mut segments: Vec<Segment> = Vec::new();
    for (place, &number) in numbers.iter().enumerate() {
        let mut segment = Segment::load(folder, number)?;
        reader.read(&mut segment, batch)?;
        let followers = &numbers[place + 1..];
        if segment.ended && followers.is_empty() {
            return Err(damage(&segment::path(folder, number + 1), "a segment of the journal is missing".into()));
        }
        if !segment.ended {
            let goes_on = reader.last.is_none() || segment.goes_on() || followers.len() > 1;
            // The next one is made before this one is ended, and used after that.
            if goes_on || !followers.is_empty() && Segment::load(folder, number + 1)?.is_used() {
                return Err(damage(
                    &segment::path(folder, number),
                    format!("the journal cannot be read past byte {}, but goes on", segment.whole),
                ));
            }
        }
        let ended = segment.ended;
        segments.push(segment);
        if !ended {
            break;
        }
        // Only of the newest are the bytes wanted again.
        segments.iter_mut().for_each(|segment| segment.bytes = Bytes::new());
    }
    match reader.last {
        Some(last) if last < flushed => Err(damage(folder, format!("the journal ends at batch {last}, and table files hold {flushed}"))),
        _ => Ok((segments, reader)),
    }
}

impl Segment {
    fn load(folder: &Path, number: u64) -> Result<Segment, StoreError> {
        let path = segment::path(folder, number);
        let bytes = device::read(&path).map_err(|source| io_error(&path, source))?;
        Ok(Segment { number, bytes: bytes.into(), whole: 0, ended: false })
    }

    /// True if something was synced behind what could be read.
    fn goes_on(&self) -> bool {
        record::mark_follows(&self.bytes.slice(self.whole..), self.number)
    }

    /// True if anything was synced behind the first record, of a segment of which nothing is read yet.
    fn is_used(&self) -> bool {
        let first = record::read(&self.bytes, self.number).map_or(0, |(_, length)| length);
        record::mark_follows(&self.bytes.slice(first..), self.number)
    }
}

impl Reader<'_> {
    /// Reads the whole records that `segment` begins with.
    fn read(&mut self, segment: &mut Segment, batch: &mut dyn FnMut(Vec<Write>)) -> Result<(), StoreError> {
        while !segment.ended
            && let Some((record, length)) = record::read(&segment.bytes.slice(segment.whole..), segment.number)
        {
            let wrong =
                |detail| damage(&segment::path(self.folder, segment.number), format!("the record at byte {} {detail}", segment.whole));
            let Record { kind, number, stamp, writes } = record;
            if (kind == Kind::Begin) != (segment.whole == 0) {
                return Err(wrong("is out of place"));
            }
            match (kind, self.last) {
                (Kind::Begin, None) if number > self.flushed => {
                    return Err(wrong(&format!("is of batch {number}, and table files hold {} only: a segment is missing", self.flushed)));
                }
                (Kind::Begin, None) => {}
                (Kind::Begin | Kind::End, Some(last)) if number == last => {}
                (Kind::Data | Kind::Mark, Some(last)) if number == last + 1 => {}
                _ => return Err(wrong("has a wrong number")),
            }
            self.last = Some(number);
            if matches!(kind, Kind::Begin | Kind::Mark) {
                self.stamp = stamp;
            }
            if matches!(kind, Kind::Data | Kind::Mark) && number > self.flushed {
                batch(writes);
            }
            segment.ended = kind == Kind::End;
            segment.whole += length;
        }
        Ok(())
    }
}

/// Fills the segment with zeroes behind what was read of it, up to the end of a block at least; they are on disk when this returns.
///
/// A batch that the crash left behind an unreadable one could else come back, behind what is written next.
fn clear_behind(folder: &Path, newest: &Segment) -> io::Result<()> {
    let behind = &newest.bytes[newest.whole..];
    let end = newest.bytes.len().next_multiple_of(BLOCK_BYTES);
    if end == newest.bytes.len() && behind.iter().all(|&byte| byte == 0) {
        return Ok(());
    }
    let file = segment::open(&segment::path(folder, newest.number), false)?;
    file.write_all_at(&vec![0; end - newest.whole], newest.whole as u64)?;
    file.sync_data()
}
