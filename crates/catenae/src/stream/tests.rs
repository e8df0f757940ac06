//! Streams: entries agreed on at ballots, and what a promise shows.

use super::*;

const LEADER: SiteId = SiteId::new(0, 0);
const OTHER: SiteId = SiteId::new(1, 0);
const THIRD: SiteId = SiteId::new(2, 0);
const FIRST: Ballot = Ballot { number: 0, leader: LEADER };
const SECOND: Ballot = Ballot { number: 1, leader: OTHER };

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
    assert_eq!(stream.advance(), Some(Found { index: 1, entry: entry(LEADER, 5), covered: Epoch(5), void: false }));
    assert_eq!((stream.chosen(), stream.covered()), (1, Epoch(5)));
}

#[test]
fn entries_are_held_without_gaps() {
    let mut stream = stream();
    assert_eq!(stream.accept(FIRST, 2, [entry(LEADER, 6)]), Ok(vec![]));
    assert_eq!(stream.gap(), Some(LEADER));
    assert_eq!(stream.accept(FIRST, 1, [entry(LEADER, 5), entry(LEADER, 6)]), Ok(vec![1, 2]));
    assert_eq!(stream.accept(FIRST, 1, [entry(LEADER, 5), entry(LEADER, 6)]), Ok(vec![]), "nothing new");
    assert_eq!(stream.gap(), None);
    assert_eq!(stream.agrees(FIRST), 2);
}

#[test]
fn what_is_chosen_elsewhere_is_missing_whatever_ballots_come_after_it() {
    let mut stream = stream();
    assert_eq!((stream.known_chosen(), stream.is_behind()), (0, false));
    // Two must hold it, of which the leader is one.
    stream.holds(OTHER, FIRST, 3);
    assert_eq!((stream.known_chosen(), stream.is_behind(), stream.gap()), (3, true, Some(OTHER)));
    let third = Ballot { number: 2, leader: THIRD };
    stream.promise(third).expect("it is higher");
    assert_eq!((stream.is_behind(), stream.gap()), (true, Some(OTHER)), "a ballot of this site's own does not fill the gap");
    stream.hear_chosen(THIRD, 2);
    assert_eq!(stream.known_chosen(), 3, "the highest counts");
    for index in 1..=3 {
        assert!(stream.learn(index, entry(LEADER, index)));
        stream.advance().expect("it is chosen");
    }
    assert_eq!((stream.is_behind(), stream.gap()), (false, None));
    // A secondary coordinator leads, but its copy does not count.
    let secondary = Ballot { number: 3, leader: SiteId::new(0, 1) };
    stream.holds(OTHER, secondary, 5);
    assert_eq!(stream.known_chosen(), 3);
    stream.holds(THIRD, secondary, 4);
    assert_eq!(stream.known_chosen(), 4);
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
    assert_eq!(stream.advance(), Some(Found { index: 1, entry: entry(OTHER, 90), covered: Epoch(90), void: false }));
    assert!(stream.learn(2, entry(LEADER, 6)));
    assert_eq!(stream.advance(), Some(Found { index: 2, entry: entry(LEADER, 6), covered: Epoch(90), void: true }));
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
    assert_eq!(stream.accepted(0), vec![(2, Standing::Accepted(FIRST), entry(LEADER, 78))]);
}

#[test]
fn what_is_learnt_counts_for_no_ballot_after_a_restart() {
    let mut stream = stream();
    stream.resume_entry(1, Standing::Chosen, entry(LEADER, 5));
    stream.resume_held(OTHER);
    assert!(stream.advance().is_some());
    assert_eq!(stream.accept(FIRST, 2, [entry(LEADER, 6)]), Ok(vec![2]));
    stream.holds(OTHER, FIRST, 2);
    stream.holds(LEADER, FIRST, 2);
    assert_eq!(stream.advance(), Some(Found { index: 2, entry: entry(LEADER, 6), covered: Epoch(6), void: false }));
}

#[test]
fn after_a_restart_a_site_holds_what_it_accepted_last() {
    let mut stream = stream();
    // A later leader had said the first again, and not yet the second.
    stream.resume_entry(1, Standing::Accepted(SECOND), entry(LEADER, 5));
    stream.resume_entry(2, Standing::Accepted(FIRST), entry(LEADER, 6));
    stream.resume_held(THIRD);
    stream.holds(OTHER, SECOND, 2);
    assert!(stream.advance().is_some());
    assert_eq!(stream.advance(), None, "what was accepted of another leader may be something else");
}

#[test]
fn who_holds_more_is_heard_of_until_it_is_here() {
    let mut stream = stream();
    assert_eq!(stream.accept(FIRST, 1, [entry(LEADER, 5)]), Ok(vec![1]));
    stream.hear(THIRD, FIRST, 1);
    assert_eq!(stream.gap(), None, "it holds no more than this site");
    stream.hear(THIRD, FIRST, 3);
    stream.hear(LEADER, FIRST, 2);
    assert_eq!(stream.gap(), Some(THIRD), "who holds most");
    assert_eq!(stream.accept(FIRST, 2, [entry(LEADER, 6), entry(LEADER, 7)]), Ok(vec![2, 3]));
    assert_eq!(stream.gap(), None);
    stream.hear(THIRD, FIRST, 5);
    stream.promise(SECOND).expect("it is higher");
    assert_eq!(stream.gap(), None, "what an earlier leader said may never be chosen");
}

#[test]
fn a_page_holds_no_more_entries_than_a_message_takes() {
    let mut stream = stream();
    let entries = |epoch, count: usize| (0..count as u64).map(move |next| entry(LEADER, epoch + next));
    let new = stream.accept(FIRST, 1, entries(5, PAGE_ENTRIES_MAX + 40)).expect("nothing is promised");
    assert_eq!(new.len(), PAGE_ENTRIES_MAX + 40);
    let (page, more) = stream.accepted_page(0);
    assert_eq!((page.len(), page[0].0, more), (PAGE_ENTRIES_MAX, 1, true));
    let (page, more) = stream.accepted_page(PAGE_ENTRIES_MAX as u64);
    assert_eq!((page.len(), more), (40, false));
    assert_eq!(stream.unchosen_bytes(), stream.accepted(0).iter().map(|(_, _, entry)| entry.bytes()).sum::<usize>());
    let (last, ahead) = (Epoch(4 + new.len() as u64), new.len() as u64);
    assert!(stream.is_ahead_of(Epoch(4), ahead) && !stream.is_ahead_of(Epoch(4), ahead + 1) && !stream.is_ahead_of(last, 1));
}
