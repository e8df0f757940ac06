//! The sites of a cluster as one of them sees them.

use rhumb_core::{SiteId, Topology};
use std::sync::Arc;

/// All sites in their order, and which of them this is. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// This site.
    pub me: SiteId,
    /// All sites.
    pub sites: Arc<[SiteId]>,
}

impl Cluster {
    /// The cluster as the site `me` sees it.
    ///
    /// # Panics
    /// If the cluster has no such site.
    pub fn new(me: SiteId, topology: &Topology) -> Cluster {
        assert!(topology.has(me), "a site belongs to its cluster");
        Cluster { me, sites: topology.sites().collect() }
    }

    /// The number of sites.
    pub fn size(&self) -> usize {
        self.sites.len()
    }

    /// So many sites are a majority.
    pub fn majority(&self) -> usize {
        self.size() / 2 + 1
    }

    /// All sites but this one.
    pub fn others(&self) -> impl Iterator<Item = SiteId> + use<> {
        let Cluster { me, sites } = self.clone();
        (0..sites.len()).map(move |index| sites[index]).filter(move |site| *site != me)
    }

    /// This site's place among all, from 0: to act one after another, and to divide among all.
    pub fn rank(&self) -> usize {
        self.sites.iter().position(|site| *site == self.me).expect("a site belongs to its cluster")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_knows_its_place() {
        let topology = Topology::new(vec!["a".into(), "b".into()], 2);
        let cluster = Cluster::new(SiteId::new(1, 0), &topology);
        assert_eq!((cluster.size(), cluster.majority(), cluster.rank()), (4, 3, 2));
        assert_eq!(cluster.others().collect::<Vec<_>>(), [SiteId::new(0, 0), SiteId::new(0, 1), SiteId::new(1, 1)]);
    }
}
