//! Invariant: a site that says that it holds all that was committed before an epoch does.
//!
//! What there is to hold is read off all disks at the moment when the first site adopts the epoch. What is settled anywhere was committed
//! before it, and so was what the configuration carries over; nothing is added to an epoch that is over.

use crate::World;
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::record::decode;
use rhumb_core::{Key, SiteId, Timestamp};
use rhumb_quad::records::{self, PreparedRecord};
use rhumb_quad::{Carried, Epoch, Site};
use std::collections::BTreeMap;

/// What those of `named` wrote that are prepared at `site`.
fn carried(world: &World<Site>, site: SiteId, named: &[Carried]) -> Vec<(Key, Timestamp)> {
    let load = Load::Records { space: records::PREPARED, from: Vec::new().into(), limit: usize::MAX, bytes: usize::MAX };
    let loaded = world.store(site).load(&load).expect("the store of a site can be read");
    let Loaded::Records { records, .. } = loaded else { unreachable!("records were asked for") };
    let prepared = records.iter().map(|(_, bytes)| decode(bytes).expect("the store holds what the protocol wrote"));
    let at = |record: &PreparedRecord| named.iter().find(|carried| carried.txn == record.txn).map(|carried| carried.at);
    let with_time = prepared.filter_map(|record: PreparedRecord| at(&record).map(|at| (record.writes, at)));
    with_time.flat_map(|(writes, at)| writes.into_iter().map(move |(key, _)| (key, at))).collect()
}

/// Checks each claim as soon as it is made.
pub(super) fn observer() -> impl FnMut(&World<Site>) -> Result<(), String> {
    let mut before: BTreeMap<Epoch, BTreeMap<Key, Timestamp>> = BTreeMap::new();
    let mut seen: BTreeMap<SiteId, (Epoch, Epoch)> = BTreeMap::new();
    move |world| {
        for site in world.topology().sites() {
            let Some(actor) = world.actor(site) else {
                seen.remove(&site);
                continue;
            };
            let (configuration, holds) = (actor.configuration(), actor.holds());
            if seen.insert(site, (configuration.epoch, holds)) == Some((configuration.epoch, holds)) {
                continue;
            }
            before.entry(configuration.epoch).or_insert_with(|| {
                let rows = world.topology().sites().flat_map(|site| world.newest(site)).map(|row| (row.key, row.version));
                let carried = world.topology().sites().flat_map(|site| carried(world, site, &configuration.carried));
                let mut newest = BTreeMap::new();
                for (key, version) in rows.chain(carried) {
                    newest.entry(key).and_modify(|known: &mut Timestamp| *known = version.max(*known)).or_insert(version);
                }
                newest
            });
            let Some((epoch, wanted)) = before.range(..=holds).next_back() else { continue };
            let here: BTreeMap<Key, Timestamp> = world.newest(site).into_iter().map(|row| (row.key, row.version)).collect();
            if let Some((key, version)) = wanted.iter().find(|(key, version)| here.get(*key).is_none_or(|here| here < *version)) {
                return Err(format!("{site} says that it holds all before {holds}, and lacks {key} of {version}, written before {epoch}"));
            }
        }
        Ok(())
    }
}
