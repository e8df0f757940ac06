//! Ids of rows that have no primary key.

use crate::types::Datum;
use rhumb_core::{SiteId, Timestamp};

/// A site's source of row ids: ordered by time, unique in the cluster. One per gateway.
#[derive(Debug)]
pub struct RowIds {
    site: SiteId,
}

impl RowIds {
    /// The source of that site.
    pub fn new(site: SiteId) -> RowIds {
        RowIds { site }
    }

    /// The next id; `now` is the gateway's clock.
    pub fn next(&self, now: Timestamp) -> Datum {
        let _ = (self.site, now);
        todo!()
    }
}
