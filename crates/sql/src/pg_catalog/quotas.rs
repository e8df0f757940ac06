//! `rhumb.quotas`: all quotas, with the tokens of this site at the moment of the statement.

use crate::engine::batch_of;
use crate::quota;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::TableSource;
use rhumb_quota::info::Info;
use std::sync::Arc;

/// Makes the table.
pub fn make(infos: &[Info]) -> Result<Arc<dyn TableSource>> {
    let fields: Vec<_> = quota::COLUMNS.iter().map(|(name, ty)| ty.field(name, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let rows: Vec<_> = infos.iter().map(quota::row).collect();
    let batch = batch_of(&schema, rows.len(), |row, column| rows[row][column].clone())?;
    Ok(provider_as_source(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
}
