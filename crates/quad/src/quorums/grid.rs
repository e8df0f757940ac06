//! Quorums over a grid (Cheung, Ammar and Ahamad, "The Grid Protocol", ICDE 1990): sites in columns, as many as the root of
//! their number.
//!
//! Read: one site of every column. Write: one of every column, and all of one column. Any read and any other write have a site of
//! that column.

use rhumb_core::SiteId;
use std::collections::BTreeSet;

/// The columns; lengths differ by one at the most.
fn columns(sites: &[SiteId]) -> Vec<Vec<SiteId>> {
    let count = (1..).find(|count| count * count >= sites.len()).expect("some square is large enough");
    (0..count).map(|column| sites.iter().skip(column).step_by(count).copied().collect()).collect()
}

/// One site that is `up` of every column, if there is; `turn` says at which row the search begins.
pub(super) fn read(sites: &[SiteId], up: &BTreeSet<SiteId>, turn: usize) -> Option<BTreeSet<SiteId>> {
    let first_up = |column: &Vec<SiteId>| (0..column.len()).map(|row| column[(row + turn) % column.len()]).find(|site| up.contains(site));
    columns(sites).iter().map(first_up).collect()
}

/// The same, and all of a column that is up; `turn` says at which column the search begins.
pub(super) fn write(sites: &[SiteId], up: &BTreeSet<SiteId>, turn: usize) -> Option<BTreeSet<SiteId>> {
    let mut quorum = read(sites, up, turn)?;
    let columns = columns(sites);
    let whole = (0..columns.len()).map(|column| &columns[(column + turn) % columns.len()]);
    quorum.extend(whole.into_iter().find(|column| column.iter().all(|site| up.contains(site)))?);
    Some(quorum)
}
