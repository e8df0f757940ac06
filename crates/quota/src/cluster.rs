//! The sites of a cluster as one of them sees them.

use rhumb_core::{SiteId, Topology};
use std::sync::Arc;

/// All sites in their order, which of them this is, and which were declared lost. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// This site.
    pub me: SiteId,
    /// All sites, the lost ones included.
    pub sites: Arc<[SiteId]>,
    /// Those declared lost, in the order of the declarations ([`lost`](crate::lost)).
    pub lost: Arc<[SiteId]>,
}

impl Cluster {
    /// The cluster as the site `me` sees it.
    ///
    /// # Panics
    /// If the cluster has no such site.
    pub fn new(me: SiteId, topology: &Topology) -> Cluster {
        assert!(topology.has(me), "a site belongs to its cluster");
        Cluster { me, sites: topology.sites().collect(), lost: Arc::new([]) }
    }

    /// The same with these sites declared lost.
    pub fn without(&self, lost: impl IntoIterator<Item = SiteId>) -> Cluster {
        Cluster { lost: lost.into_iter().collect(), ..self.clone() }
    }

    /// The number of sites that are not lost.
    pub fn size(&self) -> usize {
        self.sites.len() - self.lost.len()
    }

    /// So many sites are a majority of all, the lost ones included.
    pub fn majority(&self) -> usize {
        self.sites.len() / 2 + 1
    }

    /// All sites that are not lost.
    pub fn members(&self) -> impl Iterator<Item = SiteId> + use<> {
        let Cluster { sites, lost, .. } = self.clone();
        (0..sites.len()).map(move |index| sites[index]).filter(move |site| !lost.contains(site))
    }

    /// All sites that are not lost, but this one.
    pub fn others(&self) -> impl Iterator<Item = SiteId> + use<> {
        let me = self.me;
        self.members().filter(move |site| *site != me)
    }

    /// True if `site` was declared lost.
    pub fn is_lost(&self, site: SiteId) -> bool {
        self.lost.contains(&site)
    }

    /// The number of sites declared lost. Declarations are ordered, so it says which.
    pub fn losses(&self) -> u32 {
        u32::try_from(self.lost.len()).expect("a cluster has few sites")
    }

    /// The first site that is not among the first `losses` lost ones: it has their parts once they are booked.
    pub fn heir(&self, losses: u32) -> SiteId {
        let lost = &self.lost[..losses as usize];
        *self.sites.iter().find(|site| !lost.contains(site)).expect("a majority of sites is never lost")
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

    #[test]
    fn a_lost_site_counts_for_majorities_alone() {
        let topology = Topology::new(["a", "b", "c", "d", "e"].map(String::from).into(), 1);
        let site = |region| SiteId::new(region, 0);
        let cluster = Cluster::new(site(2), &topology).without([site(3), site(0)]);
        assert_eq!((cluster.size(), cluster.majority(), cluster.rank(), cluster.losses()), (3, 3, 2, 2));
        assert_eq!(cluster.others().collect::<Vec<_>>(), [site(1), site(4)]);
        assert_eq!([0, 1, 2].map(|losses| cluster.heir(losses)), [site(0), site(0), site(1)]);
    }
}
