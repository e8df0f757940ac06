//! Which sites are fit to be cores while links between sites are cut.
//!
//! A write needs all cores, or the site itself and a majority of them, so a site that does not hear one core may find no quorum. Each of the two
//! takes the other for silent; if a change replaced one by the other, the next change would undo that, for as long as the link is cut. So each site
//! lists with every pong the sites that it hears, and only sites that all others hear become cores.

use rhumb_core::SiteId;
use std::collections::{BTreeMap, BTreeSet};

/// Who hears whom, as far as one site knows. A link carries messages both ways, or is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ears<'a> {
    /// Who knows that.
    pub(super) me: SiteId,
    /// The sites that it hears, itself among them.
    pub(super) up: &'a BTreeSet<SiteId>,
    /// Whom each of them hears.
    pub(super) hears: &'a BTreeMap<SiteId, Vec<SiteId>>,
}

impl Ears<'_> {
    fn hears(&self, ear: SiteId, site: SiteId) -> bool {
        let hears = || self.hears.get(&ear).is_some_and(|heard| heard.contains(&site));
        ear == site || if ear == self.me { self.up.contains(&site) } else { self.up.contains(&ear) && hears() }
    }

    /// False if both ends, or the one that is heard here, say that they do not hear the other.
    fn are_linked(&self, one: SiteId, other: SiteId) -> bool {
        let is_unknown = !self.up.contains(&one) && !self.up.contains(&other);
        is_unknown || self.hears(one, other) || self.hears(other, one)
    }

    /// The members that somebody hears.
    pub(super) fn alive(&self, members: &BTreeSet<SiteId>) -> BTreeSet<SiteId> {
        members.iter().copied().filter(|site| self.up.iter().any(|ear| self.hears(*ear, *site))).collect()
    }

    /// The members that are heard by every member that some cores can serve, that is, by all that hear a majority of those alive.
    pub(super) fn heard_by_all(&self, members: &BTreeSet<SiteId>) -> BTreeSet<SiteId> {
        let alive = self.alive(members);
        let is_served = |site: &SiteId| 2 * alive.iter().filter(|other| self.are_linked(*site, **other)).count() > alive.len();
        let served: BTreeSet<SiteId> = alive.iter().copied().filter(is_served).collect();
        served.iter().copied().filter(|site| served.iter().all(|other| self.are_linked(*site, *other))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(n: u16) -> SiteId {
        SiteId::new(n, 0)
    }

    fn set(of: impl IntoIterator<Item = u16>) -> BTreeSet<SiteId> {
        of.into_iter().map(site).collect()
    }

    /// The sites that all others hear, of so many sites of which some are `down`, as site `me` knows it while these links are cut.
    fn fit(me: u16, count: u16, down: &[u16], cut: &[(u16, u16)]) -> BTreeSet<SiteId> {
        let is_cut = |a: u16, b: u16| cut.contains(&(a, b)) || cut.contains(&(b, a));
        let heard_at = |ear: u16| (0..count).filter(move |other| !down.contains(other) && (*other == ear || !is_cut(ear, *other)));
        let hears = (0..count).map(|ear| (site(ear), heard_at(ear).map(site).collect())).collect();
        Ears { me: site(me), up: &set(heard_at(me)), hears: &hears }.heard_by_all(&set(0..count))
    }

    #[test]
    fn who_is_down_or_on_the_other_side_is_not_fit_and_all_others_are() {
        assert_eq!(fit(0, 5, &[], &[]), set(0..5));
        assert_eq!(fit(0, 5, &[1, 4], &[]), set([0, 2, 3]));
        let halves: Vec<(u16, u16)> = (0..3).flat_map(|one| [(one, 3), (one, 4)]).collect();
        assert_eq!((fit(0, 5, &[], &halves), fit(4, 5, &[], &halves)), (set(0..3), set([3, 4])));
    }

    #[test]
    fn the_ends_of_a_cut_link_are_not_fit_wherever_one_looks_from() {
        (0..5).for_each(|me| assert_eq!(fit(me, 5, &[], &[(0, 1)]), set([2, 3, 4]), "as {me} knows it"));
        (0..4).for_each(|me| assert_eq!(fit(me, 5, &[4], &[(0, 1)]), set([2, 3]), "as {me} knows it"));
    }

    #[test]
    fn whom_hardly_anybody_hears_makes_nobody_else_unfit() {
        (0..4).for_each(|me| assert_eq!(fit(me, 5, &[], &[(4, 0), (4, 1), (4, 2)]), set(0..4), "as {me} knows it"));
    }

    #[test]
    fn who_noticed_a_silence_first_is_not_told_of_a_cut_link_by_those_who_have_not() {
        let hears = BTreeMap::from([(site(1), vec![site(0), site(1)]), (site(2), vec![site(0), site(1), site(2)])]);
        let ears = Ears { me: site(0), up: &set(0..3), hears: &hears };
        assert_eq!(ears.heard_by_all(&set(0..3)), set(0..3), "one end still hears the other");
    }
}
