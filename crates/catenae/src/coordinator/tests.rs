//! One site seals an epoch: what it says first, and what its clients are told.

use super::*;
use crate::config::{BACKLOG_MAX, BATCH_MAX};
use crate::lone::{Lone, Said, answer};
use crate::message::{Answer, Note, Promise, Request};
use rhumb_commit::one_shot::Freshness;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::actor::RequestId;
use rhumb_core::{RegionId, SiteId};

const ME: SiteId = SiteId::new(0, 0);
/// Another region, and one that stands still.
const TALKS: StreamId = StreamId::first(RegionId(1));
const SILENT: StreamId = StreamId::first(RegionId(2));

fn read(key: usize) -> Transaction {
    Operation::Read { key: format!("k{key}").as_str().into() }.into()
}

fn unavailable(said: &[Said], id: RequestId) -> Option<&str> {
    match answer(said, id) {
        Some(Answer::Failed(TxnError::Unavailable(why))) => Some(why),
        _ => None,
    }
}

#[test]
fn while_a_stream_stands_still_a_bounded_number_of_transactions_waits() {
    let mut site = Lone::new(ME);
    let begin = site.sealed();
    let end = begin.plus((BACKLOG_MAX / BATCH_MAX) as u64);
    for epoch in begin.plus(1).0..end.0 {
        site.hear_entry(TALKS, Epoch(epoch), (0..BATCH_MAX).map(read).collect());
    }
    assert_eq!(unavailable(&site.run(1, read(0)), 1), None, "there is room");
    site.hear_entry(TALKS, end, (0..BATCH_MAX).map(read).collect());
    let why =
        format!("{BACKLOG_MAX} transactions are agreed on and wait to be run; the epochs of c are known up to e0 only. Try again later");
    assert_eq!(unavailable(&site.run(2, read(0)), 2), Some(why.as_str()));
    // The stream goes on: all is run, and clients are served again.
    site.hear_nothing_of_others(end, &[TALKS]);
    site.end_epoch();
    assert_eq!(site.site.status().settled, end);
    assert_eq!(unavailable(&site.run(3, read(0)), 3), None);
}

#[test]
fn while_too_much_waits_a_site_asks_only_for_more_of_what_all_wait_for() {
    let mut site = Lone::new(ME);
    let begin = site.sealed();
    site.hear_entry(TALKS, begin, Vec::new());
    site.site.backlog_mut().add(&vec![read(0); BACKLOG_MAX]);
    // Of both streams it has missed entries.
    for (stream, index) in [(TALKS, 3), (SILENT, 2)] {
        let entries = vec![Entry { author: stream.head(), epoch: begin.plus(index), batch: Vec::new(), orders: Vec::new() }];
        site.hear(stream.head(), Promise::Epoch { stream, ballot: stream.first_ballot(), first: index, entries });
    }
    let pulled = |said: Vec<Said>| -> Vec<StreamId> {
        let pulled = said.into_iter().filter_map(|said| match said {
            Said::Note(_, Note::Pull { stream, .. }) => Some(stream),
            _ => None,
        });
        let mut pulled: Vec<StreamId> = pulled.collect();
        pulled.dedup();
        pulled
    };
    assert_eq!(pulled(site.end_epoch()), [SILENT]);
    (0..BACKLOG_MAX).for_each(|_| site.site.backlog_mut().remove(&read(0)));
    assert_eq!(pulled(site.end_epoch()), [TALKS], "what it did not ask for it asks for then");
}

#[test]
fn while_a_stream_stands_still_the_way_of_a_bounded_number_of_epochs_is_measured() {
    let mut site = Lone::new(ME);
    for id in 0..MEASURED_MAX as u64 + 10 {
        site.ask(id, Request::Read { keys: vec!["k".into()], ranges: vec![], reverse: false, freshness: Freshness::Strict });
        site.end_epoch();
    }
    assert_eq!(site.table("coordinator.ended"), MEASURED_MAX);
}

#[test]
fn the_way_of_an_epoch_that_nobody_waits_for_any_more_is_not_measured() {
    let config = crate::config::Config::default();
    let deadline = config.deadline_epochs;
    // Nobody else says anything.
    let mut site = Lone::with(ME, config);
    site.run(1, read(0));
    site.end_epoch();
    assert_eq!(site.table("coordinator.ended"), 1);
    let said = site.end_epochs(deadline + 1);
    assert!(matches!(answer(&said, 1), Some(Answer::Failed(TxnError::Unknown(_)))));
    assert_eq!(site.table("coordinator.ended"), 0);
}
