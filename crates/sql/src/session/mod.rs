//! One client's session: its settings, its transaction, and the rules by which statements run in it.
//!
//! ```text
//!            a statement                 BEGIN
//!   Implicit ←────────── Idle ─────────────────────→ Explicit ──(an error)──→ Failed
//!      └── finish ────────↑ └←──── COMMIT, ROLLBACK ────┼──── COMMIT, ROLLBACK ──┤
//!                                                       └←── ROLLBACK TO ────────┘
//! ```
//! A statement outside BEGIN that stands alone is *autocommit*: it reads without locks and is run again, with locks, if
//! another transaction was in its way. Statements that arrive together, outside BEGIN, share one implicit transaction.
//! What is done to quotas is part of no transaction: it takes effect at once, and once.
//! Nothing is reported as done before it is committed, and a commit of unknown outcome is reported as just that.

mod alter;
mod as_of;
mod autocommit;
mod bounds;
mod control;
mod copy;
mod copy_in;
mod ddl;
mod explain;
mod identity;
mod interrupt;
mod one_shot;
mod outcome;
mod prepared;
mod quota;
mod run;
mod savepoints;
mod show;

pub use copy_in::CopyIn;
#[cfg(feature = "fuzzing")]
pub use copy_in::{Lines, Tuples, fields};
pub use interrupt::Canceller;
pub use outcome::{Described, Outcome, Tag};
pub use prepared::Prepared;

use crate::context::{Facts, Settings};
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::planner::{Planning, values_given};
use crate::sequence::Drawn;
use crate::txn::{Active, Home, Trace, TransactionHandle};
use crate::types::{Datum, SqlType};
use datafusion::sql::sqlparser::ast::Expr;
use interrupt::Interrupt;
use prepared::Texts;
use rhumb_commit::transaction::ReadMode;
use rhumb_core::Timestamp;
use savepoints::{Failed, Savepoint};
use std::sync::Arc;

/// What the client may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Outside a transaction.
    Idle,
    /// In a transaction.
    InTransaction,
    /// In a transaction that failed: only COMMIT and ROLLBACK are taken, which both roll back, and ROLLBACK TO SAVEPOINT.
    Failed,
}

/// A transaction of the session.
#[derive(Debug)]
struct Open {
    /// How it reads.
    mode: ReadMode,
    /// The transaction itself; begun by the first statement that needs it.
    handle: Option<TransactionHandle>,
    /// The settings to go back to if it fails.
    before: Settings,
    /// The settings that stay if it commits: those of now without what SET LOCAL changed.
    kept: Settings,
    /// Those made and not released, the newest last.
    savepoints: Vec<Savepoint>,
}

impl Open {
    fn new(mode: ReadMode, handle: Option<TransactionHandle>, settings: Settings) -> Open {
        Open { mode, handle, kept: settings.clone(), before: settings, savepoints: Vec::new() }
    }
}

#[derive(Debug)]
enum State {
    Idle,
    /// Of one statement, or of statements that arrived together.
    Implicit(Open),
    /// Begun by BEGIN.
    Explicit(Open),
    Failed(Failed),
}

/// One client's session.
pub struct Session {
    engine: Arc<Engine>,
    home: Home,
    facts: Facts,
    state: State,
    texts: Texts,
    /// The numbers of sequences that it was given.
    drawn: Drawn,
    interrupt: Interrupt,
    /// Where the rounds of its transactions are noted, while a statement is analyzed.
    trace: Option<Trace>,
    reports: Vec<(&'static str, String)>,
    notices: Vec<SqlError>,
}

/// Whether a statement stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// It does: outside BEGIN it is a transaction of its own.
    Alone,
    /// Others arrived with it: outside BEGIN they share a transaction.
    Batch,
}

impl Session {
    /// A session of `user` in `database`. Error 3D000.
    pub async fn open(engine: Arc<Engine>, user: String, database: String, pid: i32) -> SqlResult<Session> {
        let system = engine.keyspaces.system();
        let find = async |Active { txn, catalog, .. }: &mut Active| catalog.database(txn.as_mut(), &database).await;
        let descriptor = TransactionHandle::reading(&system, ReadMode::Snapshot, find).await?;
        let home = engine.keyspaces.home(&descriptor)?;
        let read = async |Active { txn, catalog, .. }: &mut Active| catalog.database_settings(txn.as_mut(), descriptor.id).await;
        let mut notices = Vec::new();
        let settings = match TransactionHandle::reading(&system, ReadMode::Optimistic, read).await {
            // What needs no rows, such as quotas, can be had even so.
            Err(error) if error.state() == SqlState::CannotConnectNow => {
                notices.push(error.with_hint("The session begins without the settings of its database."));
                Settings::default()
            }
            settings => Settings::of(&settings?),
        };
        Ok(Session {
            home,
            facts: Facts { user, database, pid, settings },
            state: State::Idle,
            texts: Texts::default(),
            drawn: Drawn::default(),
            interrupt: Interrupt::new(engine.environment.clone()),
            engine,
            trace: None,
            reports: Vec::new(),
            notices,
        })
    }

    /// What the client may do next.
    pub fn status(&self) -> Status {
        match self.state {
            State::Idle | State::Implicit(_) => Status::Idle,
            State::Explicit(_) => Status::InTransaction,
            State::Failed(_) => Status::Failed,
        }
    }

    /// True if nothing is lost when it ends: no transaction is open but one that has failed and cannot go on.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Idle | State::Failed(Failed::Ended { .. }))
    }

    /// The timestamp of the last transaction that it was told to be committed, or of the last snapshot.
    pub fn last_commit(&self) -> Timestamp {
        self.home.last()
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.facts.settings
    }

    /// Changes a setting on behalf of the client's startup packet.
    pub fn set(&mut self, name: &str, value: &str) -> SqlResult<()> {
        self.facts.settings.set(name, Some(value)).map(drop)
    }

    /// What others cancel its statements by.
    pub fn canceller(&self) -> Canceller {
        self.interrupt.canceller()
    }

    /// The session has answered all that it was asked: a cancel request comes too late until it is asked again.
    pub fn rest(&self) {
        self.interrupt.rest();
    }

    /// The settings that changed since the last call and that the client is to be told.
    pub fn take_reports(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.reports)
    }

    /// The warnings since the last call.
    pub fn take_notices(&mut self) -> Vec<SqlError> {
        std::mem::take(&mut self.notices)
    }

    /// The statements of a text of the simple protocol.
    pub fn parse(&mut self, sql: &str) -> SqlResult<Arc<[Arc<Prepared>]>> {
        self.texts.statements(sql)
    }

    /// The one statement of a text of the extended protocol; `None` if it is empty.
    pub fn prepare(&mut self, sql: &str, hints: Vec<Option<SqlType>>) -> SqlResult<Option<Arc<Prepared>>> {
        let statements = self.texts.statements(sql)?;
        match &*statements {
            [] => Ok(None),
            [statement] if hints.iter().all(Option::is_none) => Ok(Some(statement.untold())),
            [statement] => Ok(Some(Prepared::new(statement.statement.clone(), hints))),
            _ => Err(SqlError::syntax("cannot insert multiple commands into a prepared statement")),
        }
    }

    /// What EXECUTE gives the parameters of the prepared statement `name`, whose types are `wanted`. Errors 42601, 42804.
    pub fn given(&self, name: &str, wanted: &[SqlType], arguments: &[Expr]) -> SqlResult<Vec<Datum>> {
        values_given(Planning { engine: &self.engine, facts: &self.facts, hints: &[] }, name, wanted, arguments)
    }

    fn open_transaction(&mut self) -> Option<&mut Open> {
        match &mut self.state {
            State::Implicit(open) | State::Explicit(open) => Some(open),
            State::Idle | State::Failed(_) => None,
        }
    }
}
