//! Casts of texts: PostgreSQL reads values otherwise than the query engine, and has a condition of its own for each text that spells none.

use super::row_function::{RowFunction, numbers_of, of_numbers, whole_number};
use crate::engine::from_datafusion;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, SqlType, coerce, parse_text};
use datafusion::common::metadata::FieldMetadata;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ScalarUDF};

/// What the query engine calls the function.
const READ: &str = "rhumb_read";

/// A cast of a value of type `from`, a constant that is written as a text if there is none, as PostgreSQL does it; `None` if the query engine does it so.
/// Errors: 42846 for a cast that there is not, those of [`parse_text`] for a constant.
pub fn of_cast(cast: &Cast, from: Option<SqlType>) -> SqlResult<Option<Expr>> {
    let Some(to) = SqlType::of_field(&cast.field) else { return Ok(None) };
    let is_array = |ty: &SqlType| ty.element().is_some();
    if from.as_ref().is_some_and(is_array) || is_array(&to) {
        return Ok(None);
    }
    if let Expr::Literal(value, _) = cast.expr.as_ref()
        && let Some(Some(text)) = value.try_as_str()
    {
        return of_constant(text, to, cast);
    }
    let Some(from) = from else { return Ok(None) };
    if !from.casts_to(&to) {
        return Err(no_cast(&from, &to));
    }
    // A number and its type are one constant.
    if let (Expr::Literal(value, _), SqlType::Int2 | SqlType::Int4 | SqlType::Int8) = (cast.expr.as_ref(), to)
        && whole_number(value).is_some()
    {
        return Ok(Some(typed(coerce(&to, value.clone())?, cast)));
    }
    if !from.is_text() {
        return Ok(None);
    }
    Ok((!to.is_text()).then(|| {
        let [oid, modifier] = numbers_of(&to);
        let value = ScalarUDF::from(read()).call(vec![cast.expr.as_ref().clone(), oid, modifier]);
        Expr::Cast(Cast { expr: Box::new(value), field: cast.field.clone() })
    }))
}

fn of_constant(text: &str, to: SqlType, cast: &Cast) -> SqlResult<Option<Expr>> {
    if to.is_text() {
        return Ok(None);
    }
    let ty = cast.field.data_type();
    let value = parse_text(&to, text)?.cast_to(ty).map_err(|error| from_datafusion(&error))?;
    let value = typed(value, cast);
    // To the query engine a uuid is a text, and only the cast says otherwise.
    let is_told = SqlType::of_arrow(ty) == Some(to);
    Ok(Some(if is_told { value } else { Expr::Cast(Cast { expr: Box::new(value), field: cast.field.clone() }) }))
}

/// A constant of the type that a cast is to.
fn typed(value: Datum, cast: &Cast) -> Expr {
    Expr::Literal(value, Some(FieldMetadata::from(cast.field.as_ref())))
}

fn no_cast(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(SqlState::CannotCoerce, format!("cannot cast type {} to {}", from.name(), to.name()))
}

/// The value that a text spells, of the type of this number and modifier.
fn read() -> RowFunction {
    let ty =
        |oid: &Datum, modifier: &Datum| of_numbers(oid, modifier).ok_or_else(|| SqlError::internal("a text is read as a value of no type"));
    RowFunction::new(
        READ,
        3..=3,
        move |arguments| match arguments.scalar_arguments {
            [_, Some(oid), Some(modifier)] => Ok(ty(oid, modifier)?.field(READ, true)),
            _ => Err(SqlError::internal("a text is read as a value of one type")),
        },
        move |_, values| {
            let [value, oid, modifier] = values else { return Err(SqlError::internal("a text is read by its type")) };
            let ty = ty(oid, modifier)?;
            match value.try_as_str() {
                Some(Some(text)) => parse_text(&ty, text),
                Some(None) => Ok(ty.null()),
                None => Err(SqlError::internal("what is read is a text")),
            }
        },
    )
}
