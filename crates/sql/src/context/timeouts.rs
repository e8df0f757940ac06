//! Every timeout of the SQL layer.
//!
//! Paths begin in `crates`. Settings of a session ([`Timeout`]), each 0 to [`Timeout::MILLIS_MAX`]; from when to when each counts, and what it
//! ends, is in `docs/settings.md`:
//!
//! | setting | enforced in |
//! |---|---|
//! | `statement_timeout` | `sql/src/session/interrupt.rs` |
//! | `lock_timeout` | the gateway of the node: `node/src/gateway/interactive.rs`; the session tells it in `sql/src/session/run.rs`: `plan`, `sql/src/session/ddl.rs`: `change_catalog`, `sql/src/session/copy.rs`: `begin_copy` and `sql/src/session/control.rs`: `set_constraints` |
//! | `idle_in_transaction_session_timeout` | `sql/src/wire/connection.rs`, when `sql/src/session/bounds.rs`: `idle_limit` says so |
//!
//! Invariant: none of them ends a commit under way. Those of a connection, which no client changes:
//!
//! | constant | from | to | ends | enforced in |
//! |---|---|---|---|---|
//! | [`STARTUP_TIMEOUT`] | the connection | the end of its first packets | the connection | `sql/src/server.rs` |
//! | [`WRITE_STALL_TIMEOUT`], or what the options of the server say | an answer that the client does not read | its first byte read | the connection | `sql/src/wire/connection.rs` |
//!
//! Whatever the settings say, Replicated Commit ends a read after `read_timeout`, leaves a commit's outcome unknown after `outcome_deadline`, and asks
//! for locks that are denied a bounded number of times (`replicated-commit/src/config.rs`).

use crate::error::{SqlError, SqlState};
use std::time::Duration;

/// How long a client may take to start its session.
pub const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may read nothing of its answers.
pub const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A timeout that is a setting of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// The time of a statement.
    Statement,
    /// The time that a read may wait for locks, its trip included.
    Lock,
    /// The time that a client leaves a transaction open and asks for nothing.
    IdleInTransaction,
}

impl Timeout {
    /// The value where neither the session nor its database says one: no timeout.
    pub const DEFAULT: &str = "0";
    /// The longest, as in PostgreSQL: nearly 25 days.
    pub const MILLIS_MAX: u64 = i32::MAX as u64;

    /// The name of its setting.
    pub const fn setting(self) -> &'static str {
        match self {
            Timeout::Statement => "statement_timeout",
            Timeout::Lock => "lock_timeout",
            Timeout::IdleInTransaction => "idle_in_transaction_session_timeout",
        }
    }

    /// What the client is told when it is over.
    pub fn error(self) -> SqlError {
        match self {
            Timeout::Statement => SqlError::new(SqlState::QueryCanceled, "canceling statement due to statement timeout"),
            Timeout::Lock => SqlError::lock_timeout(),
            Timeout::IdleInTransaction => {
                let message = "terminating connection due to idle-in-transaction timeout";
                SqlError::new(SqlState::IdleInTransactionSessionTimeout, message)
            }
        }
    }
}
