//! Casts of numbers to whole ones: PostgreSQL rounds, the query engine cuts.

use datafusion::arrow::array::{Array, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type};
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// What the query engine calls the function.
const ROUNDED: &str = "rhumb_rounded";

/// What is cast to a whole number, rounded before; `None` if nothing is to be rounded.
pub fn before_cast(cast: &Cast, schema: &DFSchema) -> Option<Expr> {
    let is_whole = matches!(cast.field.data_type(), DataType::Int16 | DataType::Int32 | DataType::Int64);
    let is_rounded = matches!(cast.expr.as_ref(), Expr::ScalarFunction(function) if function.func.name() == ROUNDED);
    if !is_whole || is_rounded || !has_fraction(&cast.expr.get_type(schema).ok()?) {
        return None;
    }
    let function = ScalarUDF::from(Rounded(Signature::any(1, Volatility::Immutable)));
    let rounded = function.call(vec![cast.expr.as_ref().clone()]);
    Some(Expr::Cast(Cast { expr: Box::new(rounded), field: cast.field.clone() }))
}

fn has_fraction(ty: &DataType) -> bool {
    matches!(ty, DataType::Float32 | DataType::Float64) || matches!(ty, DataType::Decimal128(_, scale) if *scale > 0)
}

/// The nearest whole number, of the same type: of two the even one if they are floating-point numbers, else the one farther from zero.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounded(Signature);

impl ScalarUDFImpl for Rounded {
    fn name(&self) -> &str {
        ROUNDED
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = matches!(arguments.args[0], ColumnarValue::Scalar(_));
        let values = arguments.args[0].to_array(if is_one { 1 } else { arguments.number_rows })?;
        let rounded: Arc<dyn Array> = match values.data_type() {
            DataType::Float64 => Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even)),
            DataType::Float32 => Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even)),
            DataType::Decimal128(_, scale) => {
                let one = 10_i128.pow(u32::from(scale.unsigned_abs()));
                let rounded: PrimitiveArray<Decimal128Type> =
                    values.as_primitive::<Decimal128Type>().unary(|value| whole(value, one).unwrap_or(value));
                Arc::new(rounded.with_data_type(values.data_type().clone()))
            }
            other => return internal_err!("{other} is not rounded"),
        };
        if is_one {
            return crate::types::Datum::try_from_array(&rounded, 0).map(ColumnarValue::Scalar);
        }
        Ok(ColumnarValue::Array(rounded))
    }
}

/// `None` if it has too many digits, of which no whole number of SQL has as many.
fn whole(value: i128, one: i128) -> Option<i128> {
    Some(value.checked_add(value.signum() * (one / 2))? / one * one)
}
