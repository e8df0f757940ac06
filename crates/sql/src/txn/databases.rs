//! Which databases there are.

use super::{Active, Keyspaces, TransactionHandle};
use crate::error::SqlResult;
use crate::schema::DatabaseDescriptor;
use rhumb_commit::transaction::ReadMode;
use std::sync::Arc;

/// All databases, whichever key space the session is in.
pub async fn databases(keyspaces: &Keyspaces) -> SqlResult<Vec<Arc<DatabaseDescriptor>>> {
    let list = async |Active { txn, catalog, .. }: &mut Active| catalog.databases(txn.as_mut()).await;
    TransactionHandle::reading(&keyspaces.system(), ReadMode::Snapshot, list).await
}
