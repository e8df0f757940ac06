//! Functions of any values: their types and signs.

use crate::engine::row_function::RowFunction;
use crate::error::{SqlError, SqlState};
use crate::types::{Datum, SqlType, coerce};
use datafusion::arrow::datatypes::{DataType, Field};

/// All of them.
pub(super) fn each() -> Vec<RowFunction> {
    vec![pg_typeof(), sign()]
}

/// The name of the type of its argument.
fn pg_typeof() -> RowFunction {
    RowFunction::new(
        "pg_typeof",
        1..=1,
        |arguments| {
            let field = &arguments.arg_fields[0];
            let is_unknown =
                *field.data_type() == DataType::Null || arguments.scalar_arguments[0].is_some_and(|value| value.try_as_str().is_some());
            let name = if is_unknown { "unknown" } else { SqlType::of_field(field).map_or("unknown", |ty| ty.name()) };
            // Its result depends on the type alone, which the values do not have with them.
            Ok(Field::new(name, DataType::Utf8, true))
        },
        |field, _| Ok(Datum::Utf8(Some(field.name().clone()))),
    )
}

/// -1, 0 or 1: of a decimal number one, of all others a floating-point number.
fn sign() -> RowFunction {
    RowFunction::new(
        "sign",
        1..=1,
        |arguments| match SqlType::of_field(&arguments.arg_fields[0]) {
            Some(SqlType::Numeric(_)) => Ok(Field::new("sign", DataType::Decimal128(1, 0), true)),
            Some(SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Float4 | SqlType::Float8) => {
                Ok(Field::new("sign", DataType::Float64, true))
            }
            ty => {
                let message = format!("function sign({}) does not exist", ty.map_or("unknown", |ty| ty.name()));
                Err(SqlError::new(SqlState::UndefinedFunction, message))
            }
        },
        |field, values| {
            let value = values.first().ok_or_else(|| SqlError::internal("it has one argument"))?;
            let sign = match coerce(&SqlType::Float8, value.clone())? {
                Datum::Float64(Some(number)) if number == 0.0 || number.is_nan() => Some(number),
                Datum::Float64(number) => number.map(f64::signum),
                _ => None,
            };
            Ok(match field.data_type() {
                DataType::Decimal128(precision, scale) => Datum::Decimal128(sign.map(|sign| sign as i128), *precision, *scale),
                _ => Datum::Float64(sign),
            })
        },
    )
}
