//! An option that all databases of a protocol share.

use crate::error::SqlResult;

/// An option of `CREATE DATABASE … WITH`, and a setting of `ALTER DATABASE`. It is no part of the transaction: once the cluster has decided, it
/// is so, even if the statement fails later.
#[derive(Debug)]
pub struct SharedOption {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// How it may be written.
    pub example: &'static str,
    /// How else.
    pub other_example: &'static str,
    /// Whether a value is one. Error 22023.
    pub check: fn(&str) -> SqlResult<()>,
}
