//! From batches and votes to places.

use super::*;
use crate::bench::{Bench, add, entry, identifier};
use crate::config::Config;
use crate::log::Log;
use crate::message::Order;
use rhumb_core::SiteId;

const ME: SiteId = SiteId::new(0, 0);
const STREAM: StreamId = StreamId::first(RegionId(0));

/// An entry of epoch 2 in which `region` says that of two transactions the one at `first` came first.
fn vote(region: u16, first: u16) -> (StreamId, Entry) {
    let id = StreamId::first(RegionId(region));
    let sequence = [first, 1 - first].map(|place| identifier(STREAM, place)).to_vec();
    (id, Entry { orders: vec![Order { epoch: Epoch(1), sequence }], ..entry(id, 2, Vec::new()) })
}

#[test]
fn places_follow_from_equal_votes_of_a_majority() {
    let mut bench = Bench::new(ME);
    let mut log = bench.log_with(STREAM, vec![add(&["k"]), add(&["k"]), add(&["l"])]);
    let conflicts = log.epochs.scheduled(Epoch(1)).expect("it is scheduled").conflicts;
    assert_eq!(conflicts.keys().copied().collect::<Vec<_>>(), [0, 1].map(|place| identifier(STREAM, place)));
    let mut judge = |(id, entry): (StreamId, Entry)| {
        let Log { streams, epochs, runs } = &mut log;
        bench.act(|cx| {
            epochs.take_entry(id, entry, cx);
            epochs.judge(streams, runs.ledger(), cx)
        })
    };
    assert_eq!(judge(vote(1, 1)).0.len(), 0, "one of three");
    assert_eq!(judge(vote(1, 0)).0.len(), 0, "a region has one vote");
    let (places, effects) = judge(vote(2, 1));
    let [Place { identifier: one, predecessors: before_one }, Place { identifier: other, predecessors }] = &places[..] else {
        panic!("{places:?}")
    };
    assert_eq!((one.place, before_one), (0, &[identifier(STREAM, 1)].into()));
    assert_eq!((other.place, predecessors), (1, &[].into()));
    assert_eq!(effects, ["count catenae.chosen"; 2]);
    assert_eq!(log.epochs.undecided().count(), 0);
}

#[test]
fn a_vote_counts_within_its_window_only() {
    let mut bench = Bench::new(ME);
    let window = Config::default().window_epochs;
    for (epoch, counts) in [(1, false), (2, true), (1 + window, true), (2 + window, false)] {
        let mut log = bench.log_with(STREAM, vec![add(&["k"]), add(&["k"])]);
        let (id, entry) = vote(1, 0);
        bench.quietly(|cx| log.epochs.take_entry(id, Entry { epoch: Epoch(epoch), ..entry }, cx));
        assert_eq!(log.epochs.has_vote(Epoch(1), RegionId(1)), counts, "said in epoch {epoch}");
    }
}

#[test]
fn an_epoch_is_settled_once_all_before_it_has_run() {
    let mut bench = Bench::new(ME);
    let mut epochs = bench.log_with(STREAM, vec![add(&["k"])]).epochs;
    assert_eq!(epochs.settle(Some(Epoch(1))), None, "one of its transactions has not run");
    assert_eq!(epochs.settle(None), Some(Epoch(1)));
    assert_eq!(epochs.settle(None), None, "no news");
    assert!(epochs.are_idle());
}
