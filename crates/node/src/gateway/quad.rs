//! What SQL sees of QuAD: the transactions of [`interactive`] over its actor, and the quorums.

use super::interactive::{self, Serves, unexpected};
use crate::gateway::reach::{Here, Reach};
use crate::runtime::Rejected;
use crate::status::Status;
use async_trait::async_trait;
use rhumb_commit::interactive::{Answer, Request};
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
        match interactive::ask(reach, Request::Admin(Admin::Explain)).await? {
            Answer::Admin(explanation) => {
                let regions = reach.regions().into_iter().map(|region| region.name).collect();
                Ok(QuorumView { explanation: *explanation, names: reach.site_names(), regions })
            }
            other => unexpected(&other),
        }
    }

    async fn set_cores(&self, cores: Cores) -> Result<(), TxnError> {
        let reach = self.reach();
        match reach.ask(Request::Admin(Admin::Cores(cores))).await {
            Ok(Answer::Done) => Ok(()),
            Ok(Answer::Failed(error)) => Err(reach.told(error)),
            Ok(other) => unexpected(&other),
            Err(Rejected::Busy) => Err(TxnError::Unavailable(Rejected::Busy.to_string().into())),
            Err(Rejected::Stopped) => Err(TxnError::Unknown("the site stopped before it could tell".into())),
        }
    }
}

/// What an actor of the site says of its quorums, for people.
pub(crate) fn quorum_view(explanation: Explanation, status: &Status) -> QuorumView {
    let topology = &status.setup().topology;
    let regions = topology.regions().map(|region| topology.name(region).to_owned()).collect();
    QuorumView { explanation, names: status.names(), regions }
}
