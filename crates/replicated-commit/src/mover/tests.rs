//! How a site moves from one placement to the next, step by step.

use super::*;
use crate::message::{Doubt, Meta};
use crate::records::PreparedRecord;
use crate::testing::{ME, R1, R2, Stage, ms, part};
use rhumb_commit::placement::Change;

fn next(stage: &mut Stage) -> Step {
    stage.move_on(|mover, near, cx| mover.next(near, cx)).0
}

/// A stage on which a placement without `r2` is adopted.
fn moving() -> Stage {
    let mut stage = Stage::new(1);
    let voters = [ME.region, R1.region].into_iter().collect();
    let change = Change { voters, passives: Regions::NONE, coordinators: BTreeMap::new(), lost: Regions::NONE };
    let placement = stage.shared.placement.next(change).expect("one that may come next");
    let (batch, said) = stage.move_on(|mover, _, cx| {
        let mut batch = Batch::new();
        mover.adopt(placement, &mut batch, cx);
        batch
    });
    assert_eq!((said, batch.ops.len()), (vec!["agree on placement 2".into()], 1), "it goes to disk with the row that says so");
    assert!(matches!(next(&mut stage), Step::Adopted));
    let said = stage.move_on(|mover, _, cx| assert!(mover.request_stops(cx))).1;
    let ask = format!("AskStopped {}", stage.shared.placement);
    assert_eq!(said, [R1, R2, ME].map(|site| format!("to {site}: {ask}")), "all that were active before");
    stage
}

fn stopped(stage: &Stage, doubts: Vec<Doubt>) -> Stopped {
    let epoch = stage.shared.placement.epoch;
    Stopped { epoch, settled: epoch - 1, since: 0, log_end: 0, read_upto: ms(70), doubts, after: None, more: false }
}

#[test]
fn a_site_settles_once_a_majority_of_those_before_has_stopped() {
    let mut stage = moving();
    assert!(!stage.roles.mover.is_settled(&stage.shared) && matches!(next(&mut stage), Step::Wait));
    for (site, enough) in [(ME, false), (R1, true)] {
        let said = stopped(&stage, Vec::new());
        assert!(stage.move_on(|mover, _, cx| mover.on_stopped(site, said, cx)).0);
        assert_eq!(matches!(next(&mut stage), Step::Settle), enough, "{site}");
    }
    assert_eq!(stage.roles.mover.read_upto(), ms(70));
    let said = stage.move_on(|mover, _, cx| mover.settle(Batch::new(), cx)).1;
    assert_eq!(said, ["sync +placement"]);
    assert!(stage.roles.mover.is_settled(&stage.shared) && matches!(next(&mut stage), Step::Wait));
}

#[test]
fn a_site_settles_only_once_the_logs_of_those_who_have_stopped_are_here() {
    let mut stage = moving();
    let all = stopped(&stage, Vec::new());
    stage.move_on(|mover, _, cx| mover.on_stopped(ME, all, cx));
    let longer = Stopped { log_end: 3, ..stopped(&stage, Vec::new()) };
    stage.move_on(|mover, _, cx| mover.on_stopped(R1, longer, cx));
    assert!(matches!(next(&mut stage), Step::Wait));
    stage.roles.catch_up.set_cursor(R1.region, 3);
    assert!(matches!(next(&mut stage), Step::Settle));
}

#[test]
fn a_site_in_doubt_waits_for_outcomes_before_it_tells_that_it_has_stopped() {
    let mut stage = moving();
    let meta = Meta { epoch: 1, ..stage.meta(R1, 100, &[0]) };
    let record = PreparedRecord { meta: meta.clone(), part: part(None, "w") };
    stage.replicate(|cohort, _, cx| cohort.recover_prepared(cx, record));
    stage.roles.mover.on_asked(R1, None);
    assert!(matches!(next(&mut stage), Step::Wait), "it may hear of the outcome");
    stage.shared.now += stage.shared.config.withdraw_after;
    assert!(matches!(next(&mut stage), Step::SendStopped));
    let said = stage.move_on(|mover, near, cx| mover.send_stopped(near, cx)).1;
    let doubts = format!("in doubt about {{{}}}", meta.attempt);
    assert!(said[0].contains(&format!("to {R1}: ")) && said[0].ends_with(&doubts), "{said:?}");
}

#[test]
fn a_site_that_missed_too_much_copies_all_rows() {
    let mut stage = Stage::new(1);
    let copied = stage.move_on(|mover, near, cx| mover.copy_anew(near, cx));
    assert_eq!((copied.0, copied.1), (Some([R1.region, R2.region].into_iter().collect()), vec!["sync +placement".to_owned()]));
    assert!(!stage.roles.mover.has_rows() && stage.roles.mover.may_enter(R1.region));
    // This region votes, and makes a majority with one that says where its log begins.
    let (collected, said) = stage.move_on(|mover, _, cx| mover.hear_for_join(R1.region, ms(40), cx));
    assert_eq!(collected, Some(ms(40)));
    assert!(said[0].starts_with("to r1.0: CopyRows from"), "{said:?}");
}

#[test]
fn a_majority_says_where_its_logs_begin_before_any_row_is_asked_for() {
    let mut stage = Stage::new(1);
    let voters = [R1.region, R2.region].into_iter().collect();
    let change = Change { voters, passives: ME.region.into(), coordinators: BTreeMap::new(), lost: Regions::NONE };
    stage.shared.placement = stage.shared.placement.next(change).expect("one that may come next");
    stage.move_on(|mover, near, cx| mover.copy_anew(near, cx));
    let mut heard = |region, collected| stage.move_on(|mover, _, cx| mover.hear_for_join(region, collected, cx));
    assert_eq!(heard(R1.region, ms(50)), (None, Vec::new()), "one of the two that vote");
    let (collected, said) = heard(R2.region, ms(40));
    assert_eq!(collected, Some(ms(50)), "the latest beginning");
    assert!(said[0].starts_with("to r1.0: CopyRows from"), "{said:?}");
}
