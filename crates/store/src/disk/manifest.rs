//! Checks the list of table files before the tree is opened.
//!
//! The tree's folder has a file `v<N>`, which lists its table files, and a file `current`:
//!
//! ```text
//!   N:8 · XXH3-128 of the file `v<N>`:16 · kind of checksum:1 (0)      integers are little-endian
//! ```
//!
//! The library writes that checksum but does not verify it, and takes a tree without `current` for a new one; either would
//! silently drop table files. A data folder is taken into use only when its tree is made, so it may not be lacking.

use crate::error::{StoreError, damage, io_error};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

const CURRENT: &str = "current";

/// Checks the list of files of the tree in the folder `tree`.
pub fn check(tree: &Path) -> Result<(), StoreError> {
    match is_sound(tree) {
        Ok(true) => Ok(()),
        Ok(false) => Err(damage(tree, "its list of files fails its checksum")),
        Err(source) if source.kind() == ErrorKind::NotFound => Err(damage(tree, "its list of files is missing")),
        Err(source) => Err(io_error(tree, source)),
    }
}

fn is_sound(tree: &Path) -> io::Result<bool> {
    let current = fs::read(tree.join(CURRENT))?;
    let Some((number, rest)) = current.split_first_chunk::<8>() else { return Ok(false) };
    let Some((checksum, [0])) = rest.split_first_chunk::<16>() else { return Ok(false) };
    let manifest = fs::read(tree.join(format!("v{}", u64::from_le_bytes(*number))))?;
    Ok(xxh3_128(&manifest) == u128::from_le_bytes(*checksum))
}
