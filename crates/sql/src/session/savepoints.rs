//! SAVEPOINT, ROLLBACK TO and RELEASE, and what is left of a transaction after an error.
//!
//! A savepoint marks what the transaction has written, what it has created and dropped, which constraints it is still to look at, and its
//! settings. Rolling back to it undoes all that without a trip. What was read since stays read: locks are kept, and the commit validates it, so that what a client concluded
//! from an error holds as well. Hence an error in a transaction with savepoints is told at once, where without them the transaction is
//! validated first.
//!
//! An error of a statement leaves a transaction with savepoints open, for ROLLBACK TO to go on with. A conflict and a site that cannot
//! serve end it: no savepoint brings it back.

use super::{Open, Outcome, Session, State};
use crate::catalog::{Changes, check_name};
use crate::context::Settings;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::txn::Mark;
use rhumb_commit::transaction;
use std::sync::Arc;

/// The most savepoints of a transaction at a time. Some drivers make one for each statement.
const SAVEPOINTS_MAX: usize = 10_000;

/// A state of the transaction to go back to.
#[derive(Debug)]
pub(super) struct Savepoint {
    name: String,
    writes: transaction::Savepoint,
    changes: Changes,
    deferred: Mark,
    settings: Arc<Settings>,
    /// The settings that stay if the transaction commits.
    kept: Arc<Settings>,
}

/// A transaction that failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// It may go on from one of its savepoints.
    Kept(Open),
    /// It has ended.
    Ended {
        /// The settings to go back to.
        before: Settings,
        /// True if it has to be run again because of others.
        conflict: bool,
    },
}

impl Session {
    /// True if an error does not end the transaction.
    pub(super) fn has_savepoints(&self) -> bool {
        matches!(&self.state, State::Explicit(open) if !open.savepoints.is_empty())
    }

    /// SAVEPOINT.
    pub(super) async fn savepoint(&mut self, name: &str) -> SqlResult<Outcome> {
        self.check_explicit("SAVEPOINT")?;
        check_name(name)?;
        let (handle, _) = self.transaction().await?;
        let (writes, changes, deferred) = {
            let mut active = handle.lock().await?;
            (active.txn.savepoint(), active.catalog.changes(), active.deferred.mark())
        };
        let settings = self.facts.settings.clone();
        let Some(open) = self.open_transaction() else { return Err(SqlError::in_failed_transaction()) };
        if open.savepoints.len() >= SAVEPOINTS_MAX {
            let message = format!("a transaction may have {SAVEPOINTS_MAX} savepoints at a time");
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message).with_hint("Release those that are not needed."));
        }
        // Savepoints are many, and settings seldom change between them.
        let last = open.savepoints.last();
        let shared =
            |known: Option<&Arc<Settings>>, now: Settings| known.filter(|known| ***known == now).cloned().unwrap_or_else(|| Arc::new(now));
        let settings = shared(last.map(|last| &last.settings), settings);
        let kept = shared(last.map(|last| &last.kept), open.kept.clone());
        open.savepoints.push(Savepoint { name: name.to_owned(), writes, changes, deferred, settings, kept });
        Ok(Outcome::Done("SAVEPOINT".into()))
    }

    /// ROLLBACK TO SAVEPOINT, also in a transaction that failed.
    pub(super) async fn roll_back_to(&mut self, name: &str) -> SqlResult<Outcome> {
        let mut open = match std::mem::replace(&mut self.state, State::Idle) {
            State::Explicit(open) => open,
            State::Failed(Failed::Kept(open)) => open,
            State::Failed(Failed::Ended { before, conflict }) => {
                self.state = State::Failed(Failed::Ended { before, conflict });
                return Err(ended(conflict));
            }
            other @ (State::Idle | State::Implicit(_)) => {
                self.state = other;
                return Err(outside("ROLLBACK TO SAVEPOINT"));
            }
        };
        let rolled_back = roll_back(&mut open, name).await;
        self.state = State::Explicit(open);
        self.restore(rolled_back?);
        Ok(Outcome::Done("ROLLBACK".into()))
    }

    /// RELEASE SAVEPOINT: it, and those made after it, are forgotten.
    pub(super) fn release(&mut self, name: &str) -> SqlResult<Outcome> {
        self.check_explicit("RELEASE SAVEPOINT")?;
        let Some(open) = self.open_transaction() else { return Err(SqlError::in_failed_transaction()) };
        let position = position(open, name)?;
        open.savepoints.truncate(position);
        Ok(Outcome::Done("RELEASE".into()))
    }

    fn check_explicit(&self, statement: &str) -> SqlResult<()> {
        if matches!(self.state, State::Explicit(_)) { Ok(()) } else { Err(outside(statement)) }
    }
}

/// Undoes what was done since the savepoint, which stays; the settings of the session then.
async fn roll_back(open: &mut Open, name: &str) -> SqlResult<Settings> {
    let position = position(open, name)?;
    open.savepoints.truncate(position + 1);
    let savepoint = &open.savepoints[position];
    let handle = open.handle.as_ref().ok_or_else(|| SqlError::internal("a savepoint of a transaction that was not begun"))?;
    let mut active = handle.lock().await?;
    active.txn.roll_back_to(savepoint.writes);
    active.catalog.go_back_to(&savepoint.changes);
    active.deferred.go_back_to(savepoint.deferred);
    if open.mode.is_optimistic() {
        active.txn.set_mode(open.mode)?;
    }
    drop(active);
    open.kept = Settings::clone(&savepoint.kept);
    Ok(Settings::clone(&savepoint.settings))
}

/// The newest savepoint of that name. Error 3B001.
fn position(open: &Open, name: &str) -> SqlResult<usize> {
    let position = open.savepoints.iter().rposition(|savepoint| savepoint.name == name);
    let undefined = || SqlError::new(SqlState::InvalidSavepointSpecification, format!("savepoint \"{name}\" does not exist"));
    position.ok_or_else(undefined)
}

fn outside(statement: &str) -> SqlError {
    SqlError::new(SqlState::NoActiveSqlTransaction, format!("{statement} can only be used in transaction blocks"))
}

fn ended(conflict: bool) -> SqlError {
    let (state, message) = match conflict {
        true => (SqlState::SerializationFailure, "could not serialize access: the transaction has ended, savepoints included"),
        false => (SqlState::InFailedSqlTransaction, "the transaction has ended and has no savepoint to go back to"),
    };
    SqlError::new(state, message).with_hint("ROLLBACK, and run the transaction again.")
}
