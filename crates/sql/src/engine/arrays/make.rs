//! `ARRAY[…]`: the query engine's function, whose result is of the type that its elements have here.

use crate::types::{Element, SqlType, common};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};
use std::sync::{Arc, LazyLock};

/// The function.
pub fn make_array() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(MakeArray(datafusion::functions_nested::make_array::make_array_udf()))));
    FUNCTION.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MakeArray(Arc<ScalarUDF>);

impl ScalarUDFImpl for MakeArray {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Option<Vec<SqlType>> = args.arg_fields.iter().map(|field| SqlType::of_field(field)).collect();
        let element = types.and_then(|types| {
            let (first, rest) = types.split_first()?;
            rest.iter().try_fold(first.unbounded(), |one, other| common(&one, other))
        });
        let field = self.0.inner().return_field_from_args(args)?;
        let tagged = element.and_then(|element| Some(SqlType::Array(Element::try_from(element).ok()?)));
        Ok(match tagged {
            Some(ty) if ty.arrow() == *field.data_type() => Arc::new(ty.field(field.name(), true)),
            _ => field,
        })
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.inner().coerce_types(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.inner().invoke_with_args(args)
    }
}
