//! The ready file: where the regions of a cluster are, for scripts that wait for it.

use super::folder::SitePlan;
use crate::running::write_atomically;
use serde::Serialize;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

#[derive(Serialize)]
struct Ready<'a> {
    regions: Vec<ReadyRegion<'a>>,
}

#[derive(Serialize)]
struct ReadyRegion<'a> {
    name: &'a str,
    pg: String,
    resp: SocketAddr,
    http: String,
}

/// Removes what a demo before left at `path`: who waits for the file must not find an old one.
pub fn clear(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes the first site of each region to `path`, all at once.
pub fn write<'a>(path: &Path, sites: impl Iterator<Item = &'a SitePlan>) -> io::Result<()> {
    let firsts = sites.filter(|site| site.shard == 0);
    let region = |site: &'a SitePlan| ReadyRegion { name: &site.region, pg: site.pg(), resp: site.resp(), http: site.http() };
    let regions = firsts.map(region).collect();
    write_atomically(path, &Ready { regions })
}
