//! The rows that a statement returns, page by page.

use crate::engine::bounded::array_lengths;
use crate::engine::{from_datafusion, from_panic};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::storage::Row;
use crate::types::{Datum, SqlType, coerce};
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::Field;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A column of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub ty: SqlType,
}

/// The most columns of a result, as in PostgreSQL. The wire counts them by 16 bits with a sign.
pub const RESULT_COLUMNS_MAX: usize = 1_664;

/// Refuses a result of more columns than [`RESULT_COLUMNS_MAX`]. Error 54011.
pub fn check_columns(columns: usize) -> SqlResult<()> {
    if columns <= RESULT_COLUMNS_MAX {
        return Ok(());
    }
    let message = format!("target lists can have at most {RESULT_COLUMNS_MAX} entries; this one has {columns}");
    Err(SqlError::new(SqlState::TooManyColumns, message).with_hint("Ask for the columns in several statements."))
}

/// The bytes of values that the rows of a page may have. The same value may be shown in many columns.
const PAGE_BYTES_MAX: u64 = 64 << 20;
/// From so many bytes on, rows that were read or that the query engine gives at once become another page.
pub const PAGE_BYTES_FULL: u64 = 4 << 20;

/// Refuses rows that are made at once and have so many bytes. Error 54000.
pub fn check_bytes(bytes: u64) -> SqlResult<()> {
    if bytes <= PAGE_BYTES_MAX {
        return Ok(());
    }
    let error = SqlError::too_large(format!("rows of the result would have more than {} MiB at once", PAGE_BYTES_MAX >> 20));
    Err(error.with_hint("Ask for fewer large values in one row, or for fewer rows."))
}

/// The bytes of a value beside those that any has.
pub fn bytes_of(value: &Datum) -> u64 {
    (value.size() - size_of::<Datum>()) as u64
}

/// Pages of rows. What the stream holds on to for the pages that follow is charged to the memory of the site's queries.
pub type RowStream = BoxStream<'static, SqlResult<Vec<Row>>>;

/// What running a statement gives.
pub enum Effect {
    /// Rows.
    Rows(RowStream),
    /// Rows written, and those that RETURNING shows.
    Written { count: usize, returning: Vec<Row> },
}

/// The column that a field of the query engine becomes. Types that Rhumb has not are shown as text.
pub fn column_of(field: &Field) -> ResultColumn {
    let name = crate::parser::names::shown(field.name());
    ResultColumn { name, ty: SqlType::of_field(field).unwrap_or(SqlType::Text) }
}

/// The rows of a query, each value as the type of its column. Errors: those of the query; 53200 if what is left of a batch has no room.
pub fn rows_of(batches: SendableRecordBatchStream, columns: Arc<[ResultColumn]>, charge: MemoryReservation) -> RowStream {
    stream::try_unfold((batches, columns, None::<RecordBatch>, charge), |(mut batches, columns, rest, charge)| async move {
        let next = match rest {
            Some(rest) => Some(Ok(rest)),
            None => AssertUnwindSafe(batches.next()).catch_unwind().await.map_err(|panic| from_panic(&panic))?,
        };
        let Some(batch) = next else { return Ok(None) };
        let batch = batch.map_err(|error| from_datafusion(&error))?;
        let count = page_of(&batch)?;
        let rows = rows_of_batch(&batch.slice(0, count), &columns)?;
        let rest = (count < batch.num_rows()).then(|| batch.slice(count, batch.num_rows() - count));
        // A slice holds all of the batch.
        let held = rest.as_ref().map_or(0, RecordBatch::get_array_memory_size);
        charge.try_resize(held).map_err(|error| from_datafusion(&error))?;
        Ok(Some((rows, (batches, columns, rest, charge))))
    })
    .boxed()
}

/// How many rows of a batch, from the first on, make a page: what the query engine holds once is copied for each column and each row.
fn page_of(batch: &RecordBatch) -> SqlResult<usize> {
    let mut lengths = vec![0_u64; batch.num_rows()];
    for array in batch.columns() {
        let of_column = array_lengths(array).map_err(|error| from_datafusion(&error))?;
        lengths.iter_mut().zip(of_column).for_each(|(sum, length)| *sum = sum.saturating_add(length));
    }
    let mut bytes = 0_u64;
    for (row, length) in lengths.iter().enumerate() {
        check_bytes(*length)?;
        bytes = bytes.saturating_add(*length);
        if bytes >= PAGE_BYTES_FULL {
            return Ok(row + 1);
        }
    }
    Ok(batch.num_rows())
}

fn rows_of_batch(batch: &RecordBatch, columns: &[ResultColumn]) -> SqlResult<Vec<Row>> {
    let mut rows: Vec<Row> = (0..batch.num_rows()).map(|_| Vec::with_capacity(columns.len())).collect();
    for (array, column) in batch.columns().iter().zip(columns) {
        for (row, value) in rows.iter_mut().zip(values_of(array.as_ref(), &column.ty)?) {
            row.push(value);
        }
    }
    Ok(rows)
}

/// The values of an array as datums of `ty`.
fn values_of(array: &dyn Array, ty: &SqlType) -> SqlResult<Vec<Datum>> {
    let internal = |error: datafusion::arrow::error::ArrowError| SqlError::internal(error.to_string());
    if SqlType::of_arrow(array.data_type()).is_none() {
        let options = FormatOptions::default();
        let formatter = ArrayFormatter::try_new(array, &options).map_err(internal)?;
        return (0..array.len())
            .map(|index| {
                let text = array.is_valid(index).then(|| formatter.value(index).try_to_string()).transpose().map_err(internal)?;
                Ok(Datum::Utf8(text))
            })
            .collect();
    }
    let exact = *array.data_type() == ty.arrow();
    (0..array.len())
        .map(|index| {
            let value = Datum::try_from_array(array, index).map_err(|error| from_datafusion(&error))?;
            if exact || value.is_null() && matches!(value, Datum::Null) { Ok(value) } else { coerce(ty, value) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringArray;
    use datafusion::arrow::datatypes::{DataType, Schema};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    #[tokio::test]
    async fn what_is_left_of_a_batch_is_charged_until_it_is_shown() {
        let rows: StringArray = (0..6).map(|_| Some("x".repeat(1 << 20))).collect();
        let schema = Arc::new(Schema::new(vec![Field::new("body", DataType::Utf8, true)]));
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(rows)]).expect("a batch");
        let columns: Arc<[ResultColumn]> = schema.fields().iter().map(|field| column_of(field)).collect();
        let pages = |pool: &Arc<dyn MemoryPool>| {
            let batches = stream::iter([Ok(batch.clone())]);
            let batches = Box::pin(RecordBatchStreamAdapter::new(schema.clone(), batches));
            rows_of(batches, columns.clone(), MemoryConsumer::new("rows of a batch").register(pool))
        };
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(16 << 20));
        let mut shown = pages(&pool);
        assert_eq!(shown.next().await.expect("a page").expect("rows").len(), 4);
        assert!(pool.reserved() >= 6 << 20, "{}", pool.reserved());
        assert_eq!(shown.next().await.expect("a page").expect("rows").len(), 2);
        assert_eq!(pool.reserved(), 0);
        let small: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(4 << 20));
        let refused = pages(&small).next().await.expect("an answer").expect_err("no room");
        assert_eq!(refused.state().code(), "53200");
    }
}
