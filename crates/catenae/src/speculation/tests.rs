//! Speculation: chains over a few transactions, and the orders that they find.

use super::*;
use crate::ledger::Ledger;
use crate::stream_id::StreamId;
use proptest::prelude::*;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::{Key, RegionId};

const SERVERS: u16 = 5;

fn id(place: u16) -> Identifier {
    Identifier { epoch: Epoch(1), stream: StreamId::first(RegionId(0)), place }
}

/// A key on each server.
fn key(server: u16) -> Key {
    let mut names = (0..).map(|number: u32| Key::from(format!("k{number}").as_str()));
    names.find(|key| chain::server_of(key, SERVERS) == server).expect("a hash reaches every server")
}

/// Transactions 1, 2, … that write one key on each of the servers named; an epoch of them.
fn epoch(transactions: &[&[u16]]) -> (Speculation, Vec<Visit>, Conflicts) {
    let write = |server: &u16| Operation::Write { key: key(*server), value: "v".into() };
    let named = (1..).map(id).zip(transactions).map(|(id, servers)| (id, Transaction::new(servers.iter().map(write).collect())));
    let named: Vec<(Identifier, Transaction)> = named.collect();
    let footprints = named.iter().map(|(id, transaction)| (*id, transaction.footprint())).collect();
    let conflicts = Ledger::default().register(named);
    let (speculation, visits) = Speculation::begin(Epoch(1), SERVERS, &conflicts, &footprints);
    (speculation, visits, conflicts)
}

/// Makes the visits in the order in which `next` picks one of those due.
fn run(speculation: &mut Speculation, mut due: Vec<Visit>, mut next: impl FnMut(&[Visit]) -> usize) -> Vec<Identifier> {
    while !due.is_empty() {
        let visit = due.remove(next(&due));
        due.extend(speculation.visit(visit));
    }
    speculation.order().expect("nobody waits for ever").sequence
}

/// The first visit due of the transactions named first.
fn prefer(places: &[u16]) -> impl FnMut(&[Visit]) -> usize {
    let places: Vec<Identifier> = places.iter().map(|place| id(*place)).collect();
    move |due| {
        let rank = |visit: &Visit| places.iter().position(|place| *place == visit.transaction).unwrap_or(usize::MAX);
        (0..due.len()).min_by_key(|&index| rank(&due[index])).expect("something is due")
    }
}

#[test]
fn whoever_comes_first_to_the_first_shared_partition_comes_first_on_all() {
    // Rule 1: T2 is first on server 4; T1 comes first to server 1, where it must wait for T2.
    let (mut speculation, due, _) = epoch(&[&[1, 4], &[1, 4]]);
    assert_eq!(due, [Visit { transaction: id(1), server: 4 }, Visit { transaction: id(2), server: 4 }]);
    let second = speculation.visit(due[1]);
    let first = speculation.visit(due[0]);
    assert_eq!(first, [Visit { transaction: id(1), server: 1 }]);
    assert_eq!(speculation.visit(first[0]), [], "Rule 2: it waits");
    assert_eq!(speculation.order(), None);
    speculation.visit(second[0]);
    assert_eq!(speculation.order().expect("both are through").sequence, [id(2), id(1)]);
}

#[test]
fn an_implicit_dependency_keeps_a_cycle_out() {
    // Figure 3 of the paper: T1 before T4 on one server, T4 before T3 on another; T3 comes first to where it meets T1.
    let (mut speculation, due, _) = epoch(&[&[0, 2], &[], &[0, 3], &[2, 3]]);
    let order = run(&mut speculation, due, prefer(&[4, 3, 1]));
    assert_eq!(order, [id(4), id(3), id(1)]);
    let (mut speculation, due, _) = epoch(&[&[0, 2], &[], &[0, 3], &[2, 3]]);
    let visit = |transaction: u16, server: u16| Visit { transaction: id(transaction), server };
    assert_eq!(due, [visit(1, 2), visit(3, 3), visit(4, 3)]);
    assert_eq!(speculation.visit(visit(4, 3)), [visit(4, 2)], "T4 is before T3");
    assert_eq!(speculation.visit(visit(1, 2)), [visit(1, 0)], "T1 is before T4, so before T3");
    assert_eq!(speculation.visit(visit(3, 3)), [visit(3, 0)]);
    assert_eq!(speculation.visit(visit(3, 0)), [], "T3 is first to where it meets T1, and waits for it");
    assert_eq!(speculation.visit(visit(1, 0)), []);
    assert_eq!(speculation.visit(visit(4, 2)), []);
    assert_eq!(speculation.order().expect("all are through").sequence, [id(1), id(4), id(3)]);
}

#[test]
fn a_visit_that_comes_twice_changes_nothing() {
    let (mut speculation, due, _) = epoch(&[&[1, 4], &[4]]);
    assert_eq!(speculation.visit(due[0]), [Visit { transaction: id(1), server: 1 }]);
    assert_eq!(speculation.visit(due[0]), []);
    assert_eq!(speculation.visit(Visit { transaction: id(9), server: 1 }), []);
}

/// A transaction on up to four of the servers.
fn servers() -> impl Strategy<Value = Vec<u16>> {
    prop::sample::subsequence((0..SERVERS).collect::<Vec<u16>>(), 1..=4)
}

proptest! {
    /// Whatever the speeds: all get through, no cycle is closed (the resolver would panic), and the order is that of the pre-commits.
    #[test]
    fn chains_end_and_their_order_is_serial(transactions in prop::collection::vec(servers(), 2..9), picks in prop::collection::vec(0..64_usize, 64)) {
        let lists: Vec<&[u16]> = transactions.iter().map(Vec::as_slice).collect();
        let (mut speculation, due, conflicts) = epoch(&lists);
        let mut picks = picks.into_iter().cycle();
        let order = run(&mut speculation, due, |due| picks.next().expect("they are cyclic") % due.len());
        let place = |transaction: &Identifier| order.iter().position(|other| other == transaction).expect("all are through");
        for (transaction, others) in &conflicts {
            for other in others {
                prop_assert_eq!(place(transaction) < place(other), speculation.resolver.is_before(*transaction, *other));
                prop_assert!(speculation.resolver.is_before(*transaction, *other) != speculation.resolver.is_before(*other, *transaction));
            }
        }
    }
}
