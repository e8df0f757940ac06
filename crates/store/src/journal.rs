//! Checks fjall's journals before fjall opens them, so that damage to synced data is refused and not cut off.
//!
//! ```text
//!   start  01 items:4 sequence:8
//!   item   02 kind:1 compression:1 keyspace:8 key length:2 value length:4 stored length:4 key stored
//!   end    03 XXH3 of the items:8 "FJL" 03
//! ```
//!
//! Integers are little-endian; a batch is a start, its items and an end. What follows the last whole batch is zeroes, or
//! what a crash left of writes not yet synced (of a power loss: any of its pages), or damage. The engine's *mark* tells
//! the latter two apart: a batch that begins with it was written when all before it had been synced. So a mark behind
//! an unreadable place proves damage, as does anything but zeroes behind the last batch of a journal that has a successor,
//! or a sequence number that does not rise (the checksum does not cover it). What is left of a crash is cut off here. Journals are read
//! from the device: after a failed sync the system may remember what the disk does not have.
//!
//! Not noticed: damage to what was synced last before a crash, as long as nothing was written after it.

use crate::device;
use crate::error::StoreError;
use crate::error::io_error;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The key whose writing says that all before was synced.
pub const MARK: &[u8] = b"\x00synced";

const EXTENSION: &str = "jnl";
const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const TRAILER: &[u8] = b"FJL\x03";
const START_BYTES: usize = 1 + 4 + 8;
const ITEM_HEADER_BYTES: usize = 1 + 1 + 1 + 8 + 2 + 4 + 4;

/// Checks the journals in fjall's folder and cuts off what a crash left of writes that were not synced.
pub fn check(folder: &Path) -> Result<(), StoreError> {
    let journals = journals(folder)?;
    let mut last_sequence = None;
    for (index, path) in journals.iter().enumerate() {
        let bytes = device::read(path).map_err(|source| io_error(path, source))?;
        let whole = check_batches(path, &bytes, &mut last_sequence)?;
        let rest = &bytes[whole..];
        if rest.iter().all(|&byte| byte == 0) {
            continue;
        }
        if index + 1 < journals.len() || mark_follows(rest) {
            return Err(damage(path, format!("the journal cannot be read past byte {whole}, but goes on")));
        }
        tracing::info!("{} goes on for {} bytes past its last whole batch: the end of a crash, cut off", path.display(), rest.len());
        cut(path, whole).map_err(|source| io_error(path, source))?;
    }
    Ok(())
}

/// The journals, oldest first.
fn journals(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut numbered = Vec::new();
    for entry in fs::read_dir(folder).map_err(|source| io_error(folder, source))? {
        let path = entry.map_err(|source| io_error(folder, source))?.path();
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u64>().ok());
        numbered.push((number.ok_or_else(|| damage(&path, "a journal is named by a number".into()))?, path));
    }
    numbered.sort();
    if numbered.is_empty() {
        return Err(damage(folder, "the journal is missing".into()));
    }
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}

/// The length of the whole batches that a journal begins with.
fn check_batches(path: &Path, bytes: &[u8], last_sequence: &mut Option<u64>) -> Result<usize, StoreError> {
    let mut rest = bytes;
    while let Some((sequence, behind)) = batch(rest) {
        if last_sequence.is_some_and(|last| sequence <= last) {
            return Err(damage(path, format!("the batch at byte {} has a wrong sequence number", bytes.len() - rest.len())));
        }
        *last_sequence = Some(sequence);
        rest = behind;
    }
    Ok(bytes.len() - rest.len())
}

/// The sequence number of the batch that `bytes` begins with, and the bytes behind it; `None` if it is not whole.
fn batch(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (start, items) = bytes.split_at_checked(START_BYTES)?;
    if start[0] != START {
        return None;
    }
    let mut rest = items;
    for _ in 0..u32::from_le_bytes(*start[1..].first_chunk()?) {
        rest = item(rest)?;
    }
    let checksum = xxh3_64(&items[..items.len() - rest.len()]);
    let (end, behind) = rest.split_at_checked(1 + 8 + TRAILER.len())?;
    let whole = end[0] == END && end[1..9] == checksum.to_le_bytes() && &end[9..] == TRAILER;
    whole.then_some((u64::from_le_bytes(*start[5..].first_chunk()?), behind))
}

/// The bytes behind the item that `bytes` begins with.
fn item(bytes: &[u8]) -> Option<&[u8]> {
    let (header, rest) = bytes.split_at_checked(ITEM_HEADER_BYTES)?;
    if header[0] != ITEM {
        return None;
    }
    let key_length = u16::from_le_bytes(*header[11..].first_chunk()?);
    let stored_length = u32::from_le_bytes(*header[17..].first_chunk()?);
    rest.get(usize::from(key_length)..)?.get(stored_length as usize..)
}

/// True if a whole batch that begins with a mark lies anywhere in `bytes`.
fn mark_follows(bytes: &[u8]) -> bool {
    let places = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    places.filter_map(|(place, _)| place.checked_sub(START_BYTES + ITEM_HEADER_BYTES)).any(|start| batch(&bytes[start..]).is_some())
}

fn cut(path: &Path, length: usize) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(length as u64)?;
    file.sync_all()
}

fn damage(path: &Path, detail: String) -> StoreError {
    StoreError::Corrupt { place: path.display().to_string(), detail }
}
