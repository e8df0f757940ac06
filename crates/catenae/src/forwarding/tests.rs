//! One site forwards a transaction, and takes it back.

use super::*;
use crate::lone::{Lone, Said, answer};
use crate::message::Promise;
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
    let name = Forwarded { life: Epoch(1), number: 1 };
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
