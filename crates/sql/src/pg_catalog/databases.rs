//! `rhumb.databases`: by which protocol each database commits. `pg_database` has the rest.

use crate::engine::batch_of;
use crate::schema::DatabaseDescriptor;
use crate::types::{Datum, SqlType};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::TableSource;
use std::sync::Arc;

const COLUMNS: [(&str, SqlType); 2] = [("name", SqlType::Text), ("protocol", SqlType::Text)];

/// Makes the table.
pub fn make(databases: &[Arc<DatabaseDescriptor>]) -> Result<Arc<dyn TableSource>> {
    let fields: Vec<_> = COLUMNS.iter().map(|(name, ty)| ty.field(name, false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let cell = |row: usize, column: usize| {
        let database = &databases[row];
        Datum::Utf8(Some([&database.name, &database.protocol][column].clone()))
    };
    let batch = batch_of(&schema, databases.len(), cell)?;
    Ok(provider_as_source(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
}
