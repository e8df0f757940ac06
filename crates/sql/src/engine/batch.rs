//! Rows as the query engine has them.

use crate::types::Datum;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use rhumb_generic::array_of;

/// The datums of `rows` rows as a batch.
pub fn batch_of(schema: &SchemaRef, rows: usize, value: impl Fn(usize, usize) -> Datum) -> Result<RecordBatch> {
    let column = |column| array_of(schema.field(column).data_type(), (0..rows).map(|row| value(row, column)).collect());
    let arrays = (0..schema.fields().len()).map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?)
}
