//! What people are shown of Catenae at a site, and by whom.

use crate::message::Status;
use async_trait::async_trait;
use rhumb_commit::transaction::TxnError;

/// How far a site is with epochs, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epochs {
    /// What its actor says.
    pub status: Status,
    /// The names of the regions that are passed over.
    pub passed_over: Vec<String>,
}

/// A site that shows how far it is.
#[async_trait]
pub trait Administration: Send + Sync + 'static {
    /// How far it is with epochs.
    async fn epochs(&self) -> Result<Epochs, TxnError>;
}
