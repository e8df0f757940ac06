//! Crossing: two sites with every other chain server, a resolver with the first, messages in any order and doubled.

use super::*;
use crate::chain;
use crate::ledger::Ledger;
use crate::stream_id::StreamId;
use proptest::prelude::*;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::{Key, RegionId};

const SERVERS: u16 = 5;
const SITES: u16 = 2;

fn id(place: u16) -> Identifier {
    Identifier { epoch: Epoch(1), stream: StreamId::first(RegionId(0)), place }
}

fn visit(transaction: u16, server: u16) -> Visit {
    Visit { transaction: id(transaction), server }
}

/// A key on each server.
fn key(server: u16) -> Key {
    let mut names = (0..).map(|number: u32| Key::from(format!("k{number}").as_str()));
    names.find(|key| chain::server_of(key, SERVERS) == server).expect("a hash reaches every server")
}

/// What is said between servers and resolver.
#[derive(Clone, Debug)]
enum Said {
    Cross(Visit),
    Claim(Visit, Vec<Identifier>),
    Granted(Visit),
    Through(Identifier),
}

/// A region of two sites in an epoch of transactions 1, 2, … that write one key on each of the servers named.
struct Region {
    parts: Vec<Part>,
    resolution: Resolution,
    conflicts: Conflicts,
    footprints: BTreeMap<Identifier, Footprint>,
    said: Vec<Said>,
}

impl Region {
    fn new(transactions: &[Vec<u16>]) -> Region {
        let write = |server: &u16| Operation::Write { key: key(*server), value: "v".into() };
        let named = (1..).map(id).zip(transactions).map(|(id, servers)| (id, Transaction::new(servers.iter().map(write).collect())));
        let named: Vec<(Identifier, Transaction)> = named.collect();
        let footprints: BTreeMap<_, _> = named.iter().map(|(id, transaction)| (*id, transaction.footprint())).collect();
        let conflicts = Ledger::default().register(named);
        let here = |site| (0..SERVERS).filter(move |server| server % SITES == site);
        let parts = (0..SITES).map(|site| Part::begin(here(site), SERVERS, &conflicts, &footprints)).collect();
        let resolution = Resolution::begin(Epoch(1), &conflicts);
        let mut region = Region { parts, resolution, said: Vec::new(), footprints, conflicts };
        let all: Vec<Identifier> = region.conflicts.keys().copied().collect();
        all.into_iter().for_each(|transaction| region.go_on(Visit { transaction, server: SERVERS }));
        region
    }

    fn go_on(&mut self, from: Visit) {
        let own = &self.footprints[&from.transaction];
        let next = (0..from.server).rev().find(|server| chain::passes(own, *server, SERVERS));
        self.said.push(match next {
            Some(server) => Said::Cross(Visit { server, ..from }),
            None => Said::Through(from.transaction),
        });
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Cross(visit) => match self.parts[usize::from(visit.server % SITES)].come(visit) {
                Arrival::Passes => self.go_on(visit),
                Arrival::Claims(open) => self.said.push(Said::Claim(visit, open)),
                Arrival::Nothing => {}
            },
            Said::Claim(visit, open) => self.said.extend(self.resolution.claim(visit, open).into_iter().map(Said::Granted)),
            Said::Granted(visit) => {
                if self.parts[usize::from(visit.server % SITES)].grant(visit) {
                    self.go_on(visit);
                }
            }
            Said::Through(transaction) => self.resolution.through(transaction),
        }
    }
}

#[test]
fn who_meets_nobody_open_passes_without_a_question() {
    let mut region = Region::new(&[vec![1, 4], vec![4]]);
    let mut part = region.parts.remove(0);
    assert_eq!(part.come(visit(1, 4)), Arrival::Claims(vec![id(2)]));
    assert_eq!(part.come(visit(1, 1)), Arrival::Nothing, "that server is on the other site");
    assert!(part.grant(visit(1, 4)) && !part.grant(visit(1, 4)), "a grant that comes twice changes nothing");
    assert_eq!(part.come(visit(2, 4)), Arrival::Passes);
    assert_eq!(part.come(visit(2, 4)), Arrival::Nothing);
    assert_eq!(region.parts[0].come(visit(1, 1)), Arrival::Passes);
    assert_eq!(region.parts[0].come(visit(7, 1)), Arrival::Nothing, "nobody knows it");
}

#[test]
fn a_claim_waits_for_those_that_come_before_it_on_another_site() {
    let mut region = Region::new(&[vec![1, 4], vec![1, 4]]);
    let resolution = &mut region.resolution;
    assert_eq!(resolution.claim(visit(2, 4), [id(1)]), [visit(2, 4)]);
    assert_eq!(resolution.claim(visit(1, 4), [id(2)]), [visit(1, 4)], "asked before it heard of the grant");
    assert_eq!(resolution.claim(visit(1, 1), [id(2)]), [], "Rule 2: it waits");
    assert_eq!(resolution.claim(visit(2, 1), [id(1)]), [visit(2, 1), visit(1, 1)]);
    assert_eq!(resolution.claim(visit(2, 1), [id(1)]), [visit(2, 1)], "asked twice");
    resolution.through(id(1));
    assert_eq!(resolution.order(), None);
    resolution.through(id(2));
    assert_eq!(resolution.order().expect("both are through").sequence, [id(2), id(1)]);
}

/// A transaction on up to four of the servers.
fn servers() -> impl Strategy<Value = Vec<u16>> {
    prop::sample::subsequence((0..SERVERS).collect::<Vec<u16>>(), 1..=4)
}

proptest! {
    /// Whatever the speeds of sites and messages, and if any comes twice: all get through, and no cycle is closed (the resolver would
    /// panic). Of two that meet, whoever the resolver put first comes first.
    #[test]
    fn chains_over_two_sites_end_and_their_order_is_serial(
        transactions in prop::collection::vec(servers(), 2..9),
        picks in prop::collection::vec((0..64_usize, 0..5_u8), 64),
    ) {
        let mut region = Region::new(&transactions);
        let mut picks = picks.into_iter().cycle();
        while !region.said.is_empty() {
            let (pick, again) = picks.next().expect("they are cyclic");
            let said = region.said.remove(pick % region.said.len());
            if again == 0 && region.said.len() < 64 {
                region.hear(said.clone());
            }
            region.hear(said);
        }
        let order = region.resolution.order().expect("nobody waits for ever").sequence;
        prop_assert!(order.iter().collect::<BTreeSet<_>>() == region.conflicts.keys().collect::<BTreeSet<_>>());
        let place = |transaction: &Identifier| order.iter().position(|other| other == transaction).expect("all are through");
        for (transaction, others) in &region.conflicts {
            for other in others {
                prop_assert_eq!(place(transaction) < place(other), region.resolution.resolver.is_before(*transaction, *other));
            }
        }
    }
}
