//! Validation: the counterexamples of votes on less than the whole graph, and what votes choose.

use super::*;
use crate::epoch::Epoch;
use crate::stream_id::StreamId;

fn id(place: u16) -> Identifier {
    Identifier { epoch: Epoch(1), stream: StreamId::first(RegionId(0)), place }
}

fn order(sequence: &[u16]) -> Order {
    Order { epoch: Epoch(1), sequence: sequence.iter().map(|place| id(*place)).collect() }
}

fn conflicts(pairs: &[(u16, u16)]) -> Conflicts {
    let mut conflicts = Conflicts::new();
    for &(one, other) in pairs {
        conflicts.entry(id(one)).or_default().insert(id(other));
        conflicts.entry(id(other)).or_default().insert(id(one));
    }
    conflicts
}

/// The votes of regions 0, 1, …; `None`: that region has none.
fn votes(orders: &[Option<&[u16]>]) -> Votes {
    let mut votes = Votes::default();
    for (region, sequence) in (0..).map(RegionId).zip(orders) {
        match sequence {
            Some(sequence) => votes.cast(region, order(sequence)),
            None => votes.close(region),
        }
    }
    votes
}

fn chosen(predecessors: &[u16]) -> Verdict {
    Verdict::Chosen(predecessors.iter().map(|place| id(*place)).collect())
}

/// True if following what was chosen leads back to where one came from.
fn has_cycle(verdicts: &BTreeMap<Identifier, Verdict>) -> bool {
    let mut left: BTreeMap<Identifier, BTreeSet<Identifier>> = BTreeMap::new();
    for (&transaction, verdict) in verdicts {
        if let Verdict::Chosen(predecessors) = verdict {
            left.insert(transaction, predecessors.clone());
        }
    }
    while let Some(next) = left.iter().find(|(_, before)| before.is_empty()).map(|(next, _)| *next) {
        left.remove(&next);
        left.values_mut().for_each(|before| {
            before.remove(&next);
        });
    }
    !left.is_empty()
}

const RING: [(u16, u16); 6] = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 1)];
const RING_ORDERS: [Option<&[u16]>; 3] = [Some(&[2, 3, 4, 5, 6, 1]), Some(&[4, 5, 6, 1, 2, 3]), Some(&[6, 1, 2, 3, 4, 5])];

#[test]
fn a_ring_of_six_is_chosen_whole_by_direct_dependencies() {
    let (conflicts, votes) = (conflicts(&RING), votes(&RING_ORDERS));
    let verdicts = votes.verdicts_by(&conflicts, 3, Execution::of_direct);
    for place in 1..=6 {
        let before = if place == 1 { 6 } else { place - 1 };
        assert_eq!(verdicts[&id(place)], chosen(&[before]), "two regions of three ran {place} after {before}");
    }
    assert!(has_cycle(&verdicts));
}

#[test]
fn a_ring_of_six_has_no_majority_by_fingerprints() {
    let (conflicts, votes) = (conflicts(&RING), votes(&RING_ORDERS));
    let verdicts = votes.verdicts(&conflicts, 3);
    assert!(verdicts.values().all(|verdict| *verdict == Verdict::Failed), "{verdicts:?}");
    assert_eq!(verdicts.len(), 6, "all is decided: nobody has to wait for ever");
}

#[test]
fn equal_sets_of_dependencies_may_hide_different_orders() {
    let conflicts = conflicts(&[(1, 2), (1, 3), (2, 3)]);
    let orders: [Option<&[u16]>; 3] = [Some(&[1, 2, 3]), Some(&[2, 1, 3]), None];
    let by_sets = votes(&orders).verdicts_by(&conflicts, 3, Execution::of_direct);
    assert_eq!(by_sets[&id(3)], chosen(&[1, 2]), "both ran it after 1 and 2");
    assert_eq!(by_sets[&id(1)], Verdict::Failed, "but what it is chosen to come after is not");
    let verdicts = votes(&orders).verdicts(&conflicts, 3);
    assert!(verdicts.values().all(|verdict| *verdict == Verdict::Failed), "{verdicts:?}");
}

#[test]
fn what_is_chosen_is_closed_under_predecessors_and_without_a_cycle() {
    // Every combination of three regions' orders of four transactions that all conflict with the next.
    let conflicts = conflicts(&[(1, 2), (2, 3), (3, 4), (4, 1)]);
    let permutations = permutations(&[1, 2, 3, 4]);
    for one in &permutations {
        for other in &permutations {
            for third in &permutations {
                let verdicts = votes(&[Some(one), Some(other), Some(third)]).verdicts(&conflicts, 3);
                assert_eq!(verdicts.len(), 4, "three votes decide all");
                assert!(!has_cycle(&verdicts), "{one:?} {other:?} {third:?}");
                let all_predecessors = verdicts.values().filter_map(|verdict| match verdict {
                    Verdict::Chosen(predecessors) => Some(predecessors),
                    Verdict::Failed => None,
                });
                for before in all_predecessors.flatten() {
                    assert!(matches!(verdicts[before], Verdict::Chosen(_)), "{one:?} {other:?} {third:?}");
                }
            }
        }
    }
}

#[test]
fn more_votes_never_change_what_few_have_decided() {
    let conflicts = conflicts(&[(1, 2), (2, 3)]);
    let permutations = permutations(&[1, 2, 3]);
    for one in &permutations {
        for other in &permutations {
            let mut few = Votes::default();
            few.cast(RegionId(0), order(one));
            few.cast(RegionId(2), order(other));
            let early = few.verdicts(&conflicts, 3);
            for third in &permutations {
                let mut all = few.clone();
                all.cast(RegionId(1), order(third));
                let late = all.verdicts(&conflicts, 3);
                assert!(early.iter().all(|(transaction, verdict)| late[transaction] == *verdict));
            }
            few.close(RegionId(1));
            let without = few.verdicts(&conflicts, 3);
            assert!(early.iter().all(|(transaction, verdict)| without[transaction] == *verdict));
        }
    }
}

#[test]
fn the_first_vote_of_a_region_counts_and_a_garbled_one_does_not() {
    let conflicts = conflicts(&[(1, 2)]);
    let mut votes = Votes::default();
    votes.cast(RegionId(0), order(&[1, 2]));
    votes.cast(RegionId(0), order(&[2, 1]));
    votes.cast(RegionId(1), order(&[1, 2]));
    assert_eq!(votes.verdicts(&conflicts, 3)[&id(2)], chosen(&[1]));
    for garbled in [&[1][..], &[1, 1], &[1, 2, 3]] {
        let mut votes = Votes::default();
        votes.cast(RegionId(0), order(&[1, 2]));
        votes.cast(RegionId(1), order(garbled));
        assert_eq!(votes.verdicts(&conflicts, 3), BTreeMap::new(), "one good vote, one to come");
    }
}

fn permutations(items: &[u16]) -> Vec<Vec<u16>> {
    if items.is_empty() {
        return vec![vec![]];
    }
    let with_first = |&first: &u16| {
        let rest: Vec<u16> = items.iter().copied().filter(|item| *item != first).collect();
        permutations(&rest).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    items.iter().flat_map(with_first).collect()
}
