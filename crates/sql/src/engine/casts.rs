//! Casts to text: PostgreSQL prints values otherwise than the query engine, and cuts what is longer than the type. And sums of dates and intervals, which
//! are timestamps.

use super::row_function::{RowFunction, numbers_of, of_numbers};
use crate::error::SqlError;
use crate::types::{Datum, SqlType, to_text as print};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF};
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

/// A date with an interval added or taken away, as that of a timestamp; `None` if it is something else.
pub fn with_interval(sum: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let is_date = |expr: &Expr| expr.get_type(schema).is_ok_and(|ty| ty == DataType::Date32);
    let timestamp = |date: &Expr| {
        let field = Arc::new(SqlType::Timestamp.field("", true));
        Box::new(Expr::Cast(Cast { expr: Box::new(date.clone()), field }))
    };
    let BinaryExpr { left, op, right } = sum;
    let (left, right) = match op {
        Operator::Plus | Operator::Minus if is_interval(right) && is_date(left) => (timestamp(left), right.clone()),
        Operator::Plus if is_interval(left) && is_date(right) => (left.clone(), timestamp(right)),
        _ => return None,
    };
    Some(Expr::BinaryExpr(BinaryExpr { left, op: *op, right }))
}

/// True of what is written as an interval: no table has any.
fn is_interval(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => matches!(value.data_type(), DataType::Interval(_)),
        Expr::Cast(cast) => matches!(cast.field.data_type(), DataType::Interval(_)),
        Expr::Negative(expr) => is_interval(expr),
        _ => false,
    }
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
