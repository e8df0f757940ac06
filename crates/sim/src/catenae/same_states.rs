//! Invariant: replicas are identical at every settled epoch. Whenever a site has settled up to an epoch, its rows as of that epoch are
//! those of every other site that has.

use crate::world::{Observer, World};
use rhumb_catenae::Site;
use rhumb_catenae::epoch::Epoch;
use rhumb_core::{KeyRange, Load, Loaded, Row, SiteId, Span, Timestamp};
use std::collections::BTreeMap;

/// Checks it after each event. Rows are compared at the epochs in which something was written, as far as a settled one shows it.
pub(super) fn observer(epoch: Span) -> Observer<Site> {
    let mut seen: BTreeMap<(SiteId, u64), Epoch> = BTreeMap::new();
    let mut states: BTreeMap<Epoch, (SiteId, Vec<Row>)> = BTreeMap::new();
    Box::new(move |world| {
        for site in world.topology().sites() {
            let Some(actor) = world.actor(site).filter(|actor| actor.is_serving()) else { continue };
            let settled = actor.settled();
            // What an incarnation finds settled was looked at in the one before; old versions of it may be collected.
            let before = seen.insert((site, world.incarnation(site)), settled).unwrap_or(settled.previous());
            if settled <= before {
                continue;
            }
            let newest = rows(world, site, settled.snapshot(epoch));
            let written = newest.iter().map(|row| row.version).max().map_or(Epoch::NONE, |version| epoch_of(version, epoch));
            // What other sites have shown since this one was looked at last, and what this one shows now.
            let between: Vec<Epoch> = states.range(before.plus(1)..=settled).map(|(epoch, _)| *epoch).collect();
            // An epoch looked at before may by now have lost what was overwritten since.
            for at in between.into_iter().chain(Some(written).filter(|written| *written > before)) {
                let mut state = rows(world, site, at.snapshot(epoch));
                // Sites drop deletions at their own pace.
                state.retain(|row| row.value.is_some());
                let (other, known) = states.entry(at).or_insert_with(|| (site, state.clone()));
                if *known != state {
                    return Err(format!("{site} and {other} differ at {at}, which both have settled: {}", difference(known, &state)));
                }
            }
        }
        Ok(())
    })
}

fn epoch_of(version: Timestamp, epoch: Span) -> Epoch {
    Epoch(version.time().as_micros() / epoch.as_micros())
}

fn rows(world: &World<Site>, site: SiteId, at: Timestamp) -> Vec<Row> {
    let load = Load::Scan { range: KeyRange::prefix(&[]), at, limit: usize::MAX, bytes: usize::MAX, reverse: false };
    let Loaded::Rows { rows, .. } = world.store(site).load(&load).expect("memory does not fail") else {
        unreachable!("rows were asked for")
    };
    rows
}

fn difference(one: &[Row], other: &[Row]) -> String {
    let differs = one.iter().zip(other).find(|(one, other)| one != other);
    differs.map_or_else(|| format!("{} rows against {}", other.len(), one.len()), |(one, other)| format!("{other:?} against {one:?}"))
}
