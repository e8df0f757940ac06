//! BEGIN, COMMIT, ROLLBACK, and the ends that transactions come to by themselves.

use super::savepoints::Failed;
use super::{Open, Outcome, Session, State, as_of};
use crate::context::{ReadPreference, Settings};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::{AccessMode, Transaction};
use crate::txn::{Active, TransactionHandle};
use rhumb_commit::transaction::ReadMode;

impl Session {
    pub(super) async fn control(&mut self, command: &Transaction, as_of: Option<&str>) -> SqlResult<Outcome> {
        match command {
            Transaction::Begin(access) => self.begin(*access, as_of),
            Transaction::Constraints { names, deferred } => self.set_constraints(names, *deferred).await,
            Transaction::Commit => self.commit().await,
            Transaction::Rollback => self.rollback().await,
            Transaction::Savepoint(name) => self.savepoint(name).await,
            Transaction::RollbackTo(name) => self.roll_back_to(name).await,
            Transaction::Release(name) => self.release(name),
            Transaction::Characteristics(access) => self.set_characteristics(*access),
            Transaction::SessionCharacteristics(access) => {
                let read_only = match access {
                    AccessMode::ReadOnly => Some("on"),
                    AccessMode::ReadWrite => Some("off"),
                    AccessMode::Unspecified => None,
                };
                if let Some(value) = read_only {
                    self.change_setting("default_transaction_read_only", Some(value), false)?;
                }
                Ok(Outcome::Done("SET".into()))
            }
        }
    }

    fn begin(&mut self, access: AccessMode, as_of: Option<&str>) -> SqlResult<Outcome> {
        let done = Ok(Outcome::Done("BEGIN".into()));
        let joined = match std::mem::replace(&mut self.state, State::Idle) {
            State::Explicit(open) => {
                self.state = State::Explicit(open);
                self.warn(SqlState::ActiveSqlTransaction, "there is already a transaction in progress");
                return done;
            }
            // The statements before BEGIN in the same text become part of its transaction.
            State::Implicit(open) if open.handle.is_some() => {
                self.state = State::Explicit(open);
                return done;
            }
            State::Failed(failed) => {
                self.state = State::Failed(failed);
                return Err(SqlError::in_failed_transaction());
            }
            State::Implicit(open) => Some(open),
            State::Idle => None,
        };
        let mode = match as_of {
            Some(text) => ReadMode::Stale(as_of::timestamp(text, self.engine.now())?),
            None => self.mode_of(access),
        };
        let open = joined.unwrap_or_else(|| Open::new(mode, None, self.facts.settings.clone()));
        self.state = State::Explicit(Open { mode, ..open });
        done
    }

    fn mode_of(&self, access: AccessMode) -> ReadMode {
        let read_only = match access {
            AccessMode::ReadOnly => true,
            AccessMode::ReadWrite => false,
            AccessMode::Unspecified => self.begins_read_only(),
        };
        match self.facts.settings.read_preference() {
            _ if read_only => ReadMode::Snapshot,
            ReadPreference::Optimistic => ReadMode::Optimistic,
            ReadPreference::Active => ReadMode::Active,
            ReadPreference::Default | ReadPreference::Locking => ReadMode::Locking,
        }
    }

    /// How a transaction of several statements outside BEGIN reads.
    pub(super) fn batch_mode(&self) -> ReadMode {
        self.mode_of(AccessMode::Unspecified)
    }

    /// True if a transaction that does not say is read-only.
    pub(super) fn begins_read_only(&self) -> bool {
        self.facts.settings.read_only()
    }

    fn set_characteristics(&mut self, access: AccessMode) -> SqlResult<Outcome> {
        let mode = self.mode_of(access);
        match &mut self.state {
            State::Explicit(open) if access != AccessMode::Unspecified && open.handle.is_some() && open.mode != mode => {
                return Err(SqlError::new(SqlState::ActiveSqlTransaction, "SET TRANSACTION must be called before any query"));
            }
            State::Explicit(open) if access != AccessMode::Unspecified && !matches!(open.mode, ReadMode::Stale(_)) => open.mode = mode,
            State::Explicit(_) => {}
            _ => self.warn(SqlState::NoActiveSqlTransaction, "SET TRANSACTION can only be used in transaction blocks"),
        }
        Ok(Outcome::Done("SET".into()))
    }

    /// SET CONSTRAINTS.
    async fn set_constraints(&mut self, names: &[String], deferred: bool) -> SqlResult<Outcome> {
        if matches!(self.state, State::Explicit(_)) {
            let (handle, _) = self.transaction().await?;
            let work = async {
                let mut active = handle.lock().await?;
                active.txn.bound_waits(self.longest_wait());
                let Active { txn, catalog, deferred: constraints, .. } = &mut *active;
                for name in names {
                    if !catalog.has_made_deferrable(name) {
                        self.check_deferrable(name).await?;
                    }
                }
                constraints.set(txn.as_mut(), names, deferred).await
            };
            if let Err(error) = self.interrupt.within(work).await {
                return Err(self.validated(&handle, error).await);
            }
        } else {
            self.warn(SqlState::NoActiveSqlTransaction, "SET CONSTRAINTS can only be used in transaction blocks");
        }
        Ok(Outcome::Done("SET CONSTRAINTS".into()))
    }

    /// Refuses a name that is not that of a constraint which may be deferred. It is looked for apart, so that the transaction does not depend on
    /// all tables. Errors 42704, 42809.
    async fn check_deferrable(&self, name: &str) -> SqlResult<()> {
        let database = self.facts.database.as_str();
        let look = async |Active { txn, catalog, .. }: &mut Active| catalog.check_deferrable(txn.as_mut(), database, name).await;
        TransactionHandle::reading(&self.home, ReadMode::Snapshot, look).await
    }

    /// The error to tell of a transaction that read without locks: rows that it should never have met are not to blame. One with savepoints may go
    /// on after the error, and is validated by its commit.
    pub(super) async fn validated(&self, handle: &TransactionHandle, error: SqlError) -> SqlError {
        if !error.may_depend_on_rows() || self.has_savepoints() {
            return error;
        }
        handle.validate(self.facts.settings.commit_options()).await.err().unwrap_or(error)
    }

    async fn commit(&mut self) -> SqlResult<Outcome> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Explicit(open) | State::Implicit(open) => {
                self.commit_open(open).await?;
                Ok(Outcome::Done("COMMIT".into()))
            }
            State::Failed(failed) => {
                self.give_up(failed).await;
                Ok(Outcome::Done("ROLLBACK".into()))
            }
            State::Idle => {
                self.warn(SqlState::NoActiveSqlTransaction, "there is no transaction in progress");
                Ok(Outcome::Done("COMMIT".into()))
            }
        }
    }

    async fn rollback(&mut self) -> SqlResult<Outcome> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Explicit(open) | State::Implicit(open) => self.abandon(open, false).await,
            State::Failed(failed) => self.give_up(failed).await,
            State::Idle => self.warn(SqlState::NoActiveSqlTransaction, "there is no transaction in progress"),
        }
        Ok(Outcome::Done("ROLLBACK".into()))
    }

    /// Commits the implicit transaction, if there is one: the statements that shared it are complete.
    pub async fn finish(&mut self) -> SqlResult<()> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Implicit(open) => self.commit_open(open).await,
            other => {
                self.state = other;
                Ok(())
            }
        }
    }

    /// A statement failed, and with it the transaction it ran in.
    pub async fn fail(&mut self, error: &SqlError) {
        let conflict = error.is_retryable();
        let goes_on = |open: &Open| error.spares_transaction() && !open.savepoints.is_empty();
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Implicit(open) => self.abandon(open, conflict).await,
            State::Explicit(open) | State::Failed(Failed::Kept(open)) if goes_on(&open) => self.state = State::Failed(Failed::Kept(open)),
            State::Explicit(open) | State::Failed(Failed::Kept(open)) => {
                if let Some(handle) = &open.handle {
                    handle.rollback(conflict).await;
                }
                self.state = State::Failed(Failed::Ended { before: open.before, conflict });
            }
            other => self.state = other,
        }
    }

    /// Commits a transaction. What it looks at before can be interrupted, its commit cannot.
    pub(super) async fn commit_transaction(&self, handle: &TransactionHandle) -> SqlResult<()> {
        let options = self.facts.settings.commit_options();
        if !handle.is_settled().await
            && let Err(error) = self.interrupt.within(handle.settle(options)).await
        {
            handle.rollback(error.is_retryable()).await;
            return Err(error);
        }
        handle.commit(options).await
    }

    async fn commit_open(&mut self, open: Open) -> SqlResult<()> {
        let result = match &open.handle {
            Some(handle) => self.commit_transaction(handle).await,
            None => Ok(()),
        };
        // What SET LOCAL changed ends with the transaction, all that was changed with one that failed.
        self.restore(if result.is_ok() { open.kept } else { open.before });
        result
    }

    async fn abandon(&mut self, open: Open, conflict: bool) {
        if let Some(handle) = &open.handle {
            handle.rollback(conflict).await;
        }
        self.restore(open.before);
    }

    async fn give_up(&mut self, failed: Failed) {
        match failed {
            Failed::Kept(open) => self.abandon(open, false).await,
            Failed::Ended { before, .. } => self.restore(before),
        }
    }

    pub(super) fn restore(&mut self, settings: Settings) {
        if self.facts.settings != settings {
            let before: Vec<_> = self.facts.settings.reported().collect();
            self.facts.settings = settings;
            self.reports.extend(self.facts.settings.reported().filter(|report| !before.contains(report)));
        }
    }

    /// SET and RESET of one setting.
    pub(super) fn change_setting(&mut self, name: &str, value: Option<&str>, local: bool) -> SqlResult<()> {
        if local && !matches!(self.state, State::Explicit(_)) {
            self.warn(SqlState::NoActiveSqlTransaction, "SET LOCAL can only be used in transaction blocks");
            return Ok(());
        }
        let report = self.facts.settings.set(name, value)?;
        self.reports.extend(report);
        if let Some(open) = self.open_transaction().filter(|_| !local) {
            open.kept.set(name, value)?;
        }
        Ok(())
    }

    /// RESET ALL.
    pub(super) fn reset_settings(&mut self) {
        let initial = self.facts.settings.initial();
        if let Some(open) = self.open_transaction() {
            open.kept = initial.clone();
        }
        self.restore(initial);
    }

    fn warn(&mut self, state: SqlState, message: &str) {
        self.notices.push(SqlError::new(state, message));
    }
}
