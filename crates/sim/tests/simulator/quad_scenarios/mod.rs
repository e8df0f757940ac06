//! Scenarios of QuAD, message by message: each asserts what it is about, and is compared with its record in `golden/`.
//! `UPDATE_GOLDEN=1 cargo test -p rhumb-sim --test simulator quad_scenarios::` records them anew.

mod stage;

use rhumb_commit::transaction::TxnError;
use rhumb_core::{SiteId, Span};
use rhumb_quad::{Answer, Epoch, Goal};
use rhumb_sim::{Fault, LinkFaults, Links, Place};
use stage::{A, B, C, D, E, Stage, Transactions, goal};
use std::collections::BTreeSet;

const WHILE: Span = Span::from_millis(400);
/// A message from one site to another, and its sync.
const ONE_WAY: Span = Span::from_millis(22);

/// Lets what `from` says to `to` take `delay` longer.
fn slow(stage: &mut Stage, from: SiteId, to: SiteId, delay: Span) {
    let links = Links::new(Place::Site(from), Place::Site(to));
    stage.strike(Fault::Disturb { links, faults: LinkFaults { delay, ..LinkFaults::default() }, span: None });
}

fn crash(stage: &mut Stage, site: SiteId) {
    stage.strike(Fault::Crash { place: Place::Site(site), down: None });
}

fn is_committed(stage: &Stage, id: rhumb_core::actor::RequestId) -> bool {
    matches!(stage.try_answer(id), Some(Answer::Committed(_)))
}

#[test]
fn a_core_reads_at_a_majority_of_the_cores_and_writes_at_all_in_two_rounds() {
    let mut stage = Stage::new(
        "Locks and versions at the read quorum; the first round locks and prepares at the write quorum, the second commits. The client\n\
         is answered after the second.",
    );
    let txn = stage.begin(A);
    let read = stage.get(A, txn, "x");
    stage.wait(read);
    assert_eq!(stage.text(read), "no x");
    let commit = stage.commit(A, txn, Some(("x", "1")));
    stage.run(WHILE);
    assert!(is_committed(&stage, commit));
    stage.check("a_core_reads_at_a_majority_of_the_cores_and_writes_at_all_in_two_rounds");
}

#[test]
fn a_slave_reads_and_writes_at_itself_and_a_majority_of_the_cores() {
    let mut stage = Stage::new("What a core has written, a slave reads at the majority that it is assigned to, and writes there.");
    let first = stage.put(C, "x", "1");
    stage.wait(first);
    stage.narrate("a client of the slave r3 reads x and writes it");
    let txn = stage.begin(D);
    let read = stage.get(D, txn, "x");
    stage.wait(read);
    assert_eq!(stage.text(read), "x=1");
    let commit = stage.commit(D, txn, Some(("x", "2")));
    stage.run(WHILE);
    assert!(is_committed(&stage, commit));
    stage.check("a_slave_reads_and_writes_at_itself_and_a_majority_of_the_cores");
}

#[test]
fn who_only_read_asks_whether_its_locks_were_held_all_the_time() {
    let mut stage = Stage::new("No sync and one round trip: each site that was read from confirms the session.");
    let txn = stage.begin(A);
    let read = stage.get(A, txn, "x");
    stage.wait(read);
    let commit = stage.commit(A, txn, None);
    stage.run(WHILE);
    assert!(is_committed(&stage, commit));
    stage.check("who_only_read_asks_whether_its_locks_were_held_all_the_time");
}

#[test]
fn a_younger_transaction_is_wounded_by_an_older_one() {
    let mut stage = Stage::new("Both read x, and the older one writes it. The younger one loses its locks and cannot commit.");
    let (older, younger) = (stage.begin(A), stage.begin(B));
    let reads = [stage.get(A, older, "x"), stage.get(B, younger, "x")];
    stage.run(WHILE);
    assert_eq!(reads.map(|id| stage.text(id)), ["no x", "no x"]);
    let commits = [stage.commit(A, older, Some(("x", "old"))), stage.commit(B, younger, Some(("x", "young")))];
    stage.run(WHILE);
    assert!(is_committed(&stage, commits[0]));
    assert!(matches!(stage.answer(commits[1]), Answer::Failed(error) if error.is_retryable()));
    stage.check("a_younger_transaction_is_wounded_by_an_older_one");
}

#[test]
fn nobody_is_shown_a_commit_before_the_whole_write_quorum_has_it() {
    let mut stage = Stage::new(
        "The second round is slow on its way to r2. r1 has the commit on disk and keeps it to itself: its reader waits until the commit\n\
         is settled.",
    );
    let commit = stage.put(A, "x", "1");
    stage.run(ONE_WAY);
    slow(&mut stage, A, C, Span::from_millis(300));
    stage.narrate("a client of r1 reads x");
    let read = stage.look(B, "x");
    stage.run(Span::from_millis(200));
    assert!(stage.try_answer(commit).is_none() && stage.try_answer(read).is_none());
    stage.run(WHILE);
    assert!(is_committed(&stage, commit));
    assert_eq!(stage.text(read), "x=1");
    stage.check("nobody_is_shown_a_commit_before_the_whole_write_quorum_has_it");
}

#[test]
fn a_promoted_slave_gets_what_it_lacks_before_the_configuration_is_decided() {
    let mut stage = Stage::new(
        "Sealed by a majority of the members, which cover and fence the epoch; the cores to be pull what was written; then all accept.",
    );
    let commit = stage.put(A, "x", "1");
    stage.wait(commit);
    stage.narrate("an operator makes r3 a core instead of r0");
    let change = stage.change(B, goal(&[B, C, D], &[A, E], "r3 is stronger"));
    stage.wait(change);
    assert_eq!(stage.text(change), "done");
    stage.narrate("a client of r3 reads x");
    let read = stage.look(D, "x");
    stage.run(WHILE);
    assert_eq!(stage.text(read), "x=1");
    assert!([A, B, C, D, E].iter().all(|site| stage.epoch(*site) == Epoch(2)));
    stage.check("a_promoted_slave_gets_what_it_lacks_before_the_configuration_is_decided");
}

#[test]
fn a_commit_that_a_change_finds_is_carried_into_the_next_configuration() {
    let mut stage = Stage::new(
        "The gateway dies in its second round: r1 has the commit, r2 has only prepared. The change finds it at r1, and it takes effect\n\
         with the next configuration.",
    );
    slow(&mut stage, A, C, Span::from_millis(60));
    let lost = stage.put(A, "x", "1");
    stage.run(Span::from_millis(150));
    crash(&mut stage, A);
    stage.run(Span::from_millis(50));
    assert!(stage.is_lost(lost));
    let change = stage.change(B, goal(&[B, C, D], &[E, A], "r0 is gone"));
    stage.wait(change);
    let read = stage.look(E, "x");
    stage.run(WHILE);
    assert_eq!(stage.text(read), "x=1");
    assert!(stage.probe("quad.carried") > 0);
    stage.check("a_commit_that_a_change_finds_is_carried_into_the_next_configuration");
}

#[test]
fn what_is_only_prepared_is_aborted_by_a_change() {
    let mut stage =
        Stage::new("The gateway dies after its first round. Nobody was told that it commits, and the next configuration drops it.");
    let lost = stage.put(A, "x", "1");
    stage.run(ONE_WAY);
    crash(&mut stage, A);
    stage.run(Span::from_millis(50));
    assert!(stage.is_lost(lost));
    let change = stage.change(B, goal(&[B, C, D], &[E, A], "r0 is gone"));
    stage.wait(change);
    let read = stage.look(B, "x");
    stage.run(WHILE);
    assert_eq!(stage.text(read), "no x");
    stage.check("what_is_only_prepared_is_aborted_by_a_change");
}

#[test]
fn a_site_that_missed_a_change_is_told_before_it_is_heard() {
    let mut stage = Stage::new(
        "r0, a core of the first epoch, is cut off while the others go on without it. Healed, what it says of the old epoch is refused, and\n\
         it learns of the new one.",
    );
    let out = Links::new(Place::Site(A), Place::Everywhere);
    stage.strike(Fault::Cut { links: out, span: None });
    stage.strike(Fault::Cut { links: out.reversed(), span: None });
    let change = stage.change(B, goal(&[B, C, D], &[A, E], "r0 is silent"));
    stage.wait(change);
    let commit = stage.put(E, "x", "1");
    stage.wait(commit);
    stage.narrate("a client of r0 reads x, and r0 is connected again");
    let txn = stage.begin(A);
    let stale = stage.get(A, txn, "x");
    stage.run(ONE_WAY);
    assert!(stage.try_answer(stale).is_none());
    stage.strike(Fault::Heal);
    stage.run(Span::from_secs(3));
    assert_eq!(stage.epoch(A), Epoch(2));
    let read = stage.look(A, "x");
    stage.run(WHILE);
    assert_eq!(stage.text(read), "x=1");
    stage.check("a_site_that_missed_a_change_is_told_before_it_is_heard");
}

#[test]
fn one_core_and_all_slaves_go_on_once_the_other_cores_are_declared_lost() {
    let mut stage = Stage::new(
        "Two of three cores are gone. One core and all slaves know what was committed, but the two might still be up and confirm reads:\n\
         an operator must say that they are lost.",
    );
    let commit = stage.put(D, "x", "1");
    stage.wait(commit);
    crash(&mut stage, A);
    crash(&mut stage, B);
    stage.run(Span::from_secs(2));
    let refused = stage.change(C, goal(&[C, D, E], &[], "two cores are silent"));
    assert!(matches!(stage.wait(refused), Answer::Failed(TxnError::Unavailable(why)) if why.to_string().contains("missing: r0.0, r1.0")));
    let declared = Goal { lost: BTreeSet::from([A, B]), ..goal(&[C, D, E], &[], "two cores are lost") };
    let change = stage.change(C, declared);
    stage.wait(change);
    assert_eq!(stage.text(change), "done");
    let read = stage.look(E, "x");
    stage.run(WHILE);
    assert_eq!(stage.text(read), "x=1");
    stage.check("one_core_and_all_slaves_go_on_once_the_other_cores_are_declared_lost");
}
