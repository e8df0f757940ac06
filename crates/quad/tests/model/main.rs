//! QuAD's changes of configuration on all schedules with a few failures, by whole sites with disks that sync late. And the checks held against
//! sites with one rule broken. Small clusters are explored to the end beside the sites themselves: `src/site/model`.

mod schedules;

use rhumb_core::SiteId;
use rhumb_quad::quorums::Quorums;
use rhumb_quad::{Configuration, Goal};
use rhumb_testkit::departures::Bounds;
use schedules::Case;
use std::collections::BTreeSet;

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
    let searched = case.search(bounds).unwrap_or_else(|violation| panic!("{violation}"));
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
mod planted {
    use super::*;
    use rhumb_core::Rules;
    use rhumb_quad::planted::Planted;

    fn is_caught(rule: Planted) {
        let violation = MOMENTS.into_iter().find_map(|after| {
            let case = Case { rules: Rules::breaking(rule), ..change_after(after, 0) };
            case.search(Bounds { departures: 1, apart: 0 }).err()
        });
        println!("{}", violation.unwrap_or_else(|| panic!("{rule:?} is not caught")));
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
