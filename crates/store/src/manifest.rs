//! Checks fjall's manifests before fjall opens them.
//!
//! Each tree of fjall is a folder with a file `v<N>`, which lists its table files, and a file `current`:
//!
//! ```text
//!   N:8 · XXH3-128 of the file `v<N>`:16 · kind of checksum:1 (0)      integers are little-endian
//! ```
//!
//! fjall writes that checksum but does not verify it, and takes a tree without `current` for a new one; either would
//! silently drop table files. Without its file `version` fjall begins a new database. A data folder is taken into use only when all its trees are made, so none may be lacking.

use crate::error::StoreError;
use crate::error::io_error;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

const VERSION: &str = "version";
const TREES: &str = "keyspaces";
/// fjall's own tree of names, and the store's.
const TREE_NAMES: [&str; 2] = ["0", "1"];
const CURRENT: &str = "current";

/// Checks the manifests of both trees in fjall's folder.
pub fn check(folder: &Path) -> Result<(), StoreError> {
    if !folder.join(VERSION).exists() {
        return Err(damage(folder, "its file `version` is missing"));
    }
    for name in TREE_NAMES {
        let tree = folder.join(TREES).join(name);
        let sound = is_sound(&tree).map_err(|source| match source.kind() {
            ErrorKind::NotFound => damage(&tree, "its list of files is missing"),
            _ => io_error(&tree, source),
        })?;
        if !sound {
            return Err(damage(&tree, "its list of files fails its checksum"));
        }
    }
    Ok(())
}

fn is_sound(tree: &Path) -> io::Result<bool> {
    let current = fs::read(tree.join(CURRENT))?;
    let Some((number, rest)) = current.split_first_chunk::<8>() else { return Ok(false) };
    let Some((checksum, [0])) = rest.split_first_chunk::<16>() else { return Ok(false) };
    let manifest = fs::read(tree.join(format!("v{}", u64::from_le_bytes(*number))))?;
    Ok(xxh3_128(&manifest) == u128::from_le_bytes(*checksum))
}

fn damage(place: &Path, detail: &str) -> StoreError {
    StoreError::Corrupt { place: place.display().to_string(), detail: detail.into() }
}
