//! Functions of any values: their types.

use crate::engine::row_function::RowFunction;
use crate::error::SqlError;
use crate::types::{Datum, SqlType};
use datafusion::arrow::datatypes::{DataType, Field};

/// The function whose value is its first argument, and whose second makes its name another one.
pub const DISAMBIGUATED: &str = "rhumb_disambiguated";

/// All of them.
pub(super) fn each() -> Vec<RowFunction> {
    vec![pg_typeof(), disambiguated()]
}

fn disambiguated() -> RowFunction {
    RowFunction::new(
        DISAMBIGUATED,
        2..=2,
        |arguments| Ok(arguments.arg_fields[0].as_ref().clone()),
        |_, values| values.first().cloned().ok_or_else(|| SqlError::internal("it has two arguments")),
    )
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
