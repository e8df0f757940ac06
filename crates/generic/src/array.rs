//! Arrays of values.

use datafusion_common::arrow::array::{ArrayRef, new_empty_array};
use datafusion_common::arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};

/// Values of one type as an array; `data_type` is that of one without values.
pub fn array_of(data_type: &DataType, values: Vec<ScalarValue>) -> Result<ArrayRef> {
    if values.is_empty() { Ok(new_empty_array(data_type)) } else { ScalarValue::iter_to_array(values) }
}
