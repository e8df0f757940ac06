//! What a statement is to the session: which rules of transactions hold for it, and who runs it.

use datafusion::sql::sqlparser::ast;

/// A parsed statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What it is.
    pub kind: StatementKind,
    /// The text of its `AS OF SYSTEM TIME`.
    pub as_of: Option<String>,
}

/// What a statement is.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// SELECT, VALUES, WITH … SELECT or TABLE; `for_update` if it locks the rows it reads.
    Query {
        /// The query, without its FOR UPDATE.
        query: Box<ast::Query>,
        /// True if it had one.
        for_update: bool,
    },
    /// SELECT of expressions with acquire() or release() among them, and of nothing else.
    Tokens(Box<ast::Query>),
    /// EXPLAIN.
    Explain(Box<Explain>),
    /// INSERT.
    Insert(Box<ast::Insert>),
    /// UPDATE.
    Update(Box<ast::Update>),
    /// DELETE.
    Delete(Box<ast::Delete>),
    /// TRUNCATE.
    Truncate {
        /// The tables.
        names: Vec<ast::ObjectName>,
        /// True if those that reference them go along.
        cascade: bool,
        /// True if sequences that go with them begin anew.
        restart: bool,
    },
    /// COPY … FROM STDIN.
    Copy(CopyFrom),
    /// CREATE of a table, index, database or procedure.
    Create(Create),
    /// ALTER TABLE.
    AlterTable(Box<ast::AlterTable>),
    /// ALTER TABLE … ALTER COLUMN, of what makes it an identity column.
    AlterIdentity {
        /// The table.
        table: ast::ObjectName,
        /// True if it does not matter whether it exists.
        if_exists: bool,
        /// The column.
        column: String,
        /// What is done.
        change: IdentityChange,
    },
    /// ALTER INDEX … RENAME TO.
    RenameIndex {
        /// Its name.
        name: ast::ObjectName,
        /// The new one.
        to: ast::ObjectName,
    },
    /// DROP of tables, indexes, sequences or databases.
    Drop {
        /// Which of these.
        object: ast::ObjectType,
        /// True if it does not matter whether they exist.
        if_exists: bool,
        /// Their names.
        names: Vec<ast::ObjectName>,
        /// True if what depends on them goes along.
        cascade: bool,
    },
    /// DROP of procedures.
    DropProcedure {
        /// True if it does not matter whether they exist.
        if_exists: bool,
        /// Their names, and the types of their parameters if they are given.
        procedures: Vec<(ast::ObjectName, Option<Vec<ast::DataType>>)>,
    },
    /// CALL of a procedure.
    Call {
        /// Its name.
        name: ast::ObjectName,
        /// What it is given.
        arguments: Vec<ast::Expr>,
    },
    /// ALTER DATABASE … SET or RESET.
    AlterDatabase {
        /// Its name.
        name: String,
        /// The setting, in lower case; `None` is all of them.
        setting: Option<String>,
        /// Its value; `None` is none.
        value: Option<String>,
    },
    /// CREATE, ALTER or DROP of a quota.
    Quota(QuotaCommand),
    /// CREATE or ALTER SEQUENCE.
    Sequence(SequenceCommand),
    /// SELECT of nextval() or setval().
    Numbers(Box<ast::Query>),
    /// Begins, ends or shapes a transaction.
    Transaction(Transaction),
    /// SET of a setting.
    Set {
        /// Its name, in lower case.
        name: String,
        /// Its value; `None` is DEFAULT.
        value: Option<String>,
        /// True for SET LOCAL: until the end of the transaction.
        local: bool,
    },
    /// RESET of one setting or of all.
    Reset(Option<String>),
    /// SHOW of a setting.
    Show(String),
    /// SHOW REGIONS.
    ShowRegions,
    /// SHOW QUOTAS.
    ShowQuotas,
    /// SELECT set_config(…) and nothing else.
    SetConfig {
        /// The name of the setting, in lower case.
        name: String,
        /// Its value.
        value: String,
        /// True if until the end of the transaction.
        local: bool,
    },
    /// DISCARD ALL and its like.
    Discard,
    /// DISCARD SEQUENCES.
    DiscardSequences,
    /// A statement for which there is nothing to do here, with its command tag: UNLISTEN, CLOSE ALL, VACUUM, ANALYZE.
    Nothing(&'static str),
    /// PREPARE.
    Prepare {
        /// The name that it gives the statement.
        name: String,
        /// The types of the first parameters.
        types: Vec<ast::DataType>,
        /// The statement.
        statement: Box<StatementKind>,
        /// How long its text is, in bytes.
        bytes: usize,
    },
    /// EXECUTE of a prepared statement.
    Execute {
        /// Its name.
        name: String,
        /// What its parameters are.
        arguments: Vec<ast::Expr>,
    },
    /// DEALLOCATE of one prepared statement or of all.
    Deallocate(Option<String>),
}

/// CREATE of something.
#[derive(Clone, Debug, PartialEq)]
pub enum Create {
    /// CREATE DATABASE.
    Database {
        /// Its name.
        name: String,
        /// True if it may exist already.
        if_not_exists: bool,
        /// Its options, their names in lower case.
        options: Vec<(String, String)>,
    },
    /// CREATE TABLE.
    Table(Box<ast::CreateTable>),
    /// CREATE INDEX.
    Index(Box<ast::CreateIndex>),
    /// CREATE PROCEDURE.
    Procedure(Box<ProcedureDefinition>),
}

/// What CREATE PROCEDURE says.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcedureDefinition {
    /// True if it may take the place of another.
    pub or_replace: bool,
    /// Its name.
    pub name: ast::ObjectName,
    /// Its parameters: their names, folded, and types.
    pub parameters: Vec<(String, ast::DataType)>,
    /// The text of its statements.
    pub body: String,
}

/// A statement about one quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaCommand {
    /// CREATE QUOTA.
    Create(QuotaDefinition),
    /// ALTER QUOTA … LIMIT.
    SetLimit {
        /// Its name.
        name: String,
        /// The new limit, as it was written.
        limit: String,
    },
    /// DROP QUOTA.
    Drop {
        /// Its name.
        name: String,
        /// True if it does not matter whether it exists.
        if_exists: bool,
    },
}

/// What CREATE QUOTA says, as it was written but for the case of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaDefinition {
    /// Its name.
    pub name: String,
    /// True if it may exist already.
    pub if_not_exists: bool,
    /// The limit.
    pub limit: String,
    /// The quota above.
    pub parent: Option<String>,
    /// How sites agree.
    pub protocol: Option<String>,
    /// What a site offers.
    pub offer: Option<String>,
    /// Who gets what.
    pub reallocation: Option<String>,
}

/// A statement about one sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum SequenceCommand {
    /// CREATE SEQUENCE.
    Create {
        /// True if it may exist already.
        if_not_exists: bool,
        /// Its name.
        name: ast::ObjectName,
        /// What is said of it.
        clauses: Vec<SequenceClause>,
    },
    /// ALTER SEQUENCE.
    Alter {
        /// True if it does not matter whether it exists.
        if_exists: bool,
        /// Its name.
        name: ast::ObjectName,
        /// What is said of it.
        clauses: Vec<SequenceClause>,
    },
    /// ALTER SEQUENCE … RENAME TO.
    Rename {
        /// True if it does not matter whether it exists.
        if_exists: bool,
        /// Its name.
        name: ast::ObjectName,
        /// The new one.
        to: ast::ObjectName,
    },
}

/// What is done to an identity column.
#[derive(Clone, Debug, PartialEq)]
pub enum IdentityChange {
    /// ADD GENERATED … AS IDENTITY.
    Add {
        /// True for ALWAYS.
        always: bool,
        /// What is said of its sequence.
        clauses: Vec<SequenceClause>,
    },
    /// SET GENERATED; true for ALWAYS.
    SetGenerated(bool),
    /// RESTART, with a number or the first.
    Restart(Option<String>),
    /// DROP IDENTITY.
    Drop {
        /// True if it does not matter whether it is one.
        if_exists: bool,
    },
}

/// What is said of a sequence; numbers as they were written.
#[derive(Clone, Debug, PartialEq)]
pub enum SequenceClause {
    /// AS.
    Type(ast::DataType),
    /// START.
    Start(String),
    /// RESTART, with a number or the first.
    Restart(Option<String>),
    /// INCREMENT.
    Increment(String),
    /// MINVALUE, or NO MINVALUE.
    Min(Option<String>),
    /// MAXVALUE, or NO MAXVALUE.
    Max(Option<String>),
    /// CACHE.
    Cache(String),
    /// CYCLE, or NO CYCLE.
    Cycle(bool),
    /// OWNED BY a column, or NONE.
    OwnedBy(Option<ast::ObjectName>),
    /// SEQUENCE NAME, of an identity column.
    Name(ast::ObjectName),
}

/// A statement about transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// BEGIN, START TRANSACTION.
    Begin(AccessMode),
    /// COMMIT, END.
    Commit,
    /// ROLLBACK, ABORT.
    Rollback,
    /// SAVEPOINT of this name.
    Savepoint(String),
    /// ROLLBACK TO SAVEPOINT of this name.
    RollbackTo(String),
    /// RELEASE SAVEPOINT of this name.
    Release(String),
    /// SET TRANSACTION.
    Characteristics(AccessMode),
    /// SET CONSTRAINTS.
    Constraints {
        /// The names of constraints; none: all.
        names: Vec<String>,
        /// True for DEFERRED.
        deferred: bool,
    },
    /// SET SESSION CHARACTERISTICS AS TRANSACTION.
    SessionCharacteristics(AccessMode),
}

/// What a transaction says about writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessMode {
    /// Nothing.
    #[default]
    Unspecified,
    /// READ WRITE.
    ReadWrite,
    /// READ ONLY.
    ReadOnly,
}

/// COPY table (columns) FROM STDIN.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyFrom {
    /// The table.
    pub table: ast::ObjectName,
    /// The columns in the order of the data; empty: all.
    pub columns: Vec<ast::Ident>,
    /// How rows are written.
    pub format: CopyFormat,
}

/// The ways of writing rows in a COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// A line for each row, with escapes.
    Text,
    /// Comma-separated values, with quotes.
    Csv,
    /// The binary form of each value, with its length.
    Binary,
}

/// How the rows of a COPY are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFormat {
    /// The way of writing.
    pub kind: CopyKind,
    /// Between two fields.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// The first line names the columns.
    pub header: bool,
    /// Around a field; CSV only.
    pub quote: u8,
    /// Before a quote in a field; CSV only.
    pub escape: u8,
}

/// An EXPLAIN.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// What it explains.
    pub kind: StatementKind,
    /// True if that is run.
    pub analyze: bool,
    /// True if it tells of the trips between regions.
    pub wan: bool,
}

impl StatementKind {
    /// True if it may read at a time in the past.
    pub fn may_be_as_of(&self) -> bool {
        match self {
            StatementKind::Explain(explain) => explain.kind.may_be_as_of(),
            kind => matches!(kind, StatementKind::Query { for_update: false, .. } | StatementKind::Transaction(Transaction::Begin(_))),
        }
    }

    /// True if it may run in a transaction that failed.
    pub fn ends_failure(&self) -> bool {
        matches!(self, StatementKind::Transaction(Transaction::Commit | Transaction::Rollback | Transaction::RollbackTo(_)))
    }

    /// True if it is to lock the rows that it reads, and so must read them with locks.
    pub fn locks_rows(&self) -> bool {
        matches!(self, StatementKind::Query { for_update: true, .. })
    }

    /// True for what PREPARE takes.
    pub fn is_preparable(&self) -> bool {
        use StatementKind::{Delete, Insert, Numbers, Query, Tokens, Update};
        matches!(self, Query { .. } | Tokens(_) | Numbers(_) | Insert(_) | Update(_) | Delete(_))
    }

    /// True if it may write, be it that it finds nothing to write.
    pub fn writes(&self) -> bool {
        !matches!(self, StatementKind::Query { .. } | StatementKind::Explain(_))
    }

    /// The word that begins it, as the messages about it name it.
    pub fn name(&self) -> &'static str {
        match self {
            StatementKind::Query { for_update: true, .. } => "SELECT FOR UPDATE",
            StatementKind::Query { .. } => "SELECT",
            StatementKind::Tokens(_) => "acquire() or release()",
            StatementKind::Explain(_) => "EXPLAIN",
            StatementKind::Insert(_) => "INSERT",
            StatementKind::Update(_) => "UPDATE",
            StatementKind::Delete(_) => "DELETE",
            StatementKind::Truncate { .. } => "TRUNCATE TABLE",
            StatementKind::Copy(_) => "COPY FROM",
            StatementKind::Create(Create::Database { .. }) => "CREATE DATABASE",
            StatementKind::Create(Create::Table(_)) => "CREATE TABLE",
            StatementKind::Create(Create::Index(_)) => "CREATE INDEX",
            StatementKind::Create(Create::Procedure(_)) => "CREATE PROCEDURE",
            StatementKind::DropProcedure { .. } => "DROP PROCEDURE",
            StatementKind::Call { .. } => "CALL",
            StatementKind::AlterDatabase { .. } => "ALTER DATABASE",
            StatementKind::AlterTable(_) | StatementKind::AlterIdentity { .. } => "ALTER TABLE",
            StatementKind::RenameIndex { .. } => "ALTER INDEX",
            StatementKind::Drop { object: ast::ObjectType::Database, .. } => "DROP DATABASE",
            StatementKind::Drop { object: ast::ObjectType::Index, .. } => "DROP INDEX",
            StatementKind::Drop { object: ast::ObjectType::Sequence, .. } => "DROP SEQUENCE",
            StatementKind::Drop { .. } => "DROP TABLE",
            StatementKind::Quota(QuotaCommand::Create(_)) => "CREATE QUOTA",
            StatementKind::Quota(QuotaCommand::SetLimit { .. }) => "ALTER QUOTA",
            StatementKind::Quota(QuotaCommand::Drop { .. }) => "DROP QUOTA",
            StatementKind::Sequence(SequenceCommand::Create { .. }) => "CREATE SEQUENCE",
            StatementKind::Sequence(_) => "ALTER SEQUENCE",
            StatementKind::Numbers(_) => "SELECT of nextval() or setval()",
            StatementKind::Transaction(Transaction::Begin(_)) => "BEGIN",
            StatementKind::Transaction(Transaction::Commit) => "COMMIT",
            StatementKind::Transaction(Transaction::Rollback | Transaction::RollbackTo(_)) => "ROLLBACK",
            StatementKind::Transaction(Transaction::Savepoint(_)) => "SAVEPOINT",
            StatementKind::Transaction(Transaction::Release(_)) => "RELEASE",
            StatementKind::Transaction(Transaction::Constraints { .. }) => "SET CONSTRAINTS",
            StatementKind::Transaction(_) | StatementKind::Set { .. } => "SET",
            StatementKind::Reset(_) => "RESET",
            StatementKind::Show(_) | StatementKind::ShowRegions | StatementKind::ShowQuotas => "SHOW",
            StatementKind::SetConfig { .. } => "SELECT",
            StatementKind::Discard => "DISCARD ALL",
            StatementKind::DiscardSequences => "DISCARD SEQUENCES",
            StatementKind::Nothing(tag) => tag,
            StatementKind::Prepare { .. } => "PREPARE",
            StatementKind::Execute { .. } => "EXECUTE",
            StatementKind::Deallocate(_) => "DEALLOCATE",
        }
    }
}
