//! What people are shown of QuAD at a site, and what they may change there.

use crate::configuration::Cores;
use crate::explanation::Explanation;
use async_trait::async_trait;
use rhumb_commit::reason::Reason;
use rhumb_commit::transaction::TxnError;
use rhumb_core::SiteId;
use std::collections::BTreeMap;

/// What a site says of the quorums, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct QuorumView {
    /// What its actor says.
    pub explanation: Explanation,
    /// The names of all sites.
    pub names: BTreeMap<SiteId, String>,
    /// The names of all regions, in the order of the cluster.
    pub regions: Vec<String>,
}

impl QuorumView {
    /// What a reason says, with the names of sites.
    pub fn told(&self, reason: &Reason) -> String {
        reason.named(|site| self.names.get(&site).cloned().unwrap_or_else(|| site.to_string()))
    }
}

/// A site that shows its quorums, and has them changed.
#[async_trait]
pub trait Administration: Send + Sync + 'static {
    /// Which quorums there are.
    async fn quorums(&self) -> Result<QuorumView, TxnError>;

    /// Has the cluster's quorums have so many cores. Done once that is decided.
    ///
    /// # Errors
    /// [`TxnError::Invalid`] if there cannot be so many; [`TxnError::Unavailable`] or [`TxnError::Conflict`] if it was not decided, which may
    /// succeed later.
    async fn set_cores(&self, cores: Cores) -> Result<(), TxnError>;
}
