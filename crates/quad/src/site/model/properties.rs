//! What must hold in every state, and what must be possible.

use super::cluster::{Cluster, State, sites};
use super::facts::{End, Facts};
use crate::configuration::{Configuration, Epoch};
use rhumb_core::SiteId;
use stateright::Property;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Consensus.
pub(super) const AGREEMENT: &str = "one configuration is decided for an epoch";
/// Intersection of quorums over epochs.
pub(super) const FENCED: &str = "no quorum of an epoch is left once the next is decided";
/// What clients may rely on.
pub(super) const LASTING: &str = "what was acknowledged, shown or carried over is seen by every quorum of later epochs";
pub(super) const UNDONE: &str = "what a client was told to have failed is nowhere";
/// What a site says of itself.
pub(super) const TRUE_CLAIMS: &str = "who says that it holds all before an epoch does";

pub(super) fn safety() -> Vec<Property<Cluster>> {
    vec![
        Property::always(AGREEMENT, |cluster: &Cluster, state: &State| {
            cluster.configurations(state).values().all(|of_epoch| of_epoch.len() == 1)
        }),
        Property::always(FENCED, is_fenced),
        Property::always(LASTING, is_lasting),
        Property::always(UNDONE, is_undone),
        Property::always(TRUE_CLAIMS, has_true_claims),
    ]
}

/// What should be possible where one mover finds what another has begun.
pub(super) fn of_rivals() -> Vec<Property<Cluster>> {
    vec![Property::sometimes("what was accepted is proposed again", |cluster: &Cluster, state: &State| cluster.proposes_again(state))]
}

/// What should be possible where a client commits a transaction.
pub(super) fn of_a_transaction() -> Vec<Property<Cluster>> {
    vec![
        Property::sometimes("a commit is carried over", |cluster: &Cluster, state: &State| {
            decided(cluster, state).iter().any(|next| !next.carried.is_empty())
        }),
        Property::sometimes("what was acknowledged is copied", |cluster: &Cluster, state: &State| {
            let is_acknowledged = cluster.facts(state).iter().any(|facts| facts.end == Some(End::Committed));
            is_acknowledged && decided(cluster, state).iter().any(|next| next.carried.is_empty())
        }),
        Property::sometimes("a transaction that was decided is dropped", |cluster: &Cluster, state: &State| {
            cluster.facts(state).iter().any(|facts| facts.end == Some(End::Failed))
        }),
    ]
}

/// The configurations that were decided, but for the first.
fn decided(cluster: &Cluster, state: &State) -> Vec<Configuration> {
    cluster.configurations(state).into_iter().filter(|(epoch, _)| *epoch > Epoch::FIRST).flat_map(|(_, of_epoch)| of_epoch).collect()
}

/// The sites of which `is_one` is true.
fn which(facts: &[Arc<Facts>], is_one: impl Fn(&Facts) -> bool) -> BTreeSet<SiteId> {
    sites((0..facts.len()).filter(|at| is_one(&facts[*at])))
}

fn is_fenced(cluster: &Cluster, state: &State) -> bool {
    let facts = cluster.facts(state);
    let configurations = cluster.configurations(state);
    configurations.iter().filter(|(epoch, _)| configurations.contains_key(&epoch.next())).all(|(epoch, of_epoch)| {
        let mut serving = which(&facts, |facts| facts.epoch == *epoch && facts.is_open);
        serving.retain(|site| !cluster.is_lost(state, usize::from(site.region.0)));
        of_epoch.iter().all(|configuration| !has_quorum(configuration, &serving))
    })
}

/// True if something can be read or written under `configuration` at `sites` alone.
fn has_quorum(configuration: &Configuration, sites: &BTreeSet<SiteId>) -> bool {
    let quorums = &configuration.quorums;
    sites.iter().any(|at| quorums.read(*at, sites, 0).is_some() || quorums.write(*at, sites, 0).is_some())
}

/// True if the transaction must not be lost: its client was told that it committed, its row was shown, or the configuration names it.
fn is_in_force(cluster: &Cluster, state: &State, facts: &[Arc<Facts>]) -> bool {
    let is_known = |facts: &Arc<Facts>| facts.end == Some(End::Committed) || facts.has_row;
    facts.iter().any(is_known) || decided(cluster, state).iter().any(|next| !next.carried.is_empty())
}

fn is_lasting(cluster: &Cluster, state: &State) -> bool {
    let facts = cluster.facts(state);
    !is_in_force(cluster, state, &facts)
        || decided(cluster, state).iter().all(|next| {
            let lacking = which(&facts, |facts| facts.epoch == next.epoch && !facts.has_row);
            let is_read = lacking.iter().any(|at| next.quorums.read(*at, &lacking, 0).is_some());
            !is_read && next.holders().all(|holder| !lacking.contains(&holder))
        })
}

fn is_undone(cluster: &Cluster, state: &State) -> bool {
    let facts = cluster.facts(state);
    facts.iter().all(|facts| facts.end != Some(End::Failed)) || !is_in_force(cluster, state, &facts)
}

fn has_true_claims(cluster: &Cluster, state: &State) -> bool {
    let facts = cluster.facts(state);
    facts.iter().all(|facts| facts.holds <= Epoch::FIRST || facts.has_row) || !is_in_force(cluster, state, &facts)
}
