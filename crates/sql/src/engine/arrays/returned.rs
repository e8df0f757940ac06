//! The types of arrays that functions return.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Element, SqlType, common, several_dimensions};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::ReturnFieldArgs;

/// The array that a function returns which is given arguments in these places: of their elements, as far as these go together.
pub(super) fn returned(arguments: &ReturnFieldArgs<'_>, lists: &[usize], elements: &[usize]) -> SqlResult<Field> {
    let at = |place: &usize| arguments.arg_fields.get(*place).filter(|field| *field.data_type() != DataType::Null);
    let mut found: Option<SqlType> = None;
    for field in lists.iter().filter_map(at) {
        match SqlType::of_field(field) {
            Some(ty) => match ty.element() {
                Some(element) => found = Some(found.and_then(|other| common(&other, &element.ty())).unwrap_or_else(|| element.ty())),
                // A text that is not yet read as what it stands for.
                None if ty == SqlType::Text => {}
                None => return Err(no_array(ty)),
            },
            None => return Err(SqlError::unsupported(format!("arrays of {} are not supported", field.data_type()))),
        }
    }
    for field in elements.iter().filter_map(at) {
        let ty = SqlType::of_field(field).unwrap_or(SqlType::Text);
        found = match found {
            Some(other) => Some(common(&other, &ty).unwrap_or(other)),
            None => Some(ty),
        };
    }
    let element = Element::try_from(found.unwrap_or(SqlType::Text)).map_err(|_| several_dimensions())?;
    Ok(SqlType::Array(element).field("", true))
}

/// 42804.
pub(super) fn no_array(ty: SqlType) -> SqlError {
    SqlError::new(SqlState::DatatypeMismatch, format!("an array is wanted, and the value is of type {ty}"))
        .with_hint("Write it as ARRAY[…], or cast it, as in '{1,2}'::int[].")
}
