//! QuAD's changes of configuration, checked exhaustively: one change with one transaction at four sites; two changes in a row at three, one
//! of which passes an epoch over or crashes; cores that an operator declares lost. And the checks held against protocols with one rule broken.

mod change;
mod epochs;
mod schedules;

use change::{AGREEMENT, Change, LASTING, Rule};
use epochs::{Crash, Epochs, TRUE_CLAIMS};
use rhumb_core::SiteId;
use rhumb_quad::quorums::Quorums;
use rhumb_quad::{Configuration, Goal};
use rhumb_testkit::departures::Bounds;
use rhumb_testkit::model::{check, refute};
use schedules::Case;
use std::collections::BTreeSet;

/// Of a core: it writes at all cores.
const AT_CORE: Change = Change { rule: Rule::AsIs, writers: &[0, 1, 2], movers: 2, lost: &[] };
/// Of the slave: it writes at itself and at two cores.
const AT_SLAVE: Change = Change { rule: Rule::AsIs, writers: &[0, 1, 3], movers: 2, lost: &[] };

#[test]
fn a_transaction_at_a_core_outlives_a_change_or_never_was() {
    check(AT_CORE);
}

#[test]
fn a_transaction_at_a_slave_outlives_a_change_or_never_was() {
    check(AT_SLAVE);
}

#[test]
fn a_configuration_that_names_commits_whose_rows_nobody_got_is_refuted() {
    refute(Change { rule: Rule::CarriedNotFetched, movers: 1, ..AT_SLAVE }, LASTING);
}

#[test]
fn a_commit_shown_before_it_is_settled_is_refuted() {
    refute(Change { rule: Rule::ShownUnsettled, movers: 1, ..AT_SLAVE }, LASTING);
}

#[test]
fn a_seal_that_does_not_report_commits_is_refuted() {
    refute(Change { rule: Rule::CommitsNotCarried, movers: 1, ..AT_CORE }, LASTING);
}

#[test]
fn an_epoch_activated_before_reconciliation_is_refuted() {
    refute(Change { rule: Rule::Unreconciled, movers: 1, ..AT_CORE }, LASTING);
}

#[test]
fn a_sealed_site_that_goes_on_is_refuted() {
    refute(Change { rule: Rule::OldEpochServed, movers: 1, ..AT_CORE }, LASTING);
}

#[test]
fn an_acceptor_that_forgets_its_promise_is_refuted() {
    refute(Change { rule: Rule::PromiseForgotten, ..AT_CORE }, AGREEMENT);
}

#[test]
fn a_mover_that_ignores_what_was_accepted_is_refuted() {
    refute(Change { rule: Rule::AcceptedIgnored, ..AT_CORE }, AGREEMENT);
}

#[test]
fn a_configuration_activated_by_a_minority_is_refuted() {
    refute(Change { rule: Rule::MinorityActivates, ..AT_CORE }, AGREEMENT);
}

#[test]
fn what_sites_say_that_they_hold_they_hold_over_two_changes() {
    check(Epochs { rule: epochs::Rule::AsIs, crash: Crash::Reconciling });
}

#[test]
fn a_site_that_passed_an_epoch_over_and_claims_what_was_told_of_it_is_refuted() {
    refute(Epochs { rule: epochs::Rule::PassedOverClaimed, crash: Crash::Reconciling }, TRUE_CLAIMS);
}

#[test]
fn questions_that_are_numbered_anew_in_each_life_are_refuted() {
    refute(Epochs { rule: epochs::Rule::NamedAnew, crash: Crash::Reconciling }, TRUE_CLAIMS);
}

#[test]
fn cursors_that_are_kept_into_the_next_epoch_are_refuted() {
    refute(Epochs { rule: epochs::Rule::KeptOverEpochs, crash: Crash::Reconciling }, TRUE_CLAIMS);
}

#[test]
fn what_sites_say_that_they_hold_they_hold_though_an_adoption_is_lost() {
    check(Epochs { rule: epochs::Rule::AsIs, crash: Crash::Unsynced });
}

#[test]
fn a_source_that_tells_what_is_not_on_its_disk_is_refuted() {
    refute(Epochs { rule: epochs::Rule::ToldUnsynced, crash: Crash::Unsynced }, TRUE_CLAIMS);
}

/// An operator declares two of the cores lost; the other attempt has not heard of that, and they take part in it.
#[test]
fn cores_declared_lost_take_nothing_along_and_decide_nothing_else() {
    check(Change { lost: &[0, 1], ..AT_CORE });
    check(Change { lost: &[0, 1], ..AT_SLAVE });
}

#[test]
fn losses_that_take_a_write_quorum_along_are_refuted() {
    refute(Change { rule: Rule::LossUnbounded, movers: 1, lost: &[0, 1, 3], ..AT_SLAVE }, LASTING);
}

/// Site 0 commits, and cores 0, 1 and 2 with slave 3 become cores 1, 2 and 3 with slave 0, once `after` steps were made.
fn change_after(after: usize, gateway: usize) -> Case {
    let goal = Goal::of(quorums(&[1, 2, 3], 0), "a test's");
    Case::new(Configuration::first(quorums(&[0, 1, 2], 3)), gateway, vec![(after, 0, goal)])
}

/// The same, and then cores 0, 2 and 3 with slave 1.
fn two_changes_after(after: usize) -> Case {
    let mut case = change_after(after, 0);
    case.changes.push((after, 1, Goal::of(quorums(&[0, 2, 3], 1), "a test's")));
    case
}

fn quorums(cores: &[u16], slave: u16) -> Quorums {
    let cores: Vec<SiteId> = cores.iter().map(|n| SiteId::new(*n, 0)).collect();
    let preference = cores.iter().copied().chain([SiteId::new(slave, 0)]).map(|site| (site, cores.clone())).collect();
    Quorums::Cores { cores, preference }
}

/// When the change is asked for: before the transaction is prepared, while it is, when it has committed at some, and at all.
const MOMENTS: [usize; 4] = [6, 12, 20, 30];

fn check_schedules(case: &Case, bounds: Bounds) {
    let searched = case.search(bounds).unwrap_or_else(|flaw| panic!("{flaw}"));
    println!("{searched:?}");
}

#[test]
fn sites_outlive_a_change_on_all_schedules_with_two_failures() {
    for after in MOMENTS {
        check_schedules(&change_after(after, 3), Bounds { departures: 1, apart: 0 });
        check_schedules(&change_after(after, 0), Bounds { departures: 2, apart: 1 });
        check_schedules(&two_changes_after(after), Bounds { departures: 1, apart: 0 });
    }
}

/// Cores 1 and 2 are declared lost, whether they are or not; core 0 goes on with the slave.
#[test]
fn a_core_and_all_slaves_outlive_the_loss_of_the_other_cores() {
    for after in MOMENTS {
        let lost: BTreeSet<SiteId> = [1, 2].map(|n| SiteId::new(n, 0)).into();
        let goal = Goal { lost, ..Goal::of(quorums(&[0], 3), "a test's") };
        let case = Case::new(Configuration::first(quorums(&[0, 1, 2], 3)), 0, vec![(after, 0, goal)]);
        check_schedules(&Case { may_be_lost: vec![1, 2], ..case }, Bounds { departures: 1, apart: 0 });
    }
}

#[test]
#[ignore = "minutes: `make soak` runs it"]
fn sites_outlive_two_changes_on_all_schedules_with_two_failures() {
    for after in MOMENTS {
        check_schedules(&change_after(after, 3), Bounds { departures: 2, apart: 1 });
        check_schedules(&two_changes_after(after), Bounds { departures: 2, apart: 20 });
    }
}

/// Sites with one rule broken.
#[cfg(feature = "planted")]
mod planted {
    use super::*;
    use rhumb_core::Rules;
    use rhumb_quad::planted::Planted;

    fn is_caught(rule: Planted) {
        let flaw = MOMENTS.into_iter().find_map(|after| {
            let case = Case { rules: Rules::breaking(rule), ..change_after(after, 0) };
            case.search(Bounds { departures: 1, apart: 0 }).err()
        });
        println!("{}", flaw.unwrap_or_else(|| panic!("{rule:?} is not caught")));
    }

    #[test]
    fn a_site_that_goes_on_with_an_old_epoch_is_caught() {
        is_caught(Planted::OldEpochServed);
    }

    #[test]
    fn an_activation_without_reconciliation_is_caught() {
        is_caught(Planted::ActivatedUnreconciled);
    }

    #[test]
    fn commits_that_are_not_carried_are_caught() {
        is_caught(Planted::CommitsNotCarried);
    }

    #[test]
    fn commits_that_are_carried_without_their_rows_are_caught() {
        is_caught(Planted::CarriedNotFetched);
    }

    #[test]
    fn a_claim_for_an_epoch_that_was_passed_over_is_caught() {
        is_caught(Planted::PassedOverClaimed);
    }
}
