//! What interfaces see of quotas: the Redis protocol, HTTP, SQL and the command line all speak to this trait, whatever
//! runs below. Samya's application managers (3.1) are not here: a client asks a site, and an operation stays at that site.

use crate::info::{Info, Read};
use crate::name::Name;
use crate::operation::{Done, Operation};
use crate::refusal::Refusal;
use crate::spec::Spec;
use async_trait::async_trait;
use rhumb_core::SiteId;

/// The quotas of a cluster, by way of one of its sites. What an operation or a change is
/// answered with is durable first; a read of other sites may show what these are about to write.
#[async_trait]
pub trait Quotas: Send + Sync {
    /// Carries out up to [`OPERATIONS_MAX`](crate::operation::OPERATIONS_MAX) operations, each for itself, and says in the
    /// same order what became of them. One that has to wait for tokens does not hold up those after it.
    async fn run(&self, operations: Vec<Operation>) -> Vec<Result<Done, Refusal>>;

    /// Makes a quota. Its limit is divided equally among the sites.
    async fn create(&self, name: Name, spec: Spec) -> Result<(), Refusal>;

    /// Changes the limit of a quota in use. Lowered below what clients hold, the limit takes effect as they release.
    async fn set_limit(&self, name: Name, limit: u64) -> Result<(), Refusal>;

    /// Ends a quota that has none below it. Tokens that clients hold of it are forgotten.
    async fn drop(&self, name: Name) -> Result<(), Refusal>;

    /// Declares a site lost for ever: it has no part in quotas any more, and all that it may have given out counts as held by clients.
    async fn declare_lost(&self, site: SiteId) -> Result<(), Refusal>;

    /// The sites declared lost, and in how many quotas it is not booked yet what they have.
    async fn lost(&self) -> Result<(Vec<SiteId>, usize), Refusal>;

    /// A quota and its tokens.
    async fn get(&self, name: Name, read: Read) -> Result<Info, Refusal>;

    /// All quotas by name, with the tokens of this site.
    async fn list(&self) -> Result<Vec<Info>, Refusal>;
}
