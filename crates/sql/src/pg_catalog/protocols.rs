//! The tables in which a site shows its protocols.

use crate::engine::batch_of;
use crate::protocols::{PROTOCOLS, Protocol, SiteTable};
use crate::types::Datum;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::TableSource;
use std::sync::Arc;

/// Which there are.
pub fn tables() -> impl Iterator<Item = (Protocol, &'static SiteTable)> {
    PROTOCOLS.into_iter().filter_map(|(_, protocol)| protocol.table().map(|table| (protocol, table)))
}

/// Makes one, of these rows.
pub fn make(table: &SiteTable, rows: &[Vec<Datum>]) -> Result<Arc<dyn TableSource>> {
    let fields: Vec<_> = table.columns.iter().map(|(name, ty)| ty.field(name, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = batch_of(&schema, rows.len(), |row, column| rows[row][column].clone())?;
    Ok(provider_as_source(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
}
