//! What SQL sees of QuAD: the transactions of [`interactive`] over its actor, and the quorums.

use super::interactive::questions::{administer, inquire};
use super::interactive::{self, Serves};
use crate::gateway::reach::{Here, Reach, ask, change};
use crate::status::Status;
use async_trait::async_trait;
use rhumb_commit::transaction::{CommitOptions, Committed, TxnError};
use rhumb_quad::administration::{Administration, QuorumView};
use rhumb_quad::{Admin, Cores, Explanation, Site};

/// The gateway of a site.
pub type Gateway<R = Here<Site>> = interactive::Gateway<Site, R>;

impl Serves for Site {
    const VALIDATES: bool = false;

    fn count(status: &Status, _: CommitOptions, outcome: Result<Committed, &TxnError>, _: bool) {
        status.quad().count(outcome);
    }
}

#[async_trait]
impl<R: Reach<Site>> Administration for Gateway<R> {
    async fn quorums(&self) -> Result<QuorumView, TxnError> {
        let reach = self.reach();
        let explanation = ask(reach, inquire(Admin::Explain)).await?;
        let regions = reach.regions().into_iter().map(|region| region.name).collect();
        Ok(QuorumView { explanation: *explanation, names: reach.site_names(), regions })
    }

    async fn set_cores(&self, cores: Cores) -> Result<(), TxnError> {
        change(self.reach(), administer(Admin::Cores(cores))).await
    }
}

/// What an actor of the site says of its quorums, for people.
pub(crate) fn quorum_view(explanation: Explanation, status: &Status) -> QuorumView {
    let topology = &status.setup().topology;
    let regions = topology.regions().map(|region| topology.name(region).to_owned()).collect();
    QuorumView { explanation, names: status.names(), regions }
}
