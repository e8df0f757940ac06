//! Rows and indexes of a table as keys and values of a transaction.
//!
//! A row is stored once, under its primary key; an index entry holds the primary key of its row. What a statement needs
//! is asked in as few rounds as can be, since a round may cost a wide-area trip: an `INSERT` of a hundred rows asks once
//! for all of its primary and unique keys.

mod rows;
mod row_id;
mod scan;
mod write;

pub use row_id::RowIds;
pub use rows::{get_by_index, get_by_primary_key};
pub use scan::{Cursor, ScanSpec, SearchedIndex};
pub use write::{Inserted, OnConflict, delete, insert, update};

use crate::types::Datum;

/// The values of all columns of a table, the hidden one included, in the order of its descriptor, each of the variant that
/// its column's type uses.
pub type Row = Vec<Datum>;
