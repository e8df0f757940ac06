//! Reads the segments of a journal, and tells what a crash left from damage.

use super::record::{self, Kind, Record, Seed};
use super::segment;
use super::writer::{BLOCK_BYTES, Journal};
use crate::device;
use crate::engine::Write;
use crate::error::{StoreError, damage, io_error};
use crate::private;
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
    /// What its first record says, if that can be read.
    begin: Option<Begin>,
    /// The length of the whole records that it begins with.
    whole: usize,
    ended: bool,
}

/// What the first record of a segment says.
#[derive(Clone, Copy)]
struct Begin {
    secret: Seed,
    /// The number of the last batch before.
    last: u64,
    stamp: Option<Stamp>,
    bytes: usize,
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
    let Begin { secret, .. } = newest.begin.expect("it was read");
    Journal::resume(folder, newest.number, secret, &newest.bytes[..newest.whole], last)
}

/// Reads all segments up to the one to go on with.
fn read_all<'a>(folder: &'a Path, flushed: u64, batch: &mut dyn FnMut(Vec<Write>)) -> Result<(Vec<Segment>, Reader<'a>), StoreError> {
    let numbers = segment::list(folder)?;
    let mut reader = Reader { folder, last: None, stamp: None, flushed };
    let mut segments: Vec<Segment> = Vec::new();
    for (place, &number) in numbers.iter().enumerate() {
        let mut segment = Segment::load(folder, number)?;
        reader.read(&mut segment, batch)?;
        let is_newest = !segment.ended;
        let followers = &numbers[place + 1..];
        if is_newest {
            reader.check_end(&segment, followers)?;
        } else if followers.is_empty() {
            return Err(damage(&segment::path(folder, number + 1), "a segment of the journal is missing"));
        } else {
            // Only of the newest are the bytes wanted again.
            segment.bytes = Bytes::new();
        }
        segments.push(segment);
        if is_newest {
            break;
        }
    }
    match reader.last {
        Some(last) if last < flushed => Err(damage(folder, format!("the journal ends at batch {last}, and table files hold {flushed}"))),
        _ => Ok((segments, reader)),
    }
}

impl Segment {
    fn load(folder: &Path, number: u64) -> Result<Segment, StoreError> {
        let path = segment::path(folder, number);
        let bytes: Bytes = device::read(&path).map_err(|source| io_error(&path, source))?.into();
        let begin = record::read_begin(&bytes, number)
            .and_then(|(Record { number: last, stamp, secret, .. }, bytes)| Some(Begin { secret: secret?, last, stamp, bytes }));
        Ok(Segment { number, bytes, begin, whole: 0, ended: false })
    }

    /// True if something was synced behind `place`.
    fn goes_on_behind(&self, place: usize) -> bool {
        self.begin.is_some_and(|begin| record::mark_follows(&self.bytes.slice(place..), begin.secret))
    }
}

impl Reader<'_> {
    /// Reads the whole records that `segment` begins with.
    fn read(&mut self, segment: &mut Segment, batch: &mut dyn FnMut(Vec<Write>)) -> Result<(), StoreError> {
        let wrong = |place: usize, detail: &str| {
            damage(&segment::path(self.folder, segment.number), format!("the record at byte {place} {detail}"))
        };
        let Some(begin) = segment.begin else { return Err(wrong(0, "cannot be read, and the segment before says that it is there")) };
        match self.last {
            None if begin.last > self.flushed => {
                let detail = format!("is of batch {}, and table files hold {} only: a segment is missing", begin.last, self.flushed);
                return Err(wrong(0, &detail));
            }
            Some(last) if begin.last != last => return Err(wrong(0, "has a wrong number")),
            _ => {}
        }
        let mut last = begin.last;
        (self.stamp, segment.whole) = (begin.stamp, begin.bytes);
        while !segment.ended
            && let Some((record, length)) = record::read(&segment.bytes.slice(segment.whole..), begin.secret)
        {
            let Record { kind, number, stamp, writes, .. } = record;
            if number != if kind == Kind::End { last } else { last + 1 } {
                return Err(wrong(segment.whole, "has a wrong number"));
            }
            last = number;
            if kind == Kind::Mark {
                self.stamp = stamp;
            }
            if kind != Kind::End && number > self.flushed {
                batch(writes);
            }
            segment.ended = kind == Kind::End;
            segment.whole += length;
        }
        self.last = Some(last);
        Ok(())
    }

    /// The newest segment that is used has no end: it is as a crash may have left it, and so is the one behind it, if there is one.
    fn check_end(&self, newest: &Segment, followers: &[u64]) -> Result<(), StoreError> {
        let mut goes_on = followers.len() > 1 || newest.goes_on_behind(newest.whole);
        if let [next] = followers {
            // It is made when all before it is on disk, and used once that has its end.
            let next = Segment::load(self.folder, *next)?;
            goes_on |= next.begin.is_some_and(|begin| Some(begin.last) > self.last || next.goes_on_behind(begin.bytes));
        }
        if goes_on {
            let detail = format!("the journal cannot be read past byte {}, but goes on", newest.whole);
            return Err(damage(&segment::path(self.folder, newest.number), detail));
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
    let file = private::open_file(&segment::path(folder, newest.number), false)?;
    file.write_all_at(&vec![0; end - newest.whole], newest.whole as u64)?;
    file.sync_data()
}
