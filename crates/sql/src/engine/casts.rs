//! Casts to text: PostgreSQL prints values otherwise than the query engine, and cuts what is longer than the type.

use super::row_function::{RowFunction, numbers_of, of_numbers};
use crate::error::SqlError;
use crate::types::{Datum, SqlType, to_text as print};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF};
use std::sync::Arc;

/// What the query engine calls the functions.
const PRINTED: &str = "rhumb_printed";
const CUT: &str = "rhumb_cut";

/// A cast to text as PostgreSQL does it; `None` if the query engine does it so. Arrays have a [function of their own](super::arrays).
pub fn to_text(cast: &Cast, schema: &DFSchema) -> Option<Expr> {
    let to = SqlType::of_field(&cast.field)?;
    let length = match to {
        SqlType::Text | SqlType::Varchar(None) => None,
        SqlType::Varchar(Some(length)) | SqlType::Char(length) => Some(length),
        _ => return None,
    };
    if matches!(cast.expr.as_ref(), Expr::ScalarFunction(function) if [PRINTED, CUT].contains(&function.func.name())) {
        return None;
    }
    let from = cast.expr.to_field(schema).ok()?.1;
    if *from.data_type() == DataType::Null {
        return None;
    }
    let from = SqlType::of_field(&from)?;
    let is_text = from.is_text() || matches!(from, SqlType::Uuid);
    let is_printed = matches!(
        from,
        SqlType::Float4
            | SqlType::Float8
            | SqlType::Numeric(_)
            | SqlType::Bytea
            | SqlType::Time
            | SqlType::Timestamp
            | SqlType::TimestampTz
            | SqlType::Interval
    );
    if matches!(from, SqlType::Array(_)) || !is_printed && length.is_none() {
        return None;
    }
    let mut text = cast.expr.as_ref().clone();
    if is_printed {
        let [oid, modifier] = numbers_of(&from);
        text = ScalarUDF::from(printed()).call(vec![text, oid, modifier]);
    } else if !is_text {
        text = Expr::Cast(Cast { expr: Box::new(text), field: Arc::new(SqlType::Text.field("", true)) });
    }
    if let Some(length) = length {
        text = ScalarUDF::from(cut()).call(vec![text, Expr::Literal(Datum::Int64(Some(length.into())), None)]);
    }
    Some(if to == SqlType::Text { text } else { Expr::Cast(Cast { expr: Box::new(text), field: cast.field.clone() }) })
}

/// The text of a value of the type of this number and modifier.
fn printed() -> RowFunction {
    RowFunction::new(
        PRINTED,
        3..=3,
        |_| Ok(SqlType::Text.field(PRINTED, true)),
        |_, values| {
            let [value, oid, modifier] = values else { return Err(SqlError::internal("a value is printed by its type")) };
            let ty = of_numbers(oid, modifier).ok_or_else(|| SqlError::internal("a value of no type is printed"))?;
            Ok(Datum::Utf8(print(&ty, value)))
        },
    )
}

/// The first so many characters of a text.
fn cut() -> RowFunction {
    RowFunction::new(
        CUT,
        2..=2,
        |_| Ok(SqlType::Text.field(CUT, true)),
        |_, values| match values {
            [value, Datum::Int64(Some(length))] => {
                let length = usize::try_from(*length).unwrap_or(usize::MAX);
                let text = value.try_as_str().ok_or_else(|| SqlError::internal("what is cut is a text"))?;
                Ok(Datum::Utf8(text.map(|text| text.chars().take(length).collect())))
            }
            _ => Err(SqlError::internal("a text is cut to a length")),
        },
    )
}
