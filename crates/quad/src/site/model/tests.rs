//! The cases that are checked, and the check held against sites that break a rule.

use super::case::{Case, Change};
use super::cluster::{Cluster, sites};
use crate::configuration::Goal;
use crate::quorums::Quorums;
use rhumb_core::{Rules, SiteId};
use rhumb_testkit::model::check;
use stateright::Checker;
use std::collections::BTreeSet;

/// A core, and the slave.
const CORE: usize = 0;
const SLAVE: usize = 3;

/// Those cores, and the other members as slaves.
fn cores(cores: &BTreeSet<SiteId>, members: &BTreeSet<SiteId>) -> Quorums {
    let cores: Vec<SiteId> = cores.iter().copied().collect();
    let preference = members.iter().map(|member| (*member, cores.clone())).collect();
    Quorums::Cores { cores, preference }
}

/// Cores 0, 1 and 2 with slave 3 become cores 1, 2 and 3 with slave 0, as each of the movers wants it for a reason of its own. Nobody
/// commits a transaction.
fn changes(movers: &[usize]) -> Case {
    let members = sites(0..4);
    let goal = |mover: usize| Goal::of(cores(&sites(1..4), &members), &format!("an operator wants it at site {mover}"));
    let changes = movers.iter().map(|mover| Change { at: *mover, goal: goal(*mover) }).collect();
    Case { rules: Rules::HOLD, first: cores(&sites(0..3), &members), changes, gateway: None }
}

/// The same with one mover, while a client commits a transaction at the gateway.
fn one_change(gateway: usize, mover: usize) -> Case {
    Case { gateway: Some(gateway), ..changes(&[mover]) }
}

/// The same, where an operator has declared those sites lost for the change of the first mover.
fn with_lost(lost: &[usize], mut case: Case) -> Case {
    let (lost, all) = (sites(lost.iter().copied()), sites(0..4));
    let members: BTreeSet<SiteId> = all.difference(&lost).copied().collect();
    let new: BTreeSet<SiteId> = members.intersection(&sites(1..4)).copied().collect();
    case.changes[0].goal = Goal { lost, ..Goal::of(cores(&new, &members), "an operator has said who is lost") };
    case
}

/// Explores all that a cluster of the product can reach.
fn explore(case: Case) {
    println!("{}", check(Cluster::new(case)).model().atlas.sizes());
}

#[test]
fn a_transaction_at_a_core_outlives_a_change_or_never_was() {
    explore(one_change(CORE, 1));
}

#[test]
fn a_transaction_at_a_slave_outlives_a_change_or_never_was() {
    explore(one_change(SLAVE, 1));
}

#[test]
fn cores_declared_lost_take_nothing_along_and_decide_nothing_else() {
    explore(with_lost(&[0, 1], one_change(CORE, 3)));
}

#[test]
fn one_of_two_changes_that_compete_is_decided() {
    explore(changes(&[1, 3]));
}

/// The second mover has not heard who is lost, and those take part in its attempt: they are out of reach of clients, and up.
#[test]
fn a_change_without_the_lost_and_one_with_them_do_not_both_come_about() {
    explore(with_lost(&[0, 1], changes(&[3, 1])));
}

/// Sites that break a rule.
#[cfg(feature = "planted")]
mod planted {
    use super::super::properties::{AGREEMENT, FENCED, LASTING};
    use super::*;
    use crate::planted::Planted;
    use rhumb_testkit::model::refute;

    #[test]
    fn broken_rules_of_a_change_are_refuted() {
        for (rule, case, property) in [
            (Planted::ShownUnsettled, one_change(SLAVE, 1), LASTING),
            (Planted::CommitsNotCarried, one_change(CORE, 1), LASTING),
            (Planted::CarriedNotFetched, one_change(SLAVE, 1), LASTING),
            (Planted::ActivatedUnreconciled, one_change(CORE, 1), LASTING),
            (Planted::OldEpochServed, one_change(CORE, 1), FENCED),
            (Planted::LossUnbounded, with_lost(&[0, 1, 3], one_change(SLAVE, 2)), LASTING),
            (Planted::PromiseForgotten, changes(&[1, 3]), AGREEMENT),
            (Planted::AcceptedIgnored, changes(&[1, 3]), AGREEMENT),
            (Planted::MinorityDecides, changes(&[1, 3]), AGREEMENT),
        ] {
            println!("{rule:?}");
            refute(Cluster::new(Case { rules: Rules::breaking(rule), ..case }), property);
        }
    }
}
