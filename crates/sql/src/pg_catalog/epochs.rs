//! `rhumb.epochs`: how far this site is with the epochs of Catenae, at the moment of the statement. One row, or none at a site that
//! holds no such databases.

use crate::engine::batch_of;
use crate::types::{Datum, SqlType};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::TableSource;
use rhumb_catenae::Status;
use rhumb_catenae::administration::Epochs;
use std::sync::Arc;

const COLUMNS: [(&str, SqlType); 7] = [
    ("sealed", SqlType::Int8),
    ("complete", SqlType::Int8),
    ("settled", SqlType::Int8),
    ("behind", SqlType::Int8),
    ("unsettled", SqlType::Int8),
    ("passed_over", SqlType::Text),
    ("settle_ms", SqlType::Float8),
];

/// Makes the table.
pub fn make(epochs: Option<&Epochs>) -> Result<Arc<dyn TableSource>> {
    let fields: Vec<_> = COLUMNS.iter().map(|(name, ty)| ty.field(name, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let number = |number: u64| Datum::Int64(i64::try_from(number).ok());
    let row = |Epochs { status, passed_over }: &Epochs| {
        let Status { coordinator, execution, settled, unsettled, .. } = status;
        let numbers = [coordinator.0, execution.0, settled.0, status.behind(), *unsettled as u64].map(number);
        let regions = Some(passed_over.join(", ")).filter(|regions| !regions.is_empty());
        let settle = (status.settling.epochs > 0).then(|| status.settling.last.as_millis_f64());
        numbers.into_iter().chain([Datum::Utf8(regions), Datum::Float64(settle)]).collect::<Vec<_>>()
    };
    let rows: Vec<_> = epochs.into_iter().map(row).collect();
    let batch = batch_of(&schema, rows.len(), |row, column| rows[row][column].clone())?;
    Ok(provider_as_source(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
}
