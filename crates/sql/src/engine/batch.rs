//! Rows as the query engine has them.

use crate::types::Datum;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_empty_array};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;

/// The datums of `rows` rows as a batch.
pub fn batch_of(schema: &SchemaRef, rows: usize, value: impl Fn(usize, usize) -> Datum) -> Result<RecordBatch> {
    let column = |column| array_of(schema.field(column).data_type(), (0..rows).map(|row| value(row, column)).collect());
    let arrays = (0..schema.fields().len()).map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?)
}

/// Datums of one type as an array. It takes a `Vec`: for each type of iterator the query engine's function is compiled anew, for all types of arrays.
pub fn array_of(data_type: &DataType, values: Vec<Datum>) -> Result<ArrayRef> {
    if values.is_empty() { Ok(new_empty_array(data_type)) } else { Datum::iter_to_array(values) }
}
