//! Who asks for a change of the quotas, and is told what became of it.

use super::QuotaId;
use rhumb_core::actor::RequestId;

/// Who asked for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A request for this change alone.
    Request(RequestId),
    /// One of the operations of a request.
    Operation {
        /// The request.
        client: RequestId,
        /// The operation's place in it.
        index: usize,
        /// The quota whose tokens it frees.
        quota: QuotaId,
    },
    /// The site itself.
    Site,
}
