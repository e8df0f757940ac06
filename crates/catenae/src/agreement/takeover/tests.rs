//! When a site wants to lead, and how it learns what it has to say again.

use super::*;
use crate::config::{BACKLOG_MAX, Config, PAGE_ENTRIES_MAX};
use crate::lone::{Lone, Said};
use crate::planted::Planted;
use crate::stream_id::StreamId;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::RegionId;
use rhumb_core::Rules;
use std::ops::RangeInclusive;

const ME: SiteId = SiteId::new(0, 0);
const OTHER: SiteId = SiteId::new(1, 0);
const THIRD: SiteId = SiteId::new(2, 0);
/// The secondary of the first region.
const SECOND: SiteId = SiteId::new(0, 1);
const OWN: StreamId = StreamId::first(RegionId(0));
const TALKS: StreamId = StreamId::first(RegionId(1));
const SILENT: StreamId = StreamId::first(RegionId(2));
const TOLERANCE: u64 = 10;
/// Another site leads.
const HIGHER: Ballot = Ballot { number: 1, leader: OTHER };

fn site() -> Lone {
    Lone::with(ME, Config { tolerance_epochs: TOLERANCE, linger_epochs: 10_000, ..Config::default() })
}

fn entry(author: SiteId, epoch: u64) -> Entry {
    Entry { author, epoch: Epoch(epoch), batch: Vec::new(), orders: Vec::new() }
}

/// The streams that promises were asked for, and after which place.
fn prepared(said: &[Said]) -> Vec<(StreamId, u64)> {
    let prepared = said.iter().filter_map(|said| match said {
        Said::Note(ME, Note::Prepare { stream, after, .. }) => Some((*stream, *after)),
        _ => None,
    });
    prepared.collect()
}

/// The streams that a site wants to lead after a while, of which it asks for more of one alone.
fn found_silent(mut site: Lone) -> BTreeSet<StreamId> {
    let begin = site.sealed();
    site.hear_entry(TALKS, begin, Vec::new());
    let read: Transaction = Operation::Read { key: "k".into() }.into();
    site.site.backlog_mut().add(&vec![read; BACKLOG_MAX]);
    prepared(&site.end_epochs(10 * TOLERANCE)).into_iter().map(|(stream, _)| stream).collect()
}

#[test]
fn who_does_not_ask_for_more_of_a_stream_does_not_find_it_silent() {
    assert_eq!(found_silent(site()), BTreeSet::from([SILENT]), "all wait for that one, and for no other");
    assert_eq!(found_silent(site().with_rules(Rules::breaking(Planted::SilentUnasked))), BTreeSet::from([TALKS, SILENT]));
}

#[test]
fn each_false_alarm_doubles_the_patience_with_a_stream() {
    let mut site = site();
    let (begin, rank) = (site.sealed(), SILENT.rank(ME, site.topology()));
    site.hear_entry(TALKS, begin, Vec::new());
    // Epochs until this site wants to pass over the third region, which then takes its stream back at once.
    let mut alarm = || {
        let (waited, asked) = asks_for(SILENT, &mut site);
        let ballot = Ballot { number: asked.number + 1, leader: THIRD };
        site.hear_note(THIRD, Note::Prepare { stream: SILENT, ballot, after: 0 });
        waited
    };
    let first = alarm();
    assert_eq!([alarm(), alarm()], [2, 4].map(|patience| patience * TOLERANCE * rank + 1), "the first took {first}");

    let asked = || FalseAlarms { asked: Some(0), ..FalseAlarms::default() };
    let mut alarms = asked();
    alarms.hear(ALARM_SPAN * TOLERANCE + 1, TOLERANCE);
    assert_eq!(alarms.patience(TOLERANCE), TOLERANCE, "a region that was away for long had gone");
    let mut alarms = asked();
    alarms.hear(1, TOLERANCE);
    assert_eq!(alarms.patience(TOLERANCE), 2 * TOLERANCE);
    alarms.hear(1, TOLERANCE);
    assert_eq!(alarms.patience(TOLERANCE), 2 * TOLERANCE, "one takeover is one false alarm");
    alarms.fade(1 + FADES_AFTER * 2 * TOLERANCE, TOLERANCE);
    assert_eq!(alarms.patience(TOLERANCE), 2 * TOLERANCE);
    alarms.fade(2 + FADES_AFTER * 2 * TOLERANCE, TOLERANCE);
    assert_eq!(alarms.patience(TOLERANCE), TOLERANCE, "no false alarm for long");
}

/// Epochs until a site asks for promises on a stream, and the ballot at which it does.
fn asks_for(stream: StreamId, site: &mut Lone) -> (u64, Ballot) {
    let mut asked = None;
    let waited = (1..=100 * TOLERANCE).find(|_| {
        asked = site.end_epoch().into_iter().find_map(|said| match said {
            Said::Note(_, Note::Prepare { stream: of, ballot, .. }) if of == stream => Some(ballot),
            _ => None,
        });
        asked.is_some()
    });
    (waited.expect("it asks some time"), asked.expect("it asks"))
}

/// How often a site waits before it asks for promises on its region's stream. Each time but the first its ask has been refused at a ballot of
/// `other`, and the stream has come a little further, as others tell.
fn waits_of_outbid(mut site: Lone, other: SiteId) -> [u64; 7] {
    let begin = site.sealed().0.max(100);
    site.hear_entry(TALKS, Epoch(begin), Vec::new());
    [1, 2, 3, 4, 5, 6, 7].map(|place| {
        let (waited, ballot) = asks_for(OWN, &mut site);
        let promised = Ballot { number: ballot.number + 1, leader: other };
        site.hear_note(OTHER, Note::Refused { stream: OWN, promised });
        site.hear_note(OTHER, Note::Chosen { stream: OWN, first: place, entries: vec![entry(other, begin + place)], more: false });
        waited
    })
}

#[test]
fn a_secondary_hears_by_a_refusal_that_its_coordinator_is_back() {
    let config = Config { tolerance_epochs: TOLERANCE, linger_epochs: 10_000, ..Config::default() };
    let [_, waits @ ..] = waits_of_outbid(Lone::with(SECOND, config), ME);
    // Nobody asks it for promises. Each refusal tells of a false alarm, and the stream is silent from the end of the next epoch on.
    assert_eq!(waits, [2, 4, 8, 16, 32, 32].map(|patience| patience * TOLERANCE + 2));
}

#[test]
fn who_is_outbid_waits_longer_each_time_though_the_stream_moves_until_it_leads() {
    let mut site = site();
    site.hear_note(OTHER, Note::Refused { stream: OWN, promised: HIGHER });
    let [_, waits @ ..] = waits_of_outbid(site, OTHER);
    assert_eq!(waits, [2, 4, 8, 8, 8, 8].map(|pause| pause * TOLERANCE + 1), "its own stream: others wait longer");
}

/// Epochs until a site wants to lead a stream that others hear of at first, in three steps, and then no more.
fn passed_over_after(mut site: Lone, mut hear: impl FnMut(&mut Lone, u64)) -> Option<u64> {
    let begin = site.sealed();
    site.hear_entry(TALKS, begin, Vec::new());
    (1..=8 * TOLERANCE).find(|epoch| {
        if epoch.is_multiple_of(TOLERANCE / 2) && *epoch <= 2 * TOLERANCE {
            hear(&mut site, epoch / (TOLERANCE / 2));
        }
        prepared(&site.end_epoch()).iter().any(|(stream, _)| *stream == SILENT)
    })
}

#[test]
fn a_region_of_which_others_hear_is_not_passed_over() {
    let held = |site: &mut Lone, upto: u64| {
        site.hear(OTHER, Promise::Held { stream: SILENT, ballot: SILENT.first_ballot(), upto });
    };
    let silent = passed_over_after(site(), |_, _| {}).expect("nobody hears of it");
    assert!(silent <= 2 * TOLERANCE, "{silent}");
    assert_eq!(passed_over_after(site(), held), None, "and after that this site is behind");
    {
        let deposes =
            passed_over_after(site().with_rules(Rules::breaking(Planted::BehindLeads)), held).expect("it does not catch up first");
        assert!(deposes > 2 * TOLERANCE, "as long as others hear of it, it is not silent: {deposes}");
    }
}

#[test]
fn a_coordinator_takes_its_stream_back_once_it_has_all_that_was_said() {
    {
        let mut site = site().with_rules(Rules::breaking(Planted::ReclaimedAtOnce));
        site.hear_note(OTHER, Note::Refused { stream: OWN, promised: HIGHER });
        assert_eq!(prepared(&site.end_epoch()), [(OWN, 0)], "what others have said it misses, and all wait for it");
    }
    let mut site = site();
    let begin = site.sealed();
    site.hear_note(OTHER, Note::Refused { stream: OWN, promised: HIGHER });
    assert_eq!(prepared(&site.end_epoch()), [], "it has not heard who leads");
    let epoch = |first, entries| Promise::Epoch { stream: OWN, ballot: HIGHER, first, entries };
    site.hear(OTHER, epoch(5, vec![entry(OTHER, begin.0 + 5)]));
    assert_eq!(prepared(&site.end_epoch()), [], "it misses what was said before");
    let entries: Vec<Entry> = (1..=4).map(|more| entry(OTHER, begin.0 + more)).collect();
    site.hear_note(OTHER, Note::Chosen { stream: OWN, first: 1, entries, more: false });
    site.hear(OTHER, epoch(5, vec![entry(OTHER, begin.0 + 5)]));
    assert_eq!(prepared(&site.end_epoch()), [(OWN, 5)]);
}

#[test]
fn a_coordinator_that_does_not_hear_the_leader_takes_its_stream_back_soon() {
    let mut site = site();
    site.hear_note(OTHER, Note::Refused { stream: OWN, promised: HIGHER });
    assert_eq!(prepared(&site.end_epoch()), []);
    assert!(prepared(&site.end_epochs(TOLERANCE / HEARING_PART)).iter().any(|(stream, _)| *stream == OWN));
}

/// What acceptors promise to a site that asks for the silent stream, one of which has accepted more than a page holds.
struct Acceptors {
    ballot: Ballot,
    begin: Epoch,
}

/// The places that one of them has accepted, and those of them in the first page.
const ALL: u64 = PAGE + 44;
const PAGE: u64 = PAGE_ENTRIES_MAX as u64;

impl Acceptors {
    /// Those whom the site asks after a while.
    fn asked_by(site: &mut Lone) -> Acceptors {
        let begin = site.sealed();
        let said = site.end_epochs(3 * TOLERANCE);
        let ballot = said.iter().find_map(|said| match said {
            Said::Note(_, Note::Prepare { stream: SILENT, ballot, after: 0 }) => Some(*ballot),
            _ => None,
        });
        Acceptors { ballot: ballot.expect("the stream is silent"), begin }
    }

    /// Asked after that place, one has accepted these, and more.
    fn promise(&self, after: u64, places: RangeInclusive<u64>, more: bool) -> Promise {
        let accepted = places.map(|place| (place, Standing::Accepted(SILENT.first_ballot()), entry(THIRD, self.begin.0 + place))).collect();
        Promise::Promised { stream: SILENT, ballot: self.ballot, after, chosen: 0, accepted, more }
    }

    /// One has accepted nothing.
    fn nothing(&self) -> Promise {
        Promise::Promised { stream: SILENT, ballot: self.ballot, after: 0, chosen: 0, accepted: Vec::new(), more: false }
    }

    /// Another has said the first page; the site asks for the next.
    fn first_page(&self, site: &mut Lone) {
        site.hear(ME, self.nothing());
        let said = site.hear(OTHER, self.promise(0, 1..=PAGE, true));
        let next = Note::Prepare { stream: SILENT, ballot: self.ballot, after: PAGE };
        assert_eq!(said, [Said::Note(OTHER, next)], "it counts once it has said all");
    }
}

/// The places from which on the site says something of the silent stream, and how many entries.
fn told(said: &[Said]) -> Vec<(u64, u64)> {
    let told = said.iter().filter_map(|said| match said {
        Said::Promise(OTHER, Promise::Epoch { stream: SILENT, first, entries, .. }) => Some((*first, entries.len() as u64)),
        _ => None,
    });
    told.collect()
}

#[test]
fn what_an_acceptor_has_is_asked_for_and_said_again_in_pages() {
    let mut site = site();
    let acceptors = Acceptors::asked_by(&mut site);
    acceptors.first_page(&mut site);
    let said = site.hear(OTHER, acceptors.promise(PAGE, PAGE + 1..=ALL, false));
    // The last one passes the region over, and repeats the one before.
    assert_eq!(told(&said), [(1, PAGE), (PAGE + 1, ALL - PAGE), (ALL, 2)]);
}

/// A site that crashes while it asks for promises, and then, asking again, hears an answer to its earlier incarnation. Returns it with what it
/// says on that.
fn hears_a_promise_of_before(mut site: Lone) -> (Lone, Acceptors, Vec<Said>) {
    let before = Acceptors::asked_by(&mut site);
    before.first_page(&mut site);
    site.restart();
    let acceptors = Acceptors { begin: before.begin, ..Acceptors::asked_by(&mut site) };
    assert_eq!(acceptors.ballot, before.ballot, "nothing was said at it, and it is on no disk");
    site.hear(ME, acceptors.nothing());
    let said = site.hear(OTHER, before.promise(PAGE, PAGE + 1..=ALL, false));
    (site, acceptors, said)
}

#[test]
fn a_promise_to_an_earlier_incarnation_that_asked_after_another_place_does_not_count() {
    let (mut site, acceptors, said) = hears_a_promise_of_before(site());
    assert!(said.is_empty(), "the entries of the first page would be lost");
    acceptors.first_page(&mut site);
    let said = site.hear(OTHER, acceptors.promise(PAGE, PAGE + 1..=ALL, false));
    assert_eq!(told(&said), [(1, PAGE), (PAGE + 1, ALL - PAGE), (ALL, 2)]);
    {
        let (.., said) = hears_a_promise_of_before(self::site().with_rules(Rules::breaking(Planted::PromiseOfBefore)));
        assert_eq!(told(&said)[0], (1, ALL - PAGE), "the second page is said in place of the first");
    }
}

#[test]
fn an_acceptor_says_what_it_has_accepted_in_pages() {
    let mut site = site();
    site.end_epochs(PAGE_ENTRIES_MAX as u64 + 10);
    let mut ask = |after| {
        let said = site.hear_note(OTHER, Note::Prepare { stream: OWN, ballot: HIGHER, after });
        let promised = said.into_iter().find_map(|said| match said {
            Said::Promise(OTHER, Promise::Promised { accepted, more, .. }) => Some((accepted.len(), more)),
            _ => None,
        });
        promised.expect("it promises, and does so again")
    };
    assert_eq!(ask(0), (PAGE_ENTRIES_MAX, true));
    assert_eq!(ask(PAGE_ENTRIES_MAX as u64), (11, false));
}
