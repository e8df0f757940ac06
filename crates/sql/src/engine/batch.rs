//! Rows as the query engine has them.

use crate::types::Datum;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;

/// The datums of `rows` rows as a batch.
pub fn batch_of(schema: &SchemaRef, rows: usize, value: impl Fn(usize, usize) -> Datum) -> Result<RecordBatch> {
    let arrays: Result<Vec<ArrayRef>> = (0..schema.fields().len())
        .map(|column| {
            if rows == 0 {
                return Ok(datafusion::arrow::array::new_empty_array(schema.field(column).data_type()));
            }
            Datum::iter_to_array((0..rows).map(|row| value(row, column)))
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), arrays?, &options)?)
}
