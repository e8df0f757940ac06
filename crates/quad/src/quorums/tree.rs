//! Quorums over a logical tree (Agrawal and El Abbadi, "The Tree Quorum Protocol", VLDB 1990): sites in the order of a heap of
//! degree three.
//!
//! Write: a node and, of a majority of its children, the same again. Read: a node, or in its stead the reads of a majority of its
//! children. Any write has the root; a read without it and a write share a child, and so on down to a leaf.

use super::majority;
use rhumb_core::SiteId;
use std::collections::BTreeSet;

const DEGREE: usize = 3;

/// The sites of a read among those that are `up`, if there is one.
pub(super) fn read(sites: &[SiteId], up: &BTreeSet<SiteId>) -> Option<BTreeSet<SiteId>> {
    read_below(sites, 0, up)
}

/// The same for a write.
pub(super) fn write(sites: &[SiteId], up: &BTreeSet<SiteId>) -> Option<BTreeSet<SiteId>> {
    write_below(sites, 0, up)
}

fn children(sites: &[SiteId], node: usize) -> impl Iterator<Item = usize> {
    (DEGREE * node + 1..=DEGREE * node + DEGREE).take_while(|child| *child < sites.len())
}

fn read_below(sites: &[SiteId], node: usize, up: &BTreeSet<SiteId>) -> Option<BTreeSet<SiteId>> {
    if up.contains(&sites[node]) {
        return Some(BTreeSet::from([sites[node]]));
    }
    children(sites, node).next()?;
    of_most_children(sites, node, |child| read_below(sites, child, up))
}

fn write_below(sites: &[SiteId], node: usize, up: &BTreeSet<SiteId>) -> Option<BTreeSet<SiteId>> {
    if !up.contains(&sites[node]) {
        return None;
    }
    let mut quorum = BTreeSet::from([sites[node]]);
    if children(sites, node).next().is_some() {
        quorum.append(&mut of_most_children(sites, node, |child| write_below(sites, child, up))?);
    }
    Some(quorum)
}

/// What `below` finds for the first majority of children for which it finds anything.
fn of_most_children(sites: &[SiteId], node: usize, below: impl Fn(usize) -> Option<BTreeSet<SiteId>>) -> Option<BTreeSet<SiteId>> {
    let needed = majority(children(sites, node).count());
    let found: Vec<BTreeSet<SiteId>> = children(sites, node).filter_map(below).take(needed).collect();
    (found.len() == needed).then(|| found.into_iter().flatten().collect())
}
