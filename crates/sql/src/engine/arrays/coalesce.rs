//! `coalesce` with arrays among its arguments, of which some are constants written as texts: `coalesce(tags, '{}')`. While a statement is planned they are
//! taken as they are; before it runs they are arrays.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};
use std::sync::Arc;

/// The function.
pub(super) fn coalesce() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Coalesce(datafusion::functions::core::coalesce())))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Coalesce(Arc<ScalarUDF>);

impl ScalarUDFImpl for Coalesce {
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
        match args.arg_fields.iter().find(|field| matches!(field.data_type(), DataType::List(_))) {
            Some(array) => Ok(array.clone()),
            None => self.0.inner().return_field_from_args(args),
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_text = |ty: &DataType| matches!(ty, DataType::Utf8 | DataType::Null);
        if types.iter().any(|ty| matches!(ty, DataType::List(_))) && types.iter().any(is_text) {
            return Ok(types.to_vec());
        }
        self.0.inner().coerce_types(types)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.0.inner().simplify(args, info)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.0.inner().conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.0.inner().short_circuits()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.inner().invoke_with_args(args)
    }
}
