//! The conditions that this crate raises, each with its cause and the way out, as `docs/sqlstates.md` repeats them.

use std::fmt;

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
            pub(super) fn is_of_class(self, class: &str) -> bool {
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
    /// A statement would change the same row twice, or a subquery that stands for a value has several rows.
    /// Way out: leave one of the rows out, as by `LIMIT 1`.
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
    /// `ESCAPE` with more than one character.
    /// Way out: escape by one character, or by none.
    InvalidEscapeSequence = "22025",
    /// A logarithm of zero or of a negative number.
    /// Way out: leave such numbers out, as by `CASE`.
    InvalidArgumentForLogarithm = "2201E",
    /// A root of a negative number, and the like.
    /// Way out: leave such numbers out, as by `CASE`.
    InvalidArgumentForPowerFunction = "2201F",
    /// A negative `LIMIT`.
    /// Way out: pass a number from 0 on.
    InvalidRowCountInLimitClause = "2201W",
    /// A negative `OFFSET`.
    /// Way out: pass a number from 0 on.
    InvalidRowCountInResultOffsetClause = "2201X",
    /// A sequence that has come to its end.
    /// Way out: alter its bounds, or take a wider type.
    SequenceGeneratorLimitExceeded = "2200H",
    /// A pattern that is no regular expression.
    /// Way out: mend the pattern as the message says.
    InvalidRegularExpression = "2201B",
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
    /// A row that references one which is not there, or one that goes and is referenced.
    /// Way out: write the row that is referenced first, or the rows that reference it.
    ForeignKeyViolation = "23503",
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
    /// Another transaction was in the way, as the message says; nothing was committed.
    /// Way out: run the transaction again.
    SerializationFailure = "40001",
    /// The commit was sent and its outcome is not known.
    /// Way out: look whether it was committed before running it again.
    StatementCompletionUnknown = "40003",
    /// Text that is not SQL.
    /// Way out: mend the text at the position given.
    SyntaxError = "42601",
    /// A text that spells no name.
    /// Way out: write the name as it is written in a statement.
    InvalidName = "42602",
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
    /// Two tables of one name in a query.
    /// Way out: give one of them an alias.
    DuplicateAlias = "42712",
    /// A function or procedure of that name exists already.
    /// Way out: take another name, or drop the other one first.
    DuplicateFunction = "42723",
    /// A column beside aggregates that is not grouped by, or an aggregate where there are no groups.
    /// Way out: name the column in `GROUP BY`, or aggregate it; put conditions on aggregates into `HAVING`.
    GroupingError = "42803",
    /// The two types do not go together.
    /// Way out: cast one to the type of the other.
    DatatypeMismatch = "42804",
    /// A name for the wrong kind of thing.
    /// Way out: name the right kind.
    WrongObjectType = "42809",
    /// A foreign key that references the wrong number of columns, or columns with no key over them.
    /// Way out: reference all columns of the primary key or of a unique constraint, as many as the foreign key has.
    InvalidForeignKey = "42830",
    /// A cast that there is not.
    /// Way out: cast to text first, or write the value otherwise.
    CannotCoerce = "42846",
    /// No such function, operator or procedure, or none that takes these arguments.
    /// Way out: name one that is there, or cast its arguments.
    UndefinedFunction = "42883",
    /// A value given to a column that only its sequence gives values.
    /// Way out: leave the column out, or say `DEFAULT`.
    GeneratedAlways = "428C9",
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
    /// `ON CONFLICT` names columns that no unique index covers, or `ORDER BY` or `GROUP BY` a column that the result has not.
    /// Way out: name the columns of the primary key or of a unique index; select what is ordered by.
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
    /// A window that contradicts the one that it names.
    /// Way out: define it as the message says.
    WindowingError = "42P20",
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
