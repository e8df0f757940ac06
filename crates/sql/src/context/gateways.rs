//! What a site hands in: where transactions begin, and what its protocols let people see and change.

use crate::schema::Protocol;
use rhumb_catenae::administration::Administration as EpochAdministration;
use rhumb_commit::transaction::Gateway;
use rhumb_quad::administration::Administration as QuorumAdministration;
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
    pub epochs: Option<Arc<dyn EpochAdministration>>,
    /// What QuAD shows of its quorums, and lets change.
    pub quorums: Option<Arc<dyn QuorumAdministration>>,
}

impl Gateways {
    /// Those of the key spaces whose databases are named in another one.
    pub fn apart(&self) -> impl Iterator<Item = (Protocol, &Arc<dyn Gateway>)> {
        let catenae = self.catenae.iter().map(|gateway| (Protocol::Catenae, gateway));
        catenae.chain(self.quad.iter().map(|gateway| (Protocol::Quad, gateway)))
    }
}

impl<G: Gateway> From<Arc<G>> for Gateways {
    /// Replicated Commit alone.
    fn from(gateway: Arc<G>) -> Gateways {
        Gateways { replicated_commit: gateway, catenae: None, quad: None, epochs: None, quorums: None }
    }
}
