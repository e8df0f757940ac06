//! What a failed statement means for the transaction around it: refused, unknown, unavailable, or our own mistake.
//!
//! The distinction that must never blur: a *conflict* did not happen and may be tried again; an *unknown* outcome may have happened, so trying again could do
//! it twice. A connection that breaks before COMMIT was sent leaves nothing behind; one that breaks after leaves an unknown.

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// How far a transaction had come when a statement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No transaction is open and nothing was sent that writes.
    Idle,
    /// Between BEGIN and COMMIT: nothing is visible to others yet.
    Open,
    /// A COMMIT, or a writing statement outside a transaction, was sent and not answered.
    Committing,
}

/// Why an attempt at a transaction did not commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server gave the transaction up in favour of another (SQLSTATE 40001, 40P01). It left no trace; try again.
    Conflict {
        /// SQLSTATE and its name.
        cause: String,
    },
    /// Nobody here knows whether it committed (40003, or the connection broke after COMMIT was sent). Do not try again.
    Unknown {
        /// SQLSTATE and its name, or what the network said.
        cause: String,
    },
    /// The server cannot serve now (57P03, refused or lost connections). It left no trace; reconnect and try later.
    Unavailable {
        /// SQLSTATE and its name, or what the network said.
        cause: String,
    },
    /// The statement is wrong or the server is: trying again does not help.
    Refused {
        /// The SQLSTATE, if the server gave one.
        code: Option<String>,
        /// SQLSTATE and message.
        reason: String,
    },
}

impl Failure {
    /// What `error` means to a transaction in `phase`.
    pub fn of(error: &Error, phase: Phase) -> Failure {
        match error.as_db_error() {
            Some(answer) => Failure::of_state(answer.code(), answer.message(), phase),
            None if is_network(error) => Failure::of_lost_connection(&innermost(error), phase),
            None => Failure::Refused { code: None, reason: innermost(error) },
        }
    }

    /// What SQLSTATE `state` means to a transaction in `phase`.
    pub fn of_state(state: &SqlState, message: &str, phase: Phase) -> Failure {
        let named = |name: &str| format!("{} {name}", state.code());
        match state.code() {
            "40001" => Failure::Conflict { cause: named("conflict") },
            "40P01" => Failure::Conflict { cause: named("deadlock") },
            "40003" => Failure::Unknown { cause: named("outcome unknown") },
            "57P03" => Failure::Unavailable { cause: named("unavailable") },
            "53300" => Failure::Unavailable { cause: named("too many connections") },
            code @ ("57P01" | "57P02") => Failure::of_lost_connection(&format!("{code} server stopping"), phase),
            code if code.starts_with("08") => Failure::of_lost_connection(&named("connection lost"), phase),
            code => Failure::Refused { code: Some(code.to_owned()), reason: format!("{code} {message}") },
        }
    }

    /// What a connection that breaks means to a transaction in `phase`.
    pub fn of_lost_connection(cause: &str, phase: Phase) -> Failure {
        match phase {
            Phase::Committing => Failure::Unknown { cause: cause.to_owned() },
            Phase::Idle | Phase::Open => Failure::Unavailable { cause: cause.to_owned() },
        }
    }

    /// True if the transaction certainly left no trace and may succeed if tried again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Failure::Conflict { .. } | Failure::Unavailable { .. })
    }

    /// True if the server said that a table does not exist.
    pub fn is_missing_table(&self) -> bool {
        matches!(self, Failure::Refused { code: Some(code), .. } if code == SqlState::UNDEFINED_TABLE.code())
    }

    /// True if the server only repeats that an earlier statement of the transaction failed.
    pub fn is_echo(&self) -> bool {
        matches!(self, Failure::Refused { code: Some(code), .. } if code == SqlState::IN_FAILED_SQL_TRANSACTION.code())
    }

    /// What to count it under.
    pub fn cause(&self) -> &str {
        match self {
            Failure::Conflict { cause } | Failure::Unknown { cause } | Failure::Unavailable { cause } => cause,
            Failure::Refused { reason, .. } => reason,
        }
    }
}

fn is_network(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if inner.is::<std::io::Error>() {
            return true;
        }
        source = inner.source();
    }
    error.is_closed()
}

/// The innermost message of a chain of errors: "Connection refused", where the outermost says "error connecting to server".
pub fn innermost(error: &dyn std::error::Error) -> String {
    let mut current = error;
    while let Some(inner) = current.source() {
        current = inner;
    }
    current.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(code: &str, phase: Phase) -> Failure {
        Failure::of_state(&SqlState::from_code(code), "message", phase)
    }

    #[test]
    fn a_conflict_is_retryable_in_every_phase() {
        for phase in [Phase::Idle, Phase::Open, Phase::Committing] {
            assert_eq!(state("40001", phase), Failure::Conflict { cause: "40001 conflict".into() });
            assert!(state("40001", phase).is_retryable());
        }
    }

    #[test]
    fn an_unknown_outcome_is_never_retryable() {
        assert!(!state("40003", Phase::Open).is_retryable());
        assert!(!Failure::of_lost_connection("reset", Phase::Committing).is_retryable());
        assert!(!state("57P01", Phase::Committing).is_retryable());
    }

    #[test]
    fn a_connection_lost_before_commit_leaves_nothing_behind() {
        assert_eq!(Failure::of_lost_connection("reset", Phase::Open), Failure::Unavailable { cause: "reset".into() });
        assert!(state("57P01", Phase::Open).is_retryable());
        assert!(state("57P03", Phase::Committing).is_retryable());
    }

    #[test]
    fn anything_else_is_refused_with_its_message() {
        assert_eq!(state("23505", Phase::Open).cause(), "23505 message");
        assert!(state("42P01", Phase::Open).is_missing_table());
        assert!(!state("23505", Phase::Open).is_missing_table());
    }
}
