//! What changes in Avantan\[(n+1)/2\] once sites are declared lost: next to nothing, for it waits for no single site.

use super::{Majority, Out, Role};
use crate::avantan::AccountPort;
use crate::cluster::Cluster;

impl Majority {
    /// Sites were declared lost: they are asked for nothing any more, and in no list that this site makes. That they have promised
    /// or accepted something stays true; a list that they are in is decided or not as any other.
    pub fn lose(&mut self, cluster: &Cluster, port: &mut dyn AccountPort, out: &mut Out) {
        self.cluster = cluster.clone();
        if let Role::Candidate { answers, .. } = &mut self.role {
            answers.retain(|site, _| !cluster.is_lost(*site));
        }
        self.consider(false, port, out);
    }
}
