//! Functions of the values of one row, for the query engine.

use crate::engine::array_of;
use crate::types::Datum;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

type Body = Arc<dyn Fn(&[Datum]) -> Datum + Send + Sync>;

/// A function of the values of one row.
pub struct RowFunction {
    name: &'static str,
    returns: DataType,
    signature: Signature,
    body: Body,
}

/// A function that gives values of the type `returns`.
pub fn function(name: &'static str, returns: DataType, body: impl Fn(&[Datum]) -> Datum + Send + Sync + 'static) -> RowFunction {
    RowFunction { name, returns, signature: Signature::variadic_any(Volatility::Immutable), body: Arc::new(body) }
}

/// A function that says yes.
pub fn yes(name: &'static str) -> RowFunction {
    function(name, DataType::Boolean, |_| Datum::Boolean(Some(true)))
}

/// A function that gives text.
pub fn text(name: &'static str, body: impl Fn(&[Datum]) -> Datum + Send + Sync + 'static) -> RowFunction {
    function(name, DataType::Utf8, body)
}

/// A value as a number, if it is one.
pub fn integer(values: &[Datum], position: usize) -> Option<i64> {
    values.get(position).and_then(|value| value.to_string().parse().ok())
}

/// The text of the object whose number is given.
pub fn looked_up(texts: &BTreeMap<i64, String>, values: &[Datum]) -> Datum {
    Datum::Utf8(integer(values, 0).and_then(|oid| texts.get(&oid)).cloned())
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let arrays = arguments.args.iter().map(|argument| argument.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let value = |row| {
            let values = arrays.iter().map(|array| Datum::try_from_array(array, row)).collect::<Result<Vec<_>>>()?;
            Ok((self.body)(&values))
        };
        let values = (0..rows).map(value).collect::<Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(array_of(&self.returns, values)?))
    }
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowFunction({})", self.name)
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &RowFunction) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
