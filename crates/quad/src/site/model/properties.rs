//! What must hold in every state, and what must be possible.

use super::case::Transaction;
use super::cluster::{Cluster, State, sites};
use super::facts::{End, Facts};
use crate::configuration::{Configuration, Epoch};
use crate::testing::site;
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

/// What should be possible where a client commits the one transaction that there is.
pub(super) fn of_a_transaction() -> Vec<Property<Cluster>> {
    vec![
        Property::sometimes("a commit is carried over", |cluster: &Cluster, state: &State| {
            decided(cluster, state).iter().any(|next| !next.carried.is_empty())
        }),
        Property::sometimes("what was acknowledged is copied", |cluster: &Cluster, state: &State| {
            let is_acknowledged = cluster.facts(state).iter().any(|facts| facts.ends.get(&0) == Some(&End::Committed));
            is_acknowledged && decided(cluster, state).iter().any(|next| next.carried.is_empty())
        }),
        Property::sometimes("a transaction that was decided is dropped", |cluster: &Cluster, state: &State| {
            cluster.facts(state).iter().any(|facts| facts.ends.get(&0) == Some(&End::Failed))
        }),
    ]
}

/// What should be possible where two epochs end.
pub(super) fn of_two_epochs() -> Vec<Property<Cluster>> {
    vec![
        Property::sometimes("a site passes an epoch over and holds what came before", |cluster: &Cluster, state: &State| {
            let third = Epoch::FIRST.next().next();
            let decided = decided(cluster, state);
            let was_reconciled =
                |at: usize| decided.iter().any(|next| next.epoch < third && next.holders().any(|holder| holder == site(at as u16)));
            let facts = cluster.facts(state);
            (0..facts.len()).any(|at| facts[at].holds == third && !was_reconciled(at))
        }),
        Property::sometimes("all that was committed is everywhere", |cluster: &Cluster, state: &State| {
            let all = 0..cluster.case.transactions.len();
            cluster.facts(state).iter().all(|facts| facts.holds == Epoch::FIRST.next().next() && facts.rows.iter().copied().eq(all.clone()))
        }),
    ]
}

/// What should be possible where a site crashes.
pub(super) fn of_a_crash() -> Vec<Property<Cluster>> {
    vec![Property::sometimes("a site that has crashed gets a row and holds the past", |cluster: &Cluster, state: &State| {
        let facts = &cluster.facts(state)[cluster.case.frail.expect("one is frail").site];
        cluster.has_crashed(state) && facts.holds > Epoch::FIRST && !facts.rows.is_empty()
    })]
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

/// The transactions that must not be lost: their clients were told that they committed, their rows were shown, or a configuration names them.
fn in_force(cluster: &Cluster, state: &State, facts: &[Arc<Facts>]) -> Vec<usize> {
    let decided = decided(cluster, state);
    let is_in_force = |(number, transaction): &(usize, &Transaction)| {
        let is_known = |facts: &Arc<Facts>| facts.ends.get(number) == Some(&End::Committed) || facts.rows.contains(number);
        // A transaction is the only one of its epoch.
        let is_carried = |next: &Configuration| next.epoch == transaction.epoch.next() && !next.carried.is_empty();
        facts.iter().any(is_known) || decided.iter().any(is_carried)
    };
    cluster.case.transactions.iter().enumerate().filter(is_in_force).map(|(number, _)| number).collect()
}

/// The epoch of the transaction of this number.
fn epoch_of(cluster: &Cluster, transaction: usize) -> Epoch {
    cluster.case.transactions[transaction].epoch
}

fn is_lasting(cluster: &Cluster, state: &State) -> bool {
    let facts = cluster.facts(state);
    let in_force = in_force(cluster, state, &facts);
    decided(cluster, state).iter().all(|next| {
        in_force.iter().filter(|transaction| epoch_of(cluster, **transaction) < next.epoch).all(|transaction| {
            let lacking = which(&facts, |facts| facts.epoch == next.epoch && !facts.rows.contains(transaction));
            let is_read = lacking.iter().any(|at| next.quorums.read(*at, &lacking, 0).is_some());
            !is_read && next.holders().all(|holder| !lacking.contains(&holder))
        })
    })
}

fn is_undone(cluster: &Cluster, state: &State) -> bool {
    let facts = cluster.facts(state);
    let in_force = in_force(cluster, state, &facts);
    facts.iter().all(|facts| in_force.iter().all(|transaction| facts.ends.get(transaction) != Some(&End::Failed)))
}

fn has_true_claims(cluster: &Cluster, state: &State) -> bool {
    let facts = cluster.facts(state);
    let in_force = in_force(cluster, state, &facts);
    let is_there = |facts: &Facts, transaction: usize| epoch_of(cluster, transaction) >= facts.holds || facts.rows.contains(&transaction);
    facts.iter().all(|facts| in_force.iter().all(|transaction| is_there(facts, *transaction)))
}
