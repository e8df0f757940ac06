//! Errors and panics of the query engine as errors of SQL.

use super::{QUERY_MEMORY_BYTES_MAX, prose};
use crate::error::{SqlError, SqlResult, SqlState};
use datafusion::common::DataFusionError;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a step of the query engine; a panic in there is an error of the statement, not the end of the connection.
pub fn guarded<T>(step: impl FnOnce() -> datafusion::common::Result<T>) -> SqlResult<T> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result.map_err(|error| from_datafusion(&error)),
        Err(panic) => Err(from_panic(&panic)),
    }
}

/// What a panic of the query engine is to the client.
pub fn from_panic(panic: &Box<dyn std::any::Any + Send>) -> SqlError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    SqlError::internal(format!("the query engine failed: {}", text.unwrap_or("no reason given")))
        .with_hint("Nothing was changed by this statement. Try to write it differently, and report it.")
}

/// An error of SQL on its way through the query engine.
pub fn from_sql(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// An error of the query engine with its SQLSTATE.
pub fn from_datafusion(error: &DataFusionError) -> SqlError {
    use datafusion::common::SchemaError;
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<SqlError>() {
            Some(error) => error.clone(),
            None => match inner.downcast_ref::<DataFusionError>() {
                Some(inner) => from_datafusion(inner),
                None => prose::of_other(inner.to_string()),
            },
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => from_datafusion(inner),
        DataFusionError::Shared(inner) => from_datafusion(inner),
        DataFusionError::ArrowError(inner, _) => from_arrow(inner),
        DataFusionError::SchemaError(inner, _) => match inner.as_ref() {
            SchemaError::FieldNotFound { field, .. } => SqlError::undefined_column(&field.name),
            SchemaError::AmbiguousReference { field } => {
                SqlError::new(SqlState::AmbiguousColumn, format!("column reference \"{}\" is ambiguous", field.name))
            }
            SchemaError::DuplicateQualifiedField { qualifier, .. } => {
                SqlError::new(SqlState::DuplicateAlias, format!("table name \"{}\" specified more than once", qualifier.table()))
            }
            other => SqlError::new(SqlState::DuplicateColumn, other.to_string()),
        },
        DataFusionError::NotImplemented(text) => prose::of_unsupported(text),
        DataFusionError::Plan(text) => prose::of_planner(text),
        DataFusionError::ResourcesExhausted(text) => {
            let message = format!("the queries of this site need more than {} MiB together", QUERY_MEMORY_BYTES_MAX >> 20);
            let hint = "Sort, group or join fewer rows, or try again when others have ended.";
            SqlError::new(SqlState::OutOfMemory, message).with_detail(text.clone()).with_hint(hint)
        }
        DataFusionError::Execution(text) => SqlError::new(prose::of_execution(text), text),
        other => prose::of_other(other.strip_backtrace()),
    }
}

fn from_arrow(error: &datafusion::arrow::error::ArrowError) -> SqlError {
    use datafusion::arrow::error::ArrowError;
    match error {
        ArrowError::DivideByZero => SqlError::new(SqlState::DivisionByZero, "division by zero"),
        ArrowError::ArithmeticOverflow(text) => SqlError::new(SqlState::NumericValueOutOfRange, text.clone()),
        // Texts are read by functions of our own.
        ArrowError::CastError(text) if text.starts_with("Can't cast value") => {
            SqlError::new(SqlState::NumericValueOutOfRange, text.clone())
        }
        ArrowError::CastError(text) | ArrowError::ParseError(text) => SqlError::new(SqlState::InvalidTextRepresentation, text.clone()),
        ArrowError::ExternalError(inner) => match inner.downcast_ref::<SqlError>() {
            Some(error) => error.clone(),
            None => inner.downcast_ref::<DataFusionError>().map_or_else(|| SqlError::internal(inner.to_string()), from_datafusion),
        },
        other => prose::of_other(other.to_string()),
    }
}
