//! What SQL sees of QuAD: the transactions of [`client`](crate::client) over its actor.

use crate::client::Serves;
use crate::status::Status;
use rhumb_commit::quad::{Cores, Request, Site};
use rhumb_commit::transaction::{CommitOptions, Committed, TxnError};

/// The gateway of this site.
pub type Gateway = crate::client::Gateway<Site>;

impl Serves for Site {
    const VALIDATES: bool = false;

    fn count(status: &Status, _: CommitOptions, outcome: Result<Committed, &TxnError>, _: bool) {
        status.quad().count(outcome);
    }

    fn explain() -> Option<Request> {
        Some(Request::Explain)
    }

    fn cores(cores: Cores) -> Option<Request> {
        Some(Request::Cores(cores))
    }
}
