//! The cases that are checked, and the check held against sites that break a rule.

use super::case::{Case, Change, Frail, Transaction};
use super::cluster::{Cluster, sites};
use crate::configuration::{Epoch, Goal};
use crate::quorums::{Choice, Quorums};
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
    let changes = movers.iter().map(|mover| Change { at: *mover, epoch: Epoch::FIRST, goal: goal(*mover) }).collect();
    Case {
        rules: Rules::HOLD,
        first: cores(&sites(0..3), &members),
        changes,
        transactions: Vec::new(),
        first_ended_at: Vec::new(),
        frail: None,
    }
}

/// The same with one mover, while a client commits a transaction at the gateway.
fn one_change(gateway: usize, mover: usize) -> Case {
    Case { transactions: vec![Transaction { gateway, epoch: Epoch::FIRST }], ..changes(&[mover]) }
}

/// The same, where an operator has declared those sites lost for the change of the first mover.
fn with_lost(lost: &[usize], mut case: Case) -> Case {
    let (lost, all) = (sites(lost.iter().copied()), sites(0..4));
    let members: BTreeSet<SiteId> = all.difference(&lost).copied().collect();
    let new: BTreeSet<SiteId> = members.intersection(&sites(1..4)).copied().collect();
    case.changes[0].goal = Goal { lost, ..Goal::of(cores(&new, &members), "an operator has said who is lost") };
    case
}

/// Three sites, any two of which are a quorum. Each of the movers wants the first epoch to end for a reason of its own, and nobody commits a
/// transaction.
fn three_sites(movers: &[usize]) -> Case {
    let quorums = Quorums::Majority { sites: sites(0..3).into_iter().collect(), choice: Choice::RoundRobin };
    let goal = |mover: usize| Goal::of(quorums.clone(), &format!("an operator wants it at site {mover}"));
    let changes = movers.iter().map(|mover| Change { at: *mover, epoch: Epoch::FIRST, goal: goal(*mover) }).collect();
    Case { rules: Rules::HOLD, first: quorums.clone(), changes, transactions: Vec::new(), first_ended_at: Vec::new(), frail: None }
}

/// Two epochs end, and in each of them a client commits a transaction. The first has ended at all sites, or at two of them.
fn two_epochs() -> Case {
    let first = three_sites(&[0]);
    let second = Change { at: 2, epoch: Epoch(2), goal: first.changes[0].goal.clone() };
    let transactions = [Epoch::FIRST, Epoch(2)].map(|epoch| Transaction { gateway: 0, epoch });
    Case {
        changes: first.changes.iter().cloned().chain([second]).collect(),
        transactions: transactions.into(),
        first_ended_at: vec![BTreeSet::from([0, 1, 2]), BTreeSet::from([0, 1])],
        ..first
    }
}

/// One epoch ends, in which a client commits a transaction. Site 2 crashes while it gets what it lacks.
fn crash() -> Case {
    let transactions = vec![Transaction { gateway: 0, epoch: Epoch::FIRST }];
    Case { transactions, frail: Some(Frail { site: 2, late_source: 0 }), ..three_sites(&[1]) }
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

#[test]
fn what_sites_say_that_they_hold_they_hold_over_two_epochs() {
    explore(two_epochs());
}

#[test]
fn what_a_site_says_that_it_holds_it_holds_though_it_crashes_while_it_asks() {
    explore(crash());
}

/// Sites that break a rule.
mod planted {
    use super::super::properties::{AGREEMENT, FENCED, LASTING, TRUE_CLAIMS};
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
            (Planted::PromiseForgotten, three_sites(&[0, 1]), AGREEMENT),
            (Planted::AcceptedIgnored, three_sites(&[0, 1]), AGREEMENT),
            (Planted::MinorityDecides, three_sites(&[0, 1]), AGREEMENT),
            (Planted::PassedOverClaimed, two_epochs(), TRUE_CLAIMS),
            (Planted::PullsKeptOverEpochs, two_epochs(), TRUE_CLAIMS),
            (Planted::QuestionsNamedAnew, crash(), TRUE_CLAIMS),
        ] {
            println!("{rule:?}");
            refute(Cluster::new(Case { rules: Rules::breaking(rule), ..case }), property);
        }
    }
}
