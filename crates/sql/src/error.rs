//! What a client is told when a statement fails: a SQLSTATE and a message, worded as PostgreSQL words them, because
//! drivers and object mappers match on both.
//!
//! [`SqlState`] names the conditions that this crate raises; the five-character code is what clients switch on. The
//! constructors below exist where the wording is fixed by PostgreSQL or where several callers raise the same condition;
//! anything else is `SqlError::new(state, message)`.

mod state;

pub use state::SqlState;

use rhumb_commit::transaction::TxnError;
use std::fmt;
use thiserror::Error;

/// The result of everything in this crate.
pub type SqlResult<T> = Result<T, SqlError>;

/// Why a statement failed. Boxed inside, so that a `Result` of it stays small.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", .0.message)]
pub struct SqlError(Box<Report>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Report {
    state: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    constraint: Option<String>,
    position: Option<usize>,
}

impl SqlError {
    /// The error with this condition and message.
    pub fn new(state: SqlState, message: impl Into<String>) -> SqlError {
        let message = message.into();
        SqlError(Box::new(Report { state, message, detail: None, hint: None, constraint: None, position: None }))
    }

    /// The same with a second line of particulars.
    pub fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.0.detail = Some(detail.into());
        self
    }

    /// The same with advice on what to do.
    pub fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same with the name of the constraint that was violated.
    pub fn with_constraint(mut self, constraint: impl Into<String>) -> SqlError {
        self.0.constraint = Some(constraint.into());
        self
    }

    /// The same with the place in the statement's text: characters, from 1.
    pub fn with_position(mut self, position: usize) -> SqlError {
        self.0.position = Some(position);
        self
    }

    /// The same without a place: the text it was in is not the one that the client sent.
    pub fn without_position(mut self) -> SqlError {
        self.0.position = None;
        self
    }

    /// Its condition.
    pub fn state(&self) -> SqlState {
        self.0.state
    }

    /// Its message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Its particulars.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// Its advice.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The constraint that was violated.
    pub fn constraint(&self) -> Option<&str> {
        self.0.constraint.as_deref()
    }

    /// Its place in the statement's text: characters, from 1.
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// True if nothing was committed and the same transaction, run again, may succeed.
    pub fn is_retryable(&self) -> bool {
        self.state() == SqlState::SerializationFailure
    }

    /// True if the transaction that it came up in could go on: it is about one statement, and not about the transaction or the site.
    pub fn spares_transaction(&self) -> bool {
        const ENDING: [&str; 4] = ["40", "57P", "58", "XX001"];
        !ENDING.iter().any(|beginning| self.state().code().starts_with(beginning))
    }

    /// True if other rows might not have led to it: violated constraints and values that do not fit.
    pub fn may_depend_on_rows(&self) -> bool {
        self.state().is_of_class("22") || self.state().is_of_class("23")
    }

    /// True if other tables, or other columns, might not have led to it.
    pub fn may_depend_on_tables(&self) -> bool {
        self.state().is_of_class("42")
    }
}

/// The conditions whose wording PostgreSQL fixes.
impl SqlError {
    /// 0A000.
    pub fn unsupported(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::FeatureNotSupported, message)
    }

    /// 42P02.
    pub fn undefined_parameter(number: usize) -> SqlError {
        SqlError::new(SqlState::UndefinedParameter, format!("there is no parameter ${number}"))
    }

    /// 42601.
    pub fn syntax(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::SyntaxError, message)
    }

    /// XX000: a bug of ours.
    pub fn internal(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::InternalError, message)
    }

    /// XX001: what the store holds under `what` cannot be read.
    pub fn corrupted(what: impl fmt::Display, why: impl fmt::Display) -> SqlError {
        SqlError::new(SqlState::DataCorrupted, format!("cannot decode {what}: {why}"))
    }

    /// 54000.
    pub fn too_large(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::ProgramLimitExceeded, message)
    }

    /// 22P02: `text` is no `type_name`.
    pub fn invalid_text(type_name: &str, text: &str) -> SqlError {
        SqlError::new(SqlState::InvalidTextRepresentation, format!("invalid input syntax for type {type_name}: \"{text}\""))
    }

    /// 22007: `text` is no date or time.
    pub fn invalid_datetime(type_name: &str, text: &str) -> SqlError {
        SqlError::new(SqlState::InvalidDatetimeFormat, format!("invalid input syntax for type {type_name}: \"{text}\""))
    }

    /// 22003.
    pub fn out_of_range(type_name: &str) -> SqlError {
        SqlError::new(SqlState::NumericValueOutOfRange, format!("{type_name} out of range"))
    }

    /// 22001: too long for `type_name`, written with its length.
    pub fn value_too_long(type_name: &str) -> SqlError {
        SqlError::new(SqlState::StringDataRightTruncation, format!("value too long for type {type_name}"))
    }

    /// 23502.
    pub fn not_null(table: &str, column: &str) -> SqlError {
        let message = format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
        SqlError::new(SqlState::NotNullViolation, message)
    }

    /// 23505, with `key` as `(a, b)=(1, 2)`.
    pub fn duplicate_key(constraint: &str, key: &str) -> SqlError {
        SqlError::new(SqlState::UniqueViolation, format!("duplicate key value violates unique constraint \"{constraint}\""))
            .with_detail(format!("Key {key} already exists."))
            .with_constraint(constraint)
    }

    /// 3D000.
    pub fn undefined_database(name: &str) -> SqlError {
        SqlError::new(SqlState::InvalidCatalogName, format!("database \"{name}\" does not exist"))
    }

    /// 42P04.
    pub fn duplicate_database(name: &str) -> SqlError {
        SqlError::new(SqlState::DuplicateDatabase, format!("database \"{name}\" already exists"))
    }

    /// 42P01.
    pub fn undefined_table(name: &str) -> SqlError {
        SqlError::new(SqlState::UndefinedTable, format!("relation \"{name}\" does not exist"))
    }

    /// 42P07.
    pub fn duplicate_table(name: &str) -> SqlError {
        SqlError::new(SqlState::DuplicateTable, format!("relation \"{name}\" already exists"))
    }

    /// 42703.
    pub fn undefined_column(name: &str) -> SqlError {
        SqlError::new(SqlState::UndefinedColumn, format!("column \"{name}\" does not exist"))
    }

    /// 42701.
    pub fn duplicate_column(name: &str) -> SqlError {
        SqlError::new(SqlState::DuplicateColumn, format!("column \"{name}\" specified more than once"))
    }

    /// 42704: no such index.
    pub fn undefined_index(name: &str) -> SqlError {
        SqlError::new(SqlState::UndefinedObject, format!("index \"{name}\" does not exist"))
    }

    /// 25006.
    pub fn read_only(statement: &str) -> SqlError {
        SqlError::new(SqlState::ReadOnlySqlTransaction, format!("cannot execute {statement} in a read-only transaction"))
    }

    /// 55P03: what `lock_timeout` ends.
    pub fn lock_timeout() -> SqlError {
        SqlError::new(SqlState::LockNotAvailable, "canceling statement due to lock timeout")
    }

    /// 25P02.
    pub fn in_failed_transaction() -> SqlError {
        let message = "current transaction is aborted, commands ignored until end of transaction block";
        SqlError::new(SqlState::InFailedSqlTransaction, message)
    }
}

impl From<TxnError> for SqlError {
    fn from(error: TxnError) -> SqlError {
        let state = match &error {
            TxnError::Conflict(_) => SqlState::SerializationFailure,
            TxnError::Unavailable(_) => SqlState::CannotConnectNow,
            TxnError::Unknown(_) => SqlState::StatementCompletionUnknown,
            TxnError::TooLarge(_) => SqlState::ProgramLimitExceeded,
            TxnError::Invalid(_) => SqlState::ReadOnlySqlTransaction,
            TxnError::OutOfRange(_) => SqlState::InvalidParameterValue,
            TxnError::Unsupported(_) => SqlState::FeatureNotSupported,
            TxnError::LockTimeout(why) => return SqlError::lock_timeout().with_detail(why.to_string()),
        };
        let hint = match &error {
            TxnError::Conflict(_) => Some("The transaction might succeed if retried."),
            TxnError::Unknown(_) => Some("Read what the transaction wrote to learn whether it was committed, before running it again."),
            TxnError::Unavailable(_) => Some("Nothing was committed. Try again, or connect to another site."),
            TxnError::TooLarge(_)
            | TxnError::Invalid(_)
            | TxnError::OutOfRange(_)
            | TxnError::Unsupported(_)
            | TxnError::LockTimeout(_) => None,
        };
        let sql = SqlError::new(state, error.to_string());
        match hint {
            Some(hint) => sql.with_hint(hint),
            None => sql,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_the_only_retryable_error() {
        assert!(SqlError::from(TxnError::Conflict("k".into())).is_retryable());
        assert!(!SqlError::from(TxnError::Unknown("k".into())).is_retryable());
        assert_eq!(SqlError::from(TxnError::Unknown("k".into())).state().code(), "40003");
    }

    #[test]
    fn a_duplicate_key_is_worded_as_postgresql_words_it() {
        let error = SqlError::duplicate_key("t_pkey", "(id)=(1)");
        assert_eq!(error.to_string(), "duplicate key value violates unique constraint \"t_pkey\"");
        assert_eq!(error.detail(), Some("Key (id)=(1) already exists."));
        assert_eq!(error.state().code(), "23505");
    }
}
