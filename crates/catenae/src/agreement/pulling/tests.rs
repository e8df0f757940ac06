//! One site misses entries: whom it asks, and when again; and what it tells who misses some.

use super::*;
use crate::config::{BACKLOG_MAX, Config, FLOODED_FACTOR, PAGE_ENTRIES_MAX, TRUNCATE_PAGE};
use crate::epoch::Epoch;
use crate::lone::{Lone, Said};
use crate::message::{Promise, Standing};
use crate::stream_id::StreamId;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::{RegionId, Rules, Value};

const ME: SiteId = SiteId::new(0, 0);
const OTHER: SiteId = SiteId::new(1, 0);
const THIRD: SiteId = SiteId::new(2, 0);
const OWN: StreamId = StreamId::first(RegionId(0));
const TALKS: StreamId = StreamId::first(RegionId(1));
const TOLERANCE: u64 = 10;

fn site() -> Lone {
    // Nobody else takes a stream over.
    Lone::with(ME, Config { tolerance_epochs: TOLERANCE, durability: crate::Durability::Region, ..Config::default() })
}

fn pulls(said: &[Said]) -> Vec<(SiteId, u64)> {
    let pulls = said.iter().filter_map(|said| match said {
        Said::Note(to, Note::Pull { stream: TALKS, after }) => Some((*to, *after)),
        _ => None,
    });
    pulls.collect()
}

fn entry(epoch: u64) -> Entry {
    Entry { author: OTHER, epoch: Epoch(epoch), batch: Vec::new(), orders: Vec::new() }
}

fn held(upto: u64) -> Promise {
    Promise::Held { stream: TALKS, ballot: TALKS.first_ballot(), upto }
}

fn nothing(after: u64) -> Note {
    Note::Chosen { stream: TALKS, first: after + 1, entries: Vec::new(), more: false }
}

#[test]
fn who_holds_what_is_missing_is_asked_and_one_question_waits_for_its_answer() {
    let mut site = site();
    assert_eq!(pulls(&site.end_epoch()), []);
    site.hear(THIRD, held(3));
    assert_eq!(pulls(&site.end_epoch()), [(THIRD, 0)], "not the leader, which may be out of reach");
    assert_eq!(pulls(&site.end_epochs(TOLERANCE - 1)), [], "the answer is under way");
    let later = pulls(&site.end_epoch());
    assert!(matches!(later[..], [(to, 0)] if to != THIRD), "who does not answer is not asked again at once: {later:?}");
    let (asked, _) = later[0];
    site.hear_note(THIRD, nothing(0));
    assert_eq!(pulls(&site.end_epoch()), [], "it was not asked now");
    site.hear_note(asked, nothing(0));
    assert_eq!(pulls(&site.end_epoch()), [(THIRD, 0)], "it has nothing: on");
    let said = site.hear_note(THIRD, Note::Chosen { stream: TALKS, first: 1, entries: vec![entry(5), entry(6)], more: true });
    assert_eq!(pulls(&said), [(THIRD, 2)], "the next page is asked for at once");
    site.hear_note(THIRD, Note::Chosen { stream: TALKS, first: 3, entries: vec![entry(7)], more: false });
    assert_eq!(pulls(&site.end_epochs(2 * TOLERANCE)), [], "nothing is missing");
}

#[test]
fn what_does_not_come_to_be_known_as_chosen_is_asked_for() {
    let mut site = Lone::with(ME, Config { tolerance_epochs: TOLERANCE, ..Config::default() });
    // Others may hold the entries of this site, and their acknowledgements may have been lost.
    let said = site.end_epochs(TOLERANCE / 2 + 1);
    let own: Vec<_> = said.iter().filter(|said| matches!(said, Said::Note(_, Note::Pull { stream: OWN, .. }))).collect();
    assert_eq!(own.len(), 1, "{own:?}");
}

/// How many entries a site knows to be chosen, the last of which its leader and it hold after it has restarted.
fn chosen_after_restart(mut site: Lone) -> u64 {
    site.hear_note(THIRD, Note::Chosen { stream: TALKS, first: 1, entries: vec![entry(5), entry(6)], more: false });
    site.restart();
    assert_eq!(site.site.stream(TALKS).chosen(), 2);
    site.hear(OTHER, Promise::Epoch { stream: TALKS, ballot: TALKS.first_ballot(), first: 3, entries: vec![entry(7)] });
    site.site.stream(TALKS).chosen()
}

#[test]
fn a_site_counts_itself_after_a_restart_that_follows_on_what_it_learnt() {
    assert_eq!(chosen_after_restart(Lone::with(ME, Config::default())), 3, "the leader and this site are two of three");
    assert_eq!(chosen_after_restart(Lone::with(ME, Config::default()).with_rules(Rules::breaking(Planted::LearntIsHeld))), 2);
}

#[test]
fn whoever_asks_is_answered_with_a_page_bounded_in_bytes() {
    let mut site = site();
    let large =
        |n: u64| -> Transaction { Operation::Write { key: format!("k{n}").as_str().into(), value: Value::new(vec![0; 3 << 20]) }.into() };
    let begin = site.sealed();
    for n in 1..=5 {
        site.hear_entry(TALKS, Epoch(begin.0 + n), vec![large(n)]);
    }
    let said = site.hear_note(THIRD, Note::Pull { stream: TALKS, after: 1 });
    let [Said::Note(THIRD, Note::Chosen { first: 2, entries, more: true, .. })] = &said[..] else { panic!("{} messages", said.len()) };
    assert_eq!(entries.len(), 2, "the second ends what one message takes");
    let said = site.hear_note(THIRD, Note::Pull { stream: TALKS, after: 5 });
    assert_eq!(said, [Said::Note(THIRD, nothing(5))], "an answer in any case");
}

#[test]
fn what_was_only_accepted_when_it_was_read_is_not_told_as_chosen() {
    let mut site = site();
    site.hear_note(OTHER, Note::Chosen { stream: TALKS, first: 1, entries: vec![entry(5)], more: false });
    site.hold_loads();
    site.hear_note(THIRD, Note::Pull { stream: TALKS, after: 0 });
    // Another is chosen in the second place while the disk is slow; what it read is what had been accepted there before.
    site.hear_note(OTHER, Note::Chosen { stream: TALKS, first: 2, entries: vec![entry(6)], more: false });
    let mut batch = Batch::new();
    records::put_entry(&mut batch, TALKS, 2, &(Standing::Accepted(TALKS.first_ballot()), entry(7)));
    site.write(&batch);
    let said = site.release_load();
    let told = |said: &Said| match said {
        Said::Note(THIRD, Note::Chosen { stream: TALKS, first: 1, entries, .. }) => Some(entries.clone()),
        _ => None,
    };
    assert_eq!(said.iter().find_map(told), Some(vec![entry(5)]));
}

#[test]
fn a_leader_answers_with_what_it_has_said_since() {
    let mut site = Lone::with(ME, Config { tolerance_epochs: 4 * TRUNCATE_PAGE, ..Config::default() });
    site.end_epochs(3);
    let said = site.hear_note(THIRD, Note::Pull { stream: OWN, after: 0 });
    assert!(matches!(
        &said[..],
        [
            Said::Note(THIRD, Note::Chosen { entries, more: false, .. }),
            Said::Promise(THIRD, Promise::Epoch { first: 1, entries: since, .. })
        ] if entries.is_empty() && since.len() == 4
    ));
}

#[test]
fn what_there_is_no_room_for_is_asked_for_later() {
    let mut site = site();
    let begin = site.sealed();
    site.hear_entry(TALKS, begin, Vec::new());
    let read: Transaction = Operation::Read { key: "k".into() }.into();
    let waiting = vec![read; FLOODED_FACTOR * BACKLOG_MAX];
    site.site.backlog_mut().add(&waiting);
    let said = site.hear_entry(TALKS, begin.plus(1), Vec::new());
    assert_eq!((said, site.site.stream(TALKS).end()), (vec![], 1), "it is not taken, and nobody is told that it is held");
    assert_eq!(pulls(&site.end_epoch()), []);
    waiting.iter().for_each(|transaction| site.site.backlog_mut().remove(transaction));
    assert_eq!(pulls(&site.end_epoch()), [(OTHER, 1)]);
}

#[test]
fn an_entry_of_a_page_costs_the_same_however_many_epochs_wait_for_a_silent_region() {
    let mut site = site();
    let begin = site.sealed();
    let entry = |n: u64| {
        let batch = vec![Operation::Read { key: "k".into() }.into()];
        Entry { author: OTHER, epoch: begin.plus(n), batch, orders: Vec::new() }
    };
    for first in (1..2_000).step_by(PAGE_ENTRIES_MAX) {
        let entries: Vec<Entry> = (first..).take(PAGE_ENTRIES_MAX).map(entry).collect();
        let page = Note::Chosen { stream: TALKS, first, entries, more: false };
        let (_, work) = rhumb_core::work::measure(|| site.hear_note(OTHER, page));
        assert!(work < 10 * PAGE_ENTRIES_MAX as u64, "{work} for a page after {first}");
    }
}
