//! Ids of rows that have no primary key.
//!
//! An id is the gateway's timestamp (8 bytes), its region and its shard (2 bytes each), big-endian: unique without asking
//! anyone, and rows of one gateway lie in the order of their insertion.

use crate::types::{Datum, SqlType};
use rhumb_core::{SiteId, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};

/// The type of the column that holds an id.
pub(crate) const ROW_ID_TYPE: SqlType = SqlType::Bytea;
/// The name of that column, which no other column may have.
pub(crate) const ROW_ID_COLUMN: &str = "_rowid";

/// A site's source of row ids. One per gateway, shared by its sessions.
#[derive(Debug)]
pub struct RowIds {
    site: SiteId,
    last: AtomicU64,
}

impl RowIds {
    /// The source of that site.
    pub fn new(site: SiteId) -> RowIds {
        RowIds { site, last: AtomicU64::new(0) }
    }

    /// The next id; `now` is a timestamp that the gateway's clock has just issued. Rows of one statement may share it.
    pub fn next(&self, now: Timestamp) -> Datum {
        let after = |last: u64| now.bits().max(last + 1);
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        let issued = after(last.expect("the update always gives a value"));
        Datum::Binary(Some([&issued.to_be_bytes()[..], &self.site.to_be_bytes()].concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_timestamp_differ_and_ascend() {
        let ids = RowIds::new(SiteId::new(3, 1));
        let now = Timestamp::from_bits(1_000);
        let Datum::Binary(Some(first)) = ids.next(now) else { panic!("an id is bytes") };
        let Datum::Binary(Some(second)) = ids.next(now) else { panic!("an id is bytes") };
        assert_eq!(first, [0, 0, 0, 0, 0, 0, 3, 232, 0, 3, 0, 1]);
        assert!(first < second);
    }
}
