//! What a protocol shows of itself at a site, and lets people change.

use crate::error::SqlResult;
use crate::types::Datum;
use async_trait::async_trait;

/// What is administered of a protocol.
#[async_trait]
pub trait Administration: Send + Sync {
    /// The rows of its [table](super::SiteTable), at this moment.
    async fn rows(&self) -> SqlResult<Vec<Vec<Datum>>>;

    /// Has its databases have this value of the [option](super::SharedOption) that they share; `None` is the default. If `other` names one that is
    /// there already, only what they have is allowed. Errors: 22023; 55006 if others have another value.
    async fn set_option(&self, value: Option<&str>, other: Option<&str>) -> SqlResult<()>;
}
