//! A gateway in memory, for tests of this crate.

use async_trait::async_trait;
use rhumb_commit::transaction::{Gateway, ReadMode, RegionStatus, Transaction, TxnError};
use rhumb_core::Timestamp;

/// A database of one process: multi-version, serial, with real optimistic validation.
#[derive(Debug, Default)]
pub struct LocalGateway {}

impl LocalGateway {
    /// An empty one.
    pub fn new() -> LocalGateway {
        LocalGateway::default()
    }
}

#[async_trait]
impl Gateway for LocalGateway {
    async fn begin(&self, mode: ReadMode) -> Result<Box<dyn Transaction>, TxnError> {
        let _ = mode;
        todo!()
    }

    fn now(&self) -> Timestamp {
        todo!()
    }

    fn regions(&self) -> Vec<RegionStatus> {
        Vec::new()
    }
}
