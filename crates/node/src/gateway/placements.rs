//! Placements over the site's actor: which one is in force, what the sites measured, and how to have another one come next.

use crate::gateway::interactive::Gateway;
use async_trait::async_trait;
use rhumb_commit::placement::{Change, ChangeError, Placement};
use rhumb_commit::transaction::{self, ReadMode, TxnError};
use rhumb_core::{Key, RegionId, SiteId, Timestamp};
use rhumb_replicated_commit::{Measured, Status};
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;

/// How often the declaration that regions are lost is tried: a change that is in doubt because of them may have to be settled first.
const DECLARE_ATTEMPTS_MAX: u32 = 5;
/// The pause before it is tried again. Sites ask for votes twice a second.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);

/// What a site knows of the placement and of what one would plan another one from.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The placement that the site has adopted.
    pub placement: Placement,
    /// False as long as the site still moves into it.
    pub settled: bool,
    /// The regions whose sites all answered this one lately.
    pub reachable: Vec<RegionId>,
    /// What the sites have measured, those that have told this one.
    pub measured: BTreeMap<SiteId, Measured>,
}

/// Why a placement was not changed.
#[derive(Debug, Error)]
pub enum Refused {
    /// It cannot be changed so.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The one in force is not the one that the change was made for.
    #[error("the placement has changed meanwhile: epoch {found} is in force, not {expected}")]
    Changed {
        /// The epoch that was expected to be in force.
        expected: u64,
        /// The one that is.
        found: u64,
    },
    /// The commit that was to change it failed.
    #[error(transparent)]
    Commit(#[from] TxnError),
}

/// A site as whoever plans placements sees it.
#[async_trait]
pub trait Placements: Send + Sync + 'static {
    /// What the site knows.
    async fn view(&self) -> Result<View, TxnError>;

    /// Has `change` come after the placement of `epoch`. Done once it is decided; the regions move then.
    async fn change(&self, epoch: u64, change: Change) -> Result<Placement, Refused>;
}

#[async_trait]
impl Placements for Gateway {
    async fn view(&self) -> Result<View, TxnError> {
        let Status { placement, settled, reachable, measured, .. } = self.actor_status().await?;
        Ok(View { placement, settled, reachable, measured })
    }

    async fn change(&self, epoch: u64, change: Change) -> Result<Placement, Refused> {
        let lost = change.lost;
        for _ in 1..DECLARE_ATTEMPTS_MAX {
            if lost.is_empty() {
                break;
            }
            self.settle_without(lost).await?;
            match self.change_once(epoch, change.clone()).await {
                Err(Refused::Commit(TxnError::Conflict(_))) => tokio::time::sleep(SETTLE_PAUSE).await,
                result => return result,
            }
        }
        self.change_once(epoch, change).await
    }
}

impl Gateway {
    async fn change_once(&self, epoch: u64, change: Change) -> Result<Placement, Refused> {
        let present = self.view().await?.placement;
        if present.epoch != epoch {
            return Err(Refused::Changed { expected: epoch, found: present.epoch });
        }
        let next = present.next(change)?;
        let topology = &self.status().setup().topology;
        let keys: Vec<Key> = (0..topology.shard_count()).map(|shard| Placement::key(shard, topology)).collect();
        let mut txn = transaction::Gateway::begin(self, ReadMode::Locking).await?;
        // The first placement of a cluster is no row: it came with the configuration.
        for row in txn.get(&keys).await? {
            let found = row.value.as_ref().and_then(Placement::decode);
            let found = found.map_or(if row.version == Timestamp::ZERO { 1 } else { 0 }, |placement| placement.epoch);
            if found != epoch {
                txn.rollback().await;
                return Err(Refused::Changed { expected: epoch, found });
            }
        }
        for key in keys {
            txn.put(key, next.encode())?;
        }
        txn.commit().await?;
        Ok(next)
    }
}
