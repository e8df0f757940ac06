//! Rows and indexes of a table as keys and values of a transaction.
//!
//! A row is stored once, under its primary key; an index entry holds the primary key of its row. What a statement needs
//! is asked in as few rounds as can be, since a round may cost a wide-area trip: an `INSERT` of a hundred rows asks once
//! for all of its primary and unique keys.
//!
//! The caller has put each value into the variant that its column's type uses ([`coerce`](crate::types::coerce)); NOT
//! NULL and uniqueness are checked here.

mod backfill;
mod batch;
mod key_codec;
mod layout;
pub mod operations;
mod references;
mod row_codec;
mod row_id;
mod rows;
mod scan;
mod write;

#[cfg(test)]
mod codec_tests;
#[cfg(test)]
mod tests;

pub use backfill::BACKFILL_ROWS_MAX;
pub(crate) use backfill::fill_index;
pub use batch::Batch;
#[cfg(feature = "fuzzing")]
pub(crate) use layout::encode_row;
pub use layout::{KEY_BYTES_MAX, PRIMARY, decode_row};
pub(crate) use layout::{index_prefix, key_of};
pub use references::{canonical, each_with, existing, key_by};
pub use row_codec::missing;
pub use row_id::RowIds;
pub(crate) use row_id::{ROW_ID_COLUMN, ROW_ID_TYPE};
pub(crate) use rows::each_value;
pub use rows::{get_by_index, get_by_primary_key, primary_key};
pub use scan::{Cursor, SCAN_PAGE_ROWS, ScanSpec, SearchedIndex, each_page, primary_range};
pub use write::{Beside, Inserted, OnConflict, check_row, delete, failing_row, insert, key_text, rewrite, update};

use crate::types::Datum;

/// The values of all columns of a table, the hidden one included, in the order of its descriptor, each of the variant that
/// its column's type uses.
pub type Row = Vec<Datum>;
