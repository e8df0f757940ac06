//! What a client is told when a statement fails: a SQLSTATE and a message, worded as PostgreSQL words them, because
//! drivers and object mappers match on both.
//!
//! [`SqlState`] names the conditions that this crate raises; the five-character code is what clients switch on. The
//! constructors below exist where the wording is fixed by PostgreSQL or where several callers raise the same condition;
//! anything else is `SqlError::new(state, message)`.

use rhumb_commit::transaction::TxnError;
use std::fmt;
use thiserror::Error;

/// The result of everything in this crate.
pub type SqlResult<T> = Result<T, SqlError>;

macro_rules! sql_states {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// A condition of the SQL standard or of PostgreSQL (appendix A of its manual).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SqlState {
            $($(#[$doc])* $name,)*
        }

        impl SqlState {
            /// The five characters sent on the wire.
            pub const fn code(self) -> &'static str {
                match self {
                    $(SqlState::$name => $code,)*
                }
            }

            /// True for the conditions whose code begins so: a class has two characters.
            fn is_of_class(self, class: &str) -> bool {
                self.code().starts_with(class)
            }
        }
    };
}

sql_states! {
    /// A client broke the rules of the wire protocol.
    /// Way out: mend the client, or take another version of its driver.
    ProtocolViolation = "08P01",
    /// A valid request for something that Rhumb does not do.
    /// Way out: write it another way; the hint, if there is one, says how.
    FeatureNotSupported = "0A000",
    /// A statement would change the same row twice.
    /// Way out: leave one of the rows out.
    CardinalityViolation = "21000",
    /// Too long for `varchar(n)` or `char(n)`.
    /// Way out: shorten the text, or take a longer type.
    StringDataRightTruncation = "22001",
    /// A number outside its type's range.
    /// Way out: take a smaller number, or a wider type.
    NumericValueOutOfRange = "22003",
    /// NULL where a value is needed.
    /// Way out: pass a value.
    NullValueNotAllowed = "22004",
    /// A date or time that cannot be read.
    /// Way out: write the value as its type does.
    InvalidDatetimeFormat = "22007",
    /// A date or time outside its type's range.
    /// Way out: take another date or time.
    DatetimeFieldOverflow = "22008",
    /// Division by zero.
    /// Way out: leave rows out whose divisor is 0, as by `NULLIF`.
    DivisionByZero = "22012",
    /// Bytes that are no text.
    /// Way out: send UTF-8 without zero bytes.
    CharacterNotInRepertoire = "22021",
    /// A parameter whose value makes no sense.
    /// Way out: pass what the message allows.
    InvalidParameterValue = "22023",
    /// Text that does not spell a value of its type.
    /// Way out: write the value as its type does.
    InvalidTextRepresentation = "22P02",
    /// Bytes that do not encode a value of their type.
    /// Way out: send the value as its type is encoded, or as text.
    InvalidBinaryRepresentation = "22P03",
    /// A line of `COPY` that does not fit its table.
    /// Way out: mend the line that the message names.
    BadCopyFileFormat = "22P04",
    /// NULL in a NOT NULL column.
    /// Way out: give the column a value.
    NotNullViolation = "23502",
    /// A key that exists already.
    /// Way out: take another key, or say `ON CONFLICT`.
    UniqueViolation = "23505",
    /// A row that a `CHECK` constraint refuses.
    /// Way out: change the row so that the condition of the constraint holds.
    CheckViolation = "23514",
    /// A statement that an open transaction forbids.
    /// Way out: run it outside of the transaction, or as its first statement.
    ActiveSqlTransaction = "25001",
    /// A write in a read-only transaction.
    /// Way out: begin the transaction as `READ WRITE`.
    ReadOnlySqlTransaction = "25006",
    /// A statement that needs an open transaction.
    /// Way out: begin a transaction, or keep it open.
    NoActiveSqlTransaction = "25P01",
    /// A statement in a transaction that failed before.
    /// Way out: roll the transaction back.
    InFailedSqlTransaction = "25P02",
    /// A transaction in which nothing was asked for so long that its session was ended.
    /// Way out: connect again; end transactions sooner, or raise that setting.
    IdleInTransactionSessionTimeout = "25P03",
    /// A prepared statement that does not exist.
    /// Way out: prepare the statement in this session.
    InvalidSqlStatementName = "26000",
    /// Something else depends on the object.
    /// Way out: drop that first.
    DependentObjectsStillExist = "2BP01",
    /// No such savepoint.
    /// Way out: name one that this transaction has made and not released.
    InvalidSavepointSpecification = "3B001",
    /// No such database.
    /// Way out: name one that is there, or create it.
    InvalidCatalogName = "3D000",
    /// Another transaction was in the way; run the transaction again.
    /// Way out: run the transaction again.
    SerializationFailure = "40001",
    /// The commit was sent and its outcome is not known.
    /// Way out: look whether it was committed before running it again.
    StatementCompletionUnknown = "40003",
    /// Text that is not SQL.
    /// Way out: mend the text at the position given.
    SyntaxError = "42601",
    /// A name that is too long.
    /// Way out: take a shorter name.
    NameTooLong = "42622",
    /// A column named twice.
    /// Way out: name each column once.
    DuplicateColumn = "42701",
    /// A name that fits two columns.
    /// Way out: write the table's name before it.
    AmbiguousColumn = "42702",
    /// No such column.
    /// Way out: name one that is there.
    UndefinedColumn = "42703",
    /// No such type, index, setting, constraint or quota.
    /// Way out: name one that is there, or create it.
    UndefinedObject = "42704",
    /// The object exists already.
    /// Way out: take another name, or drop the other object first.
    DuplicateObject = "42710",
    /// A function or procedure of that name exists already.
    /// Way out: take another name, or drop the other one first.
    DuplicateFunction = "42723",
    /// The two types do not go together.
    /// Way out: cast one to the type of the other.
    DatatypeMismatch = "42804",
    /// A name for the wrong kind of thing.
    /// Way out: name the right kind.
    WrongObjectType = "42809",
    /// No such function or operator.
    /// Way out: name one that is there, or cast its arguments.
    UndefinedFunction = "42883",
    /// No such table.
    /// Way out: name one that is there, or create it.
    UndefinedTable = "42P01",
    /// No such parameter.
    /// Way out: pass as many parameters as the statement has.
    UndefinedParameter = "42P02",
    /// The database exists already.
    /// Way out: take another name.
    DuplicateDatabase = "42P04",
    /// A prepared statement of that name exists already.
    /// Way out: take another name, or deallocate the other one first.
    DuplicatePreparedStatement = "42P05",
    /// The table or index exists already.
    /// Way out: take another name, or drop the other one first.
    DuplicateTable = "42P07",
    /// `ON CONFLICT` names columns that no unique index covers.
    /// Way out: name the columns of the primary key or of a unique index.
    InvalidColumnReference = "42P10",
    /// A procedure that cannot be defined so.
    /// Way out: define it as the message says.
    InvalidFunctionDefinition = "42P13",
    /// A table that cannot be defined so.
    /// Way out: define it as the message says.
    InvalidTableDefinition = "42P16",
    /// A parameter whose type cannot be told.
    /// Way out: cast the parameter.
    IndeterminateDatatype = "42P18",
    /// More memory than the session, or all of a site, may have.
    /// Way out: ask for less at a time, or try again when others have ended.
    OutOfMemory = "53200",
    /// A quota is used up.
    /// Way out: wait until tokens are released, or raise the limit.
    ConfigurationLimitExceeded = "53400",
    /// A bound of Rhumb was exceeded.
    /// Way out: ask for less at a time.
    ProgramLimitExceeded = "54000",
    /// A statement that is nested too deeply, or joins too many tables.
    /// Way out: split the statement.
    StatementTooComplex = "54001",
    /// More columns than a table or a result may have.
    /// Way out: split the table, or select fewer columns.
    TooManyColumns = "54011",
    /// More parameters than a procedure or a statement may have.
    /// Way out: pass fewer, as by several statements.
    TooManyArguments = "54023",
    /// The object is not in a state that allows this.
    /// Way out: do first what the message asks for.
    ObjectNotInPrerequisiteState = "55000",
    /// The object is needed and cannot be dropped.
    /// Way out: end its use first.
    ObjectInUse = "55006",
    /// Rows that others had locked for longer than the client waits.
    /// Way out: run the transaction again, or raise `lock_timeout`.
    LockNotAvailable = "55P03",
    /// The client cancelled the statement or gave its `COPY` up, or the statement took longer than `statement_timeout`.
    /// Way out: run it again if it is still wanted, or raise `statement_timeout`.
    QueryCanceled = "57014",
    /// The site stops.
    /// Way out: connect to another site, or to this one once it runs again.
    AdminShutdown = "57P01",
    /// Too few regions or sites answer in time; a lock of QuAD or tokens of a quota cannot be had in time; or the site cannot serve: it is starting, stopping or overloaded, its clock is wrong, it takes no part, or it was declared lost.
    /// Way out: try again later, or at another site.
    CannotConnectNow = "57P03",
    /// Stored bytes that cannot be read.
    /// Way out: try in another region, and report it with the message.
    DataCorrupted = "XX001",
    /// A bug of Rhumb.
    /// Way out: report it with the message.
    InternalError = "XX000",
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

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
