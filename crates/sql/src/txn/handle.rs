//! A transaction in progress, shared between a session and the result streams that read through it.

use crate::catalog::CatalogView;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::txn::{Deferred, Home, Trace};
use rhumb_commit::one_shot::operation::Operation;
use rhumb_commit::transaction::{CommitOptions, Operated, ReadMode, Transaction, TxnError};
use std::fmt;
use std::sync::Arc;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

/// A transaction and its view of the catalog.
pub struct Active {
    /// The transaction.
    pub txn: Box<dyn Transaction>,
    /// What it knows of the catalog.
    pub catalog: CatalogView,
    /// What it looks at when it commits.
    pub deferred: Deferred,
    /// Where it runs.
    pub home: Home,
}

/// Shares a transaction. The session takes it out to end it; streams that read later are told so.
#[derive(Clone)]
pub struct TransactionHandle(Arc<Mutex<Option<Active>>>);

impl TransactionHandle {
    /// Begins a transaction.
    pub async fn begin(home: &Home, mode: ReadMode) -> SqlResult<TransactionHandle> {
        TransactionHandle::begin_with(home, mode, home.view()).await
    }

    /// Begins a transaction that runs again if it ends in a conflict.
    pub async fn begin_repeatable(home: &Home, mode: ReadMode) -> SqlResult<TransactionHandle> {
        TransactionHandle::begin_with(home, mode, home.view().asking_nearby()).await
    }

    async fn begin_with(home: &Home, mode: ReadMode, catalog: CatalogView) -> SqlResult<TransactionHandle> {
        let mut txn = home.gateway().begin(mode).await?;
        txn.follow(home.seen());
        Ok(TransactionHandle(Arc::new(Mutex::new(Some(Active { txn, catalog, deferred: Deferred::default(), home: home.clone() })))))
    }

    /// What `read` reads in a transaction that ends with that.
    pub async fn reading<T>(home: &Home, mode: ReadMode, read: impl AsyncFnOnce(&mut Active) -> SqlResult<T>) -> SqlResult<T> {
        let handle = TransactionHandle::begin(home, mode).await?;
        let result = read(&mut *handle.lock().await?).await;
        handle.rollback(false).await;
        result
    }

    /// The transaction, for one step.
    pub async fn lock(&self) -> SqlResult<MappedMutexGuard<'_, Active>> {
        MutexGuard::try_map(self.0.lock().await, Option::as_mut)
            .map_err(|_| SqlError::new(SqlState::NoActiveSqlTransaction, "the transaction of this result has ended"))
    }

    /// Notes the rounds of the transaction from here on.
    pub async fn trace(&self, trace: &Trace) {
        let mut slot = self.0.lock().await;
        if let Some(active) = slot.take() {
            *slot = Some(Active { txn: trace.of(active.txn), ..active });
        }
    }

    /// True if no constraints are to be looked at before it commits.
    pub async fn is_settled(&self) -> bool {
        self.0.lock().await.as_ref().is_none_or(|active| active.deferred.is_settled())
    }

    /// Looks at the constraints that were deferred, before it commits. After an error the transaction is to be given up.
    pub async fn settle(&self, options: CommitOptions) -> SqlResult<()> {
        let result = match self.0.lock().await.as_mut() {
            Some(active) => active.deferred.check(active.txn.as_mut()).await,
            None => Ok(()),
        };
        match result {
            // What led to it has to hold.
            Err(error) if error.may_depend_on_rows() => Err(self.validate(options).await.err().unwrap_or(error)),
            result => result,
        }
    }

    /// Commits, once it is [settled](Self::settle). `Err` of class 40003 if the outcome is unknown; any other error: nothing was committed.
    pub async fn commit(&self, options: CommitOptions) -> SqlResult<()> {
        let Some(mut active) = self.0.lock().await.take() else { return Ok(()) };
        if !active.deferred.is_settled() {
            return Err(SqlError::internal("a transaction is to commit before its constraints are looked at"));
        }
        active.txn.set_commit(options);
        match active.txn.commit().await {
            Ok(committed) => {
                active.catalog.committed(committed.at);
                active.home.saw(committed.at);
                Ok(())
            }
            Err(error) => {
                // It may be the fault of a stale descriptor.
                active.catalog.invalidate();
                Err(SqlError::from(error))
            }
        }
    }

    /// Commits, and carries out `operations`. Errors as of [`commit`](Self::commit).
    pub async fn operate(&self, operations: Vec<Operation>) -> SqlResult<Operated> {
        let ended = || SqlError::new(SqlState::NoActiveSqlTransaction, "the transaction of these operations has ended");
        let mut active = self.0.lock().await.take().ok_or_else(ended)?;
        match active.txn.operate(operations).await {
            Ok(operated) => {
                if let Operated::Done(committed, _) = &operated {
                    active.catalog.committed(committed.at);
                    active.home.saw(committed.at);
                }
                Ok(operated)
            }
            Err(error) => {
                active.catalog.invalidate();
                Err(SqlError::from(error))
            }
        }
    }

    /// Gives the transaction up, and finds out whether what it read still holds. `Err` of class 40001 if not, or if that
    /// cannot be found out in time: nothing was written.
    pub async fn validate(&self, options: CommitOptions) -> SqlResult<()> {
        let Some(mut active) = self.0.lock().await.take() else { return Ok(()) };
        active.txn.set_commit(options);
        active.txn.forget_writes();
        let result = active.txn.commit().await;
        if result.is_err() || active.catalog.changed() {
            active.catalog.invalidate();
        }
        result.map(|_| ()).map_err(|error| SqlError::from(undecided(error)))
    }

    /// Gives the transaction up. After a conflict the descriptors that it used are suspect.
    pub async fn rollback(&self, after_conflict: bool) {
        if let Some(mut active) = self.0.lock().await.take() {
            if after_conflict || active.catalog.changed() {
                active.catalog.invalidate();
            }
            active.txn.rollback().await;
        }
    }
}

/// The outcome of a commit that was to write nothing: if it is not known, neither is whether what was read holds.
fn undecided(error: TxnError) -> TxnError {
    match error {
        TxnError::Unknown(_) => TxnError::Conflict("what the transaction read could not be validated in time".into()),
        error => error,
    }
}

impl fmt::Debug for TransactionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransactionHandle")
    }
}
