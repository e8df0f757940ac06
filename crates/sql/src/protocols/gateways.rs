//! What a site hands in: where transactions begin, and what its protocols let people see and change.

use super::epochs::EpochAdministration;
use super::quorums::QuorumAdministration;
use super::{Administration, Protocol};
use rhumb_commit::transaction::Gateway;
use std::sync::Arc;

/// Where transactions begin, by protocol.
#[derive(Clone)]
pub struct Gateways {
    /// Of Replicated Commit.
    pub replicated_commit: Arc<dyn Gateway>,
    /// Of Catenae; a site beyond the second of its region has none.
    pub catenae: Option<Arc<dyn Gateway>>,
    /// Of QuAD; a cluster with very many sites has none.
    pub quad: Option<Arc<dyn Gateway>>,
    /// What Catenae shows of its epochs.
    pub epochs: Option<Arc<dyn rhumb_catenae::administration::Administration>>,
    /// What QuAD shows of its quorums, and lets change.
    pub quorums: Option<Arc<dyn rhumb_quad::administration::Administration>>,
}

impl Gateways {
    /// Those of the key spaces whose databases are named in another one.
    pub fn apart(&self) -> impl Iterator<Item = (Protocol, &Arc<dyn Gateway>)> {
        let catenae = self.catenae.iter().map(|gateway| (Protocol::Catenae, gateway));
        catenae.chain(self.quad.iter().map(|gateway| (Protocol::Quad, gateway)))
    }

    /// What is administered of a protocol here.
    pub fn administration(&self, protocol: Protocol) -> Option<Arc<dyn Administration>> {
        match protocol {
            Protocol::ReplicatedCommit => None,
            Protocol::Catenae => self.epochs.clone().map(|epochs| Arc::new(EpochAdministration(epochs)) as Arc<dyn Administration>),
            Protocol::Quad => self.quorums.clone().map(|quorums| Arc::new(QuorumAdministration(quorums)) as Arc<dyn Administration>),
        }
    }
}

impl<G: Gateway> From<Arc<G>> for Gateways {
    /// Replicated Commit alone.
    fn from(gateway: Arc<G>) -> Gateways {
        Gateways { replicated_commit: gateway, catenae: None, quad: None, epochs: None, quorums: None }
    }
}
