//! Scenarios of Catenae, message by message: each asserts what it is about, and is compared with its record in `golden/`.
//! `UPDATE_GOLDEN=1 cargo test -p rhumb-sim --test simulator catenae_scenarios::` records them anew.

mod stage;

use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::{SiteId, Span};
use rhumb_sim::{Fault, Links, Place};
use stage::{A, B, C, Epochs, Stage, key_of, number};

const WHILE: Span = Span::from_millis(700);

#[test]
fn transactions_without_conflict_are_answered_once_the_epoch_is_known() {
    let mut stage = Stage::new("Two transactions of one epoch on different keys. Nobody votes.");
    stage.narrate("clients of r0 and r1 add to x and to y");
    let (x, y) = (stage.add(A, &["x"], 1), stage.add(B, &["y"], 1));
    stage.run(WHILE);
    assert_eq!((number(&stage.answer(x)), number(&stage.answer(y))), (1, 1));
    stage.check("transactions_without_conflict_are_answered_once_the_epoch_is_known");
}

#[test]
fn a_conflict_is_settled_by_the_votes_of_a_majority() {
    let mut stage = Stage::new(
        "Two transactions of one epoch on one key. Each region runs both in its chains and says in which order;\ntwo equal orders decide.",
    );
    stage.narrate("clients of r0 and r1 add to x");
    let (first, second) = (stage.add(A, &["x"], 1), stage.add(B, &["x"], 1));
    stage.run(WHILE);
    assert_eq!((number(&stage.answer(first)), number(&stage.answer(second))), (1, 2));
    assert_eq!(stage.probe("catenae.chosen"), 6, "two transactions in three regions");
    stage.check("a_conflict_is_settled_by_the_votes_of_a_majority");
}

#[test]
fn a_failed_speculation_runs_by_identifier_and_aborts_nobody() {
    let mut stage = Stage::shaken(
        "Three transactions of one epoch that conflict in a ring; the chain servers of the regions work unevenly, and no two regions\n\
         run them in the same order. All are answered all the same, in the order of identifiers.",
    );
    stage.narrate("clients of r0, r1 and r2 add to two of x, y and z each");
    let asked = [stage.add(A, &["x", "y"], 1), stage.add(B, &["y", "z"], 1), stage.add(C, &["z", "x"], 1)];
    stage.run(WHILE);
    assert_eq!(asked.map(|id| number(&stage.answer(id))), [1, 1, 2]);
    assert_eq!(stage.probe("catenae.failed_speculation"), 9, "three transactions in three regions");
    stage.check("a_failed_speculation_runs_by_identifier_and_aborts_nobody");
}

#[test]
fn a_conflict_is_not_judged_by_timing() {
    let mut stage = Stage::new(
        "T and U of one epoch conflict. What r0 and r1 say to each other is slow, so each could finish its own before it hears of the\n\
         other's. Neither answers before it has: they run in one order everywhere.",
    );
    stage.narrate("the link between r0 and r1 is slow; r0 gets T, r1 gets U");
    let slow = rhumb_sim::LinkFaults { delay: Span::from_millis(200), ..rhumb_sim::LinkFaults::default() };
    for (from, to) in [(A, B), (B, A)] {
        let links = Links::new(Place::Site(from), Place::Site(to));
        stage.strike(Fault::Disturb { links, faults: slow, span: None });
    }
    let (t, u) = (stage.add(A, &["x", "y"], 1), stage.add(B, &["y", "x"], 10));
    stage.run(Span::from_millis(250));
    assert!(stage.try_answer(t).is_none() && stage.try_answer(u).is_none());
    stage.run(WHILE);
    assert_eq!((number(&stage.answer(t)), number(&stage.answer(u))), (1, 11));
    stage.check("a_conflict_is_not_judged_by_timing");
}

#[test]
fn a_late_batch_is_waited_for_and_not_abandoned_by_a_timer() {
    let mut stage = Stage::new(
        "What r2 says arrives late, but within the delay tolerance. The others wait: its transaction stands in its epoch everywhere,\n\
         before one of r0 of the epoch after.",
    );
    stage.narrate("all that r2 says takes 300 ms longer");
    let slow = rhumb_sim::LinkFaults { delay: Span::from_millis(300), ..rhumb_sim::LinkFaults::default() };
    stage.strike(Fault::Disturb { links: Links::new(Place::Site(C), Place::Everywhere), faults: slow, span: None });
    let late = stage.add(C, &["x"], 1);
    stage.run(Span::from_millis(60));
    let next = stage.add(A, &["x"], 1);
    stage.run(WHILE);
    assert_eq!((number(&stage.answer(late)), number(&stage.answer(next))), (1, 2));
    assert_eq!(stage.probe("catenae.prepare"), 0);
    stage.check("a_late_batch_is_waited_for_and_not_abandoned_by_a_timer");
}

#[test]
fn a_lost_region_is_passed_over_by_ballot_and_comes_back() {
    let mut stage = Stage::new(
        "r2 is lost. The others wait out the delay tolerance, ask each other what r2 has said, and pass it over, far ahead. Back, it takes\n\
         its stream over again, and its clients are served.",
    );
    stage.narrate("r2 crashes; a client of r0 adds to x");
    stage.strike(Fault::Crash { place: Place::Site(C), down: None });
    let first = stage.add(A, &["x"], 1);
    stage.run(Span::from_millis(1_500));
    assert_eq!(number(&stage.answer(first)), 1);
    stage.narrate("the next one waits for nobody");
    let second = stage.add(B, &["x"], 1);
    stage.run(Span::from_millis(250));
    assert_eq!(number(&stage.answer(second)), 2);
    stage.narrate("r2 is back; its client adds to x");
    stage.strike(Fault::Restart { place: Place::Site(C) });
    stage.run(Span::from_millis(100));
    let third = stage.add(C, &["x"], 1);
    stage.run(Span::from_millis(3_000));
    assert_eq!(number(&stage.answer(third)), 3);
    stage.check("a_lost_region_is_passed_over_by_ballot_and_comes_back");
}

#[test]
fn a_batch_that_another_region_holds_survives_the_loss_of_its_own() {
    let mut stage = Stage::new(
        "r0 is lost right after it has said its batch, which r1 alone got. Who takes r0's stream over says the batch again: the\n\
         transaction, whose outcome r0's client never learnt, runs.",
    );
    stage.narrate("r0 cannot reach r2; its client adds to x; r0 crashes when r1 holds the batch");
    stage.strike(Fault::Cut { links: Links::new(Place::Site(A), Place::Site(C)), span: None });
    let lost = stage.add(A, &["x"], 1);
    stage.run(Span::from_millis(85));
    stage.strike(Fault::Crash { place: Place::Site(A), down: None });
    stage.run(Span::from_millis(1_500));
    assert!(stage.is_lost(lost));
    stage.narrate("a client of r2 adds to x, too");
    let next = stage.add(C, &["x"], 1);
    stage.run(WHILE);
    assert_eq!(number(&stage.answer(next)), 2);
    stage.check("a_batch_that_another_region_holds_survives_the_loss_of_its_own");
}

#[test]
fn a_batch_that_nobody_else_holds_is_not_answered_and_runs_later() {
    let mut stage = Stage::new(
        "r0 is cut off with a transaction of its client, and answers nothing: the others pass it over and go on. Healed, it finds that its\n\
         entries are void, and says the transaction again in a later epoch.",
    );
    stage.narrate("r0 is cut off; its client adds to x");
    let out = Links::new(Place::Site(A), Place::Everywhere);
    stage.strike(Fault::Cut { links: out, span: None });
    stage.strike(Fault::Cut { links: out.reversed(), span: None });
    let held_up = stage.add(A, &["x"], 1);
    stage.run(Span::from_millis(1_500));
    stage.narrate("the others go on");
    let other = stage.add(B, &["x"], 1);
    stage.run(WHILE);
    assert_eq!(number(&stage.answer(other)), 1);
    assert!(stage.try_answer(held_up).is_none());
    stage.narrate("r0 is connected again");
    stage.strike(Fault::Heal);
    stage.run(Span::from_millis(4_000));
    assert_eq!(number(&stage.answer(held_up)), 2);
    stage.check("a_batch_that_nobody_else_holds_is_not_answered_and_runs_later");
}

#[test]
fn a_secondary_coordinator_takes_over_for_its_region() {
    let mut stage =
        Stage::with_secondaries("The coordinator of r0 is lost. The secondary one takes its stream over and serves clients of the region.");
    let standby = SiteId::new(0, 1);
    stage.narrate("as long as it stands by, it sends clients to the coordinator");
    let refused = stage.add(standby, &["x"], 1);
    stage.run(Span::from_millis(100));
    assert!(stage.text(refused).contains("which coordinates its region"));
    stage.narrate("the coordinator crashes");
    stage.strike(Fault::Crash { place: Place::Site(A), down: None });
    stage.run(Span::from_millis(1_500));
    let served = stage.add(standby, &["x"], 1);
    stage.run(WHILE);
    assert_eq!(number(&stage.answer(served)), 1);
    stage.narrate("the coordinator is back, and takes over again");
    stage.strike(Fault::Restart { place: Place::Site(A) });
    stage.run(Span::from_millis(1_500));
    let last = stage.add(A, &["x"], 1);
    stage.run(WHILE);
    assert_eq!(number(&stage.answer(last)), 2);
    stage.check("a_secondary_coordinator_takes_over_for_its_region");
}

#[test]
fn a_site_that_only_stands_by_passes_nobody_over_by_its_own_clock() {
    let mut stage = Stage::with_secondaries("The clocks of all coordinators are behind those of the secondary ones.");
    for coordinator in [A, B, C] {
        stage.strike(Fault::ClockJump { site: coordinator, by_micros: -3_000_000 });
    }
    stage.run(Span::from_millis(2_500));
    assert_eq!(stage.probe("catenae.passed_over"), 0);
    let served = stage.add(A, &["x"], 1);
    stage.run(WHILE);
    assert_eq!(number(&stage.answer(served)), 1);
}

#[test]
fn a_secondary_coordinator_has_no_vote_of_its_own_that_would_keep_it_awake() {
    let mut stage =
        Stage::with_secondaries("Two transactions conflict; then nobody asks for anything. All fall quiet, and nobody takes over.");
    let (first, second) = (stage.add(A, &["x"], 1), stage.add(B, &["x"], 1));
    stage.run(Span::from_secs(30));
    assert_eq!((number(&stage.answer(first)), number(&stage.answer(second))), (1, 2));
    assert_eq!((stage.probe("catenae.prepare"), stage.probe("catenae.took_over")), (0, 0));
}

#[test]
fn chains_cross_the_sites_of_a_region() {
    let mut stage = Stage::with_crossing_chains(
        "Two transactions of one epoch on the same two keys. Of the four chain servers of a region every other one is on its second site;\n\
         the resolver is at its coordinator. Who comes first to the first server is first on both.",
    );
    stage.narrate("clients of r0 and r1 add to x and y");
    let (first, second) = (stage.add(A, &["x", "y"], 1), stage.add(B, &["x", "y"], 1));
    stage.run(WHILE);
    assert_eq!((number(&stage.answer(first)), number(&stage.answer(second))), (1, 2));
    assert_eq!((stage.probe("catenae.crossing"), stage.probe("catenae.crossing_lost")), (3, 0), "once in each region");
    assert_eq!(stage.probe("catenae.chosen"), 12, "two transactions at six sites");
    stage.check("chains_cross_the_sites_of_a_region");
}

#[test]
fn chains_that_are_lost_between_sites_are_run_again_by_the_coordinator_alone() {
    let mut stage = Stage::with_crossing_chains(
        "The same, but the second site of r0 and that of r1 are down. Their coordinators run the chains again, alone, and vote\n\
         all the same; the chains of the next epoch they run alone at once.",
    );
    stage.narrate("the second sites of r0 and r1 crash; clients of r0 and r1 add to x and y");
    for region in [0, 1] {
        stage.strike(Fault::Crash { place: Place::Site(SiteId::new(region, 1)), down: None });
    }
    let (first, second) = (stage.add(A, &["x", "y"], 1), stage.add(B, &["x", "y"], 1));
    stage.run(Span::from_millis(1_200));
    assert_eq!((number(&stage.answer(first)), number(&stage.answer(second))), (1, 2));
    assert_eq!((stage.probe("catenae.crossing_lost"), stage.probe("catenae.failed_speculation")), (2, 0));
    let (first, second) = (stage.add(A, &["x", "y"], 1), stage.add(B, &["x", "y"], 1));
    stage.run(WHILE);
    assert_eq!((number(&stage.answer(first)), number(&stage.answer(second))), (3, 4));
    assert_eq!(stage.probe("catenae.crossing_lost"), 2, "they are not tried across sites again so soon");
    stage.check("chains_that_are_lost_between_sites_are_run_again_by_the_coordinator_alone");
}

/// The second coordinator of `r0`.
const A2: SiteId = SiteId::new(0, 1);

#[test]
fn a_transaction_is_carried_in_the_stream_of_its_namespace() {
    let mut stage = Stage::with_two_coordinators(
        "Two coordinators in each region. Clients of the first one of r0 add to a key of either; then one adds to both in one\n         transaction, which belongs to the first of the two keys.",
    );
    let (own, other) = (key_of(0), key_of(1));
    stage.narrate("two clients of r0.0 add to a key each, in namespaces of r0.0 and r0.1");
    let (first, second) = (stage.add(A, &[own], 1), stage.add(A, &[other], 1));
    stage.run(WHILE);
    assert_eq!((number(&stage.answer(first)), number(&stage.answer(second))), (1, 1));
    assert_eq!(stage.probe("catenae.forwarded"), 1);
    stage.narrate("a client of each adds to both, first to its own");
    let (first, second) = (stage.add(A, &[own, other], 1), stage.add(A2, &[other, own], 1));
    stage.run(WHILE);
    assert_eq!([number(&stage.answer(first)), number(&stage.answer(second))], [2, 3], "in one order");
    assert_eq!(stage.probe("catenae.forwarded"), 1);
    stage.check("a_transaction_is_carried_in_the_stream_of_its_namespace");
}

#[test]
fn the_loss_of_a_coordinator_leaves_the_stream_of_the_other_alone() {
    let mut stage = Stage::with_two_coordinators(
        "The second coordinator of r0 is lost, with a transaction that the first forwarded to it. The first takes its stream over, by ballot,\n         and goes on with its own meanwhile: nobody asks for that. Epochs are known again once there is one who speaks for the lost one.",
    );
    let (own, other) = (key_of(0), key_of(1));
    stage.narrate("a client of r0.0 adds to a key of r0.1, which crashes; then one adds to a key of r0.0");
    let forwarded = stage.add(A, &[other], 1);
    stage.run(Span::from_millis(5));
    stage.strike(Fault::Crash { place: Place::Site(A2), down: None });
    let waits = stage.add(A, &[own], 1);
    stage.run(Span::from_millis(450));
    assert!(stage.try_answer(waits).is_none(), "its epoch is not known without the other stream");
    stage.run(Span::from_millis(450));
    assert_eq!(number(&stage.answer(waits)), 1, "that stream is taken over after the delay tolerance, 500 ms");
    assert_eq!((stage.probe("catenae.prepare"), stage.probe("catenae.passed_over")), (1, 0), "and no other one");
    stage.narrate("from then on nobody waits; the transaction that was lost with r0.1 is taken back");
    let (first, second) = (stage.add(A, &[own], 1), stage.add(A, &[other], 1));
    stage.run(Span::from_millis(200));
    assert_eq!((number(&stage.answer(first)), number(&stage.answer(second))), (2, 1));
    stage.run(Span::from_millis(1_500));
    assert_eq!((number(&stage.answer(forwarded)), stage.probe("catenae.taken_back")), (2, 1));
    stage.narrate("r0.1 is back, and leads its stream again");
    stage.strike(Fault::Restart { place: Place::Site(A2) });
    stage.run(Span::from_millis(1_500));
    let (first, second) = (stage.add(A, &[other], 1), stage.add(A2, &[other], 1));
    stage.run(WHILE);
    assert_eq!(number(&stage.answer(first)) + number(&stage.answer(second)), 3 + 4);
    stage.check("the_loss_of_a_coordinator_leaves_the_stream_of_the_other_alone");
}

#[test]
fn a_forwarded_transaction_that_comes_twice_runs_once() {
    let mut stage = Stage::with_two_coordinators("All that r0.0 and r0.1 say to each other comes twice.");
    let twice = rhumb_sim::LinkFaults { duplicate: 1.0, duplicate_after: Span::from_millis(400), ..rhumb_sim::LinkFaults::default() };
    for (from, to) in [(A, A2), (A2, A)] {
        let links = Links::new(Place::Site(from), Place::Site(to));
        stage.strike(Fault::Disturb { links, faults: twice, span: None });
    }
    let asked: Vec<_> = (0..5)
        .map(|_| {
            let id = stage.add(A, &[key_of(1)], 1);
            stage.run(Span::from_millis(70));
            id
        })
        .collect();
    stage.run(Span::from_millis(1_500));
    let last = stage.add(A, &[key_of(1)], 1);
    stage.run(WHILE);
    let numbers: Vec<i64> = asked.into_iter().chain([last]).map(|id| number(&stage.answer(id))).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert!(stage.probe("catenae.not_taken") > 0);
}

#[test]
fn a_transaction_that_is_none_is_refused_at_once_and_changes_nothing() {
    let mut stage = Stage::new("A list that comes back to a key, and one without operations.");
    let add = |key: &str| Operation::Add { key: key.into(), amount: 1 };
    let cyclic = stage.ask(A, Transaction::new(vec![add("x"), add("y"), add("x")]));
    let empty = stage.ask(A, Transaction::default());
    stage.run(Span::from_millis(1));
    let refused = "failed: operation 3 comes back to key x after others: operations on one key must stand together";
    assert_eq!(stage.text(cyclic), refused);
    assert_eq!(stage.text(empty), "failed: a transaction needs at least one operation");
    let sound = stage.add(A, &["x"], 1);
    stage.run(WHILE);
    assert_eq!(number(&stage.answer(sound)), 1);
}

#[test]
fn the_offset_between_coordinator_and_execution_epoch_grows_and_shrinks_with_delays() {
    let mut stage = Stage::new("What r2 says takes 300 ms longer for a while.");
    let usual = stage.offset(A);
    let slow = rhumb_sim::LinkFaults { delay: Span::from_millis(300), ..rhumb_sim::LinkFaults::default() };
    let links = Links::new(Place::Site(C), Place::Everywhere);
    stage.strike(Fault::Disturb { links, faults: slow, span: Some(Span::from_millis(1_000)) });
    stage.run(Span::from_millis(900));
    let meanwhile = stage.offset(A);
    stage.run(Span::from_millis(900));
    // A region's own entry counts when the round trip is over, 60 ms; what r2 said counts 331 ms later.
    assert_eq!([usual, meanwhile, stage.offset(A)], [2, 7, 2]);
    assert_eq!(stage.probe("catenae.prepare"), 0, "that is within the delay tolerance");
}
