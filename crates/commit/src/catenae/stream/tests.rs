//! Streams: entries agreed on at ballots, and what a promise shows.

use super::*;

const LEADER: SiteId = SiteId::new(0, 0);
const OTHER: SiteId = SiteId::new(1, 0);
const THIRD: SiteId = SiteId::new(2, 0);
const FIRST: Ballot = Ballot { round: 0, site: LEADER };
const SECOND: Ballot = Ballot { round: 1, site: OTHER };

fn stream() -> Stream {
    Stream::new(StreamId::first(rhumb_core::RegionId(0)), 2)
}

fn entry(author: SiteId, epoch: u64) -> Entry {
    Entry { author, epoch: Epoch(epoch), batch: vec![], orders: vec![] }
}

#[test]
fn an_entry_is_chosen_once_enough_regions_hold_it_at_its_ballot() {
    let mut stream = stream();
    assert_eq!(stream.accept(FIRST, 1, [entry(LEADER, 5)]), Ok(vec![1]));
    stream.holds(LEADER, FIRST, 1);
    assert_eq!(stream.advance(), None);
    stream.holds(OTHER, SECOND, 1);
    assert_eq!(stream.advance(), None, "another leader's first entry may be another one");
    stream.holds(THIRD, FIRST, 1);
    assert_eq!(stream.advance(), Some(Found { entry: entry(LEADER, 5), void: false }));
    assert_eq!((stream.chosen(), stream.covered()), (1, Epoch(5)));
}

#[test]
fn entries_are_held_without_gaps() {
    let mut stream = stream();
    assert_eq!(stream.accept(FIRST, 2, [entry(LEADER, 6)]), Ok(vec![]));
    assert!(stream.take_gap() && !stream.take_gap());
    assert_eq!(stream.accept(FIRST, 1, [entry(LEADER, 5), entry(LEADER, 6)]), Ok(vec![1, 2]));
    assert_eq!(stream.accept(FIRST, 1, [entry(LEADER, 5), entry(LEADER, 6)]), Ok(vec![]), "nothing new");
    assert!(!stream.take_gap());
    assert_eq!(stream.agrees(FIRST), 2);
}

#[test]
fn a_promise_keeps_lower_ballots_out() {
    let mut stream = stream();
    assert_eq!(stream.promise(SECOND), Ok(()));
    assert_eq!(stream.accept(FIRST, 1, [entry(LEADER, 5)]), Err(SECOND));
    assert_eq!(stream.accept(SECOND, 1, [entry(OTHER, 9)]), Ok(vec![1]));
}

#[test]
fn an_entry_whose_epoch_is_covered_is_void() {
    let mut stream = stream();
    stream.accept(FIRST, 1, [entry(LEADER, 5), entry(LEADER, 6)]).expect("nothing is promised");
    stream.accept(SECOND, 1, [entry(OTHER, 90)]).expect("a higher ballot");
    assert!(stream.learn(1, entry(OTHER, 90)));
    assert_eq!(stream.advance(), Some(Found { entry: entry(OTHER, 90), void: false }));
    assert!(stream.learn(2, entry(LEADER, 6)));
    assert_eq!(stream.advance(), Some(Found { entry: entry(LEADER, 6), void: true }));
    assert_eq!(stream.covered(), Epoch(90));
    assert_eq!(stream.settle(Epoch(50)), (0, Epoch::NONE), "a void entry is settled no sooner than what made it void");
    assert_eq!(stream.settle(Epoch(90)), (2, Epoch(90)));
}

#[test]
fn what_is_chosen_is_learnt_in_order_and_survives() {
    let mut stream = stream();
    assert!(!stream.learn(2, entry(LEADER, 6)));
    assert!(stream.learn(1, entry(LEADER, 5)));
    assert!(!stream.learn(1, entry(LEADER, 5)), "known already");
    assert!(stream.advance().is_some());
    assert_eq!(stream.accepted(0), vec![]);
    assert_eq!(stream.accept(FIRST, 1, [entry(LEADER, 77), entry(LEADER, 78)]), Ok(vec![2]), "what is chosen does not change");
    assert_eq!(stream.accepted(0), vec![(2, FIRST, entry(LEADER, 78))]);
}
