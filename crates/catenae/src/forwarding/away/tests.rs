//! What was forwarded is found by what it is, and by nothing else.

use super::*;
use rhumb_commit::one_shot::operation::Operation;
use rhumb_core::RegionId;

const STREAM: StreamId = StreamId::new(RegionId(0), 1);
const OTHER: SiteId = SiteId::new(0, 1);

fn name(number: u64) -> Forwarded {
    Forwarded { incarnation: Epoch(1), number }
}

fn add(key: u64) -> Transaction {
    Operation::Add { key: format!("k{key}").as_str().into(), amount: 1 }.into()
}

fn entry(author: SiteId, epoch: u64, batch: Vec<Transaction>) -> Entry {
    Entry { author, epoch: Epoch(epoch), batch, orders: vec![] }
}

/// On its way since an entry, up to epoch 40.
fn way(after: u64) -> Way {
    Way { stream: STREAM, to: OTHER, until: Epoch(40), after }
}

/// On their way since entry 4, up to epoch 40: a transaction on each of these keys.
fn away(keys: &[u64]) -> Aways {
    let mut aways = Aways::default();
    for (number, key) in (0..).zip(keys) {
        aways.insert(name(number), Away::new(number, add(*key), 0, way(4)));
    }
    aways
}

fn found(aways: &mut Aways, number: u64) -> Option<(RequestId, Epoch, u16)> {
    aways.find(name(number)).map(|(away, identifier)| (away.id, identifier.epoch, identifier.place))
}

#[test]
fn of_thousands_only_those_that_an_entry_holds_are_looked_at() {
    let keys: Vec<u64> = (0..10_000).collect();
    let mut aways = away(&keys);
    for number in keys {
        aways.say(OTHER, name(number), 5 + number / 1_000, (number % 1_000) as u16);
    }
    assert_eq!(aways.see(STREAM, 5, &entry(OTHER, 9, vec![add(0), add(1), add(77_777)])), [name(0), name(1)]);
    assert_eq!(aways.see(STREAM, 14, &entry(OTHER, 10, vec![add(9_000)])), [name(9_000)]);
    assert_eq!((found(&mut aways, 1), found(&mut aways, 9_000)), (Some((1, Epoch(9), 1)), Some((9_000, Epoch(10), 0))));
    assert_eq!((found(&mut aways, 2), aways.len()), (None, 9_998));
}

#[test]
fn the_word_of_the_coordinator_may_come_before_the_entry_or_after_it() {
    let mut aways = away(&[7, 7]);
    aways.say(OTHER, name(1), 5, 0);
    assert_eq!(found(&mut aways, 1), None);
    assert_eq!(aways.see(STREAM, 5, &entry(OTHER, 9, vec![add(7), add(7)])), [name(1)]);
    assert_eq!((found(&mut aways, 1), found(&mut aways, 0)), (Some((1, Epoch(9), 0)), None));
    aways.say(OTHER, name(0), 5, 1);
    assert_eq!(found(&mut aways, 0), Some((0, Epoch(9), 1)));
    assert!(aways.is_empty() && aways.alike.is_empty() && aways.said.is_empty());
}

#[test]
fn nobody_but_its_coordinator_can_have_sealed_it_and_not_before_it_went_or_after_its_time() {
    let sealed = |stream, index, epoch, author| {
        let mut aways = away(&[7]);
        aways.say(OTHER, name(0), index, 0);
        aways.see(stream, index, &entry(author, epoch, vec![add(7)]));
        let is_found = aways.find(name(0)).is_some();
        is_found || aways.remove_if(|_| true).iter().any(|left| matches!(left, Left::MayRun(_)))
    };
    assert!(sealed(STREAM, 5, 40, OTHER));
    assert!(!sealed(STREAM, 4, 40, OTHER), "before it went");
    assert!(!sealed(STREAM, 5, 41, OTHER), "after its time");
    assert!(!sealed(STREAM, 5, 40, SiteId::new(0, 0)), "by another site");
    assert!(!sealed(StreamId::first(RegionId(0)), 5, 40, OTHER), "in another stream");
}

#[test]
fn what_is_known_to_be_another_one_is_not_taken_for_this_one() {
    let mut aways = away(&[7, 7, 8]);
    aways.say(OTHER, name(0), 5, 0);
    aways.see(STREAM, 5, &entry(OTHER, 9, vec![add(7), add(8)]));
    assert_eq!(found(&mut aways, 0), Some((0, Epoch(9), 0)));
    let left = aways.remove_if(|_| true);
    let [Left::NeverRuns(Away { id: 1, .. }), Left::MayRun(Away { id: 2, .. })] = left[..] else {
        panic!("of the last nobody said which one stands there: {left:?}")
    };
}

#[test]
fn what_was_seen_is_forgotten_with_those_that_it_may_have_been() {
    let mut aways = away(&[7]);
    aways.see(STREAM, 5, &entry(OTHER, 9, vec![add(7)]));
    aways.insert(name(1), Away::new(1, add(7), 0, way(5)));
    aways.see(STREAM, 6, &entry(OTHER, 10, vec![add(7)]));
    assert_eq!(aways.alike[&add(7)].seen.len(), 2);
    assert!(matches!(aways.remove_if(|away| away.id == 0)[..], [Left::MayRun(_)]));
    assert_eq!(aways.alike[&add(7)].seen.keys().collect::<Vec<_>>(), [&Spot { stream: STREAM, index: 6, place: 0 }]);
}
