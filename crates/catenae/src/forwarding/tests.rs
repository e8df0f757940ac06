//! One site forwards a transaction, and takes it back.

use super::*;
use crate::agreement::Event;
use crate::bench::{Bench, entry};
use crate::config::FORWARD_EPOCHS_MAX;
use crate::lone::{Lone, Said, answer};
use crate::message::{Identifier, Promise};
use crate::stream_id::coordinator_of;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::RegionId;

const FIRST: SiteId = SiteId::new(0, 0);
const SECOND: SiteId = SiteId::new(0, 1);
/// The stream of the second.
const STREAM: StreamId = StreamId::new(RegionId(0), 1);

/// A transaction that belongs to the second coordinator of a region.
fn of_second() -> Transaction {
    let add = |key: &str| Transaction::from(Operation::Add { key: key.into(), amount: 1 });
    ["x", "y", "z", "w"].map(add).into_iter().find(|transaction| coordinator_of(transaction, 2) == 1).expect("one of four")
}

/// The forwarded transactions in what was said.
fn forwarded(said: &[Said]) -> Vec<(Forwarded, Epoch)> {
    let forward = |said: &Said| match said {
        Said::Note(SECOND, Note::Forward(Forward { stream: STREAM, name, until, .. })) => Some((*name, *until)),
        _ => None,
    };
    said.iter().filter_map(forward).collect()
}

/// The batches that a site said of its own stream.
fn batches(said: &[Said]) -> Vec<Vec<Transaction>> {
    let batch = |said: &Said| match said {
        Said::Promise(SECOND, Promise::Epoch { entries, .. }) => entries.last().map(|entry| entry.batch.clone()),
        _ => None,
    };
    said.iter().filter_map(batch).collect()
}

#[test]
fn where_a_transaction_is_sealed_is_told_before_the_entry_that_has_it() {
    let mut second = Lone::new(SECOND);
    let name = Forwarded { incarnation: Epoch(1), number: 1 };
    let until = second.sealed().plus(FORWARD_EPOCHS);
    second.hear_note(FIRST, Note::Forward(Forward { stream: STREAM, name, until, transaction: of_second() }));
    let said = second.end_epoch();
    let told = |promise: fn(&Promise) -> bool| {
        said.iter().position(|said| matches!(said, Said::Promise(FIRST, of) if promise(of))).expect("it is told")
    };
    assert!(told(|promise| matches!(promise, Promise::Sealed { .. })) < told(|promise| matches!(promise, Promise::Epoch { .. })));
}

#[test]
fn it_is_answered_once_it_runs_if_it_is_known_to_be_sealed_and_unknown_if_that_is_heard_later() {
    for is_late in [false, true] {
        let mut first = Lone::new(FIRST);
        let [(name, _)] = forwarded(&first.run(7, of_second()))[..] else { panic!("it is forwarded") };
        first.end_epoch();
        let epoch = first.sealed();
        let sealed = Promise::Sealed { name, index: 1, place: 0 };
        if !is_late {
            assert_eq!(first.hear(SECOND, sealed.clone()), []);
        }
        let mut said = first.hear_entry(STREAM, epoch, vec![of_second()]);
        said.extend(first.hear_nothing_of_others(epoch, &[STREAM]));
        assert_eq!(first.site.settled(), epoch);
        assert_eq!(matches!(answer(&said, 7), Some(Answer::Ran { .. })), !is_late);
        let late = first.hear(SECOND, sealed);
        assert_eq!(matches!(answer(&late, 7), Some(Answer::Failed(TxnError::Unknown(_)))), is_late);
    }
}

#[test]
fn what_is_taken_back_is_carried_by_its_own_site_and_runs_once() {
    let mut first = Lone::new(FIRST);
    let [(name, until)] = forwarded(&first.run(7, of_second()))[..] else { panic!("it is forwarded") };
    // The other coordinator goes on without it.
    first.hear_entry(STREAM, until, Vec::new());
    let said: Vec<Said> = (0..=FORWARD_EPOCHS).flat_map(|_| first.end_epoch()).collect();
    assert_eq!(forwarded(&said), [], "it is not forwarded again");
    let carried = batches(&said).into_iter().flatten().filter(|transaction| *transaction == of_second());
    assert_eq!(carried.count(), 1, "it is in the stream of this site");
    assert_eq!(first.hear(SECOND, Promise::Sealed { name, index: 1, place: 0 }), [], "its old name means nothing any more");
    let said = first.hear_nothing_of_others(first.sealed(), &[]);
    let Some(Answer::Ran { outcome, .. }) = answer(&said, 7) else { panic!("{said:?}") };
    assert_eq!(*outcome, rhumb_commit::one_shot::execution::Outcome::Done(vec![rhumb_commit::one_shot::execution::Output::Number(1)]));
    assert_eq!(said.iter().filter(|said| matches!(said, Said::Answer(7, _))).count(), 1);
}

#[test]
fn the_role_forwards_what_another_coordinator_leads_and_takes_it_back_once_it_can_run_no_more() {
    let mut bench = Bench::new(FIRST);
    let mut log = bench.log();
    let mut forwarding = Forwarding::default();
    let asked = || Asked { by: Asker::Client(7), transaction: of_second(), since: 0, stays: false };
    assert!(bench.quietly(|cx| forwarding.forward(asked(), &log, Epoch(3), cx)).is_some(), "it has no name yet");
    forwarding.has_spoken(Epoch(2));
    let (carried, effects) = bench.act(|cx| forwarding.forward(asked(), &log, Epoch(3), cx));
    let until = Epoch(3).plus(FORWARD_EPOCHS);
    assert!(carried.is_none());
    assert_eq!(effects, ["count catenae.forwarded".into(), format!("to r0.1: Forward r0/1 e2#1 until {until} {}", of_second())]);
    assert!(bench.quietly(|cx| forwarding.take_back(STREAM, &log, cx)).is_empty(), "epochs are left to it");
    let entries = vec![entry(STREAM, until.0, Vec::new())];
    let epoch = Event::Epoch { from: SECOND, ballot: STREAM.first_ballot(), first: 1, entries, is_flooded: false };
    bench.act(|cx| log.streams.on(STREAM, epoch, cx));
    let (back, effects) = bench.act(|cx| forwarding.take_back(STREAM, &log, cx));
    assert!(matches!(back[..], [Asked { by: Asker::Client(7), stays: true, .. }]), "{back:?}");
    assert_eq!(effects, ["count catenae.taken_back"]);
    assert!(forwarding.is_idle());
}

#[test]
fn the_role_finds_its_transaction_where_both_the_coordinator_and_the_stream_have_it() {
    let mut bench = Bench::new(FIRST);
    let log = bench.log();
    let mut forwarding = Forwarding::default();
    forwarding.has_spoken(Epoch(2));
    let asked = Asked { by: Asker::Client(7), transaction: of_second(), since: 0, stays: false };
    bench.act(|cx| forwarding.forward(asked, &log, Epoch(3), cx));
    let name = Forwarded { incarnation: Epoch(2), number: 1 };
    assert_eq!(bench.quietly(|cx| forwarding.on_sealed(SECOND, name, 1, 0, &log, cx)), None);
    let chosen = entry(STREAM, 4, vec![of_second()]);
    let identifier = Identifier { epoch: Epoch(4), stream: STREAM, place: 0 };
    let agreed = vec![Agreed { identifier, client: 7, since: 0 }];
    assert_eq!(bench.quietly(|cx| forwarding.on_chosen(STREAM, 1, &chosen, &log, cx)), agreed);
    assert_eq!(bench.quietly(|cx| forwarding.on_sealed(SECOND, name, 1, 0, &log, cx)), None, "it is on its way no more");
}

#[test]
fn the_role_takes_what_is_forwarded_to_it_once() {
    let mut bench = Bench::new(SECOND);
    let log = bench.log();
    let (mut forwarding, coordinator) = (Forwarding::default(), Coordinator::new(2));
    let until = Epoch(FORWARD_EPOCHS_MAX + 1);
    let forward = || Forward { stream: STREAM, name: Forwarded { incarnation: Epoch(2), number: 1 }, until, transaction: of_second() };
    let mut take = |forward| bench.act(|cx| forwarding.on_forward(FIRST, forward, &log, &coordinator, cx));
    assert_eq!(
        take(Forward { until: until.previous(), ..forward() }).1,
        ["count catenae.not_taken"],
        "an earlier incarnation may have sealed it"
    );
    assert!(matches!(take(forward()), (Some(Asked { by: Asker::Site { site: FIRST, .. }, .. }), effects) if effects.is_empty()));
    assert_eq!(take(forward()).1, ["count catenae.not_taken"]);
}
