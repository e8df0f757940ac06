//! What follows from agreed streams, as a state space: three regions, two epochs, three transactions, the product's own
//! [`Speculation`], [`Votes`] and [`Ledger`].
//!
//! The transactions conflict in a ring: each shares a key with either of the others. Region `r` receives transaction `r`, in an epoch that
//! the model is made with. A state is what has been agreed on: the entries of the three streams so far. The next entry of a stream has
//! the region's batch, or passes it over; it may have the region's vote on an epoch that all streams cover, which is any order that the
//! chains can bring about, whatever the speeds.
//!
//! What a site does is a function of how much of each stream it knows. So instead of sites that learn step by step, each property looks
//! at all combinations of prefixes: a site may know any of them.

use rhumb_catenae::chain::server_of;
use rhumb_catenae::epoch::Epoch;
use rhumb_catenae::ledger::Ledger;
use rhumb_catenae::message::{Identifier, Order};
use rhumb_catenae::speculation::{Conflicts, Speculation, Visit};
use rhumb_catenae::stream_id::StreamId;
use rhumb_catenae::validation::{Execution, Votes};
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::{Key, RegionId};
use stateright::{Model, Property};
use std::collections::{BTreeMap, BTreeSet};

const REGIONS: usize = 3;
const SERVERS: u16 = 3;
/// Transactions come in the first two epochs; votes, and what comes too late, in the next.
const EPOCHS: usize = 2;
const ENTRIES: usize = 4;
/// A vote counts in the entry right after its epoch.
const WINDOW: u64 = 1;

/// Sites agree.
pub const AGREEMENT: &str = "what a site has settled, whatever it knows by then, is what all settle";
/// Conflicts are ordered.
const SERIAL: &str = "timestamps tell conflicting transactions apart";
/// Nothing waits for ever.
pub const PROGRESS: &str = "once the votes are in, all is settled";

/// One rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    /// A transaction counts as non-conflicting if nothing that is known already conflicts with it.
    ConflictByTiming,
    /// A vote counts however late it comes.
    LateVoteCounts,
    /// Votes are compared by direct dependencies.
    DirectDependencies,
}

#[derive(Clone, Debug)]
pub struct Epochs {
    broken: Broken,
    /// The epoch in which each region receives its transaction.
    received: [u64; REGIONS],
    /// By the transactions of an epoch: all orders that its chains can bring about.
    orders: BTreeMap<Vec<Identifier>, Vec<Order>>,
}

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Said {
    batch: bool,
    vote: Option<Order>,
}

/// The streams.
pub type State = Vec<Vec<Said>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    region: usize,
    said: Said,
}

impl Epochs {
    pub fn new(received: [u64; REGIONS], broken: Broken) -> Epochs {
        let mut model = Epochs { broken, received, orders: BTreeMap::new() };
        for epoch in 1..=EPOCHS as u64 {
            let there: Vec<usize> = (0..REGIONS).filter(|&region| received[region] == epoch).collect();
            for subset in 0..1_usize << there.len() {
                let regions: Vec<usize> =
                    there.iter().enumerate().filter(|(bit, _)| subset >> bit & 1 == 1).map(|(_, region)| *region).collect();
                let transactions: Vec<(Identifier, Transaction)> = regions.into_iter().map(|region| transaction(region, epoch)).collect();
                let names = transactions.iter().map(|(identifier, _)| *identifier).collect();
                model.orders.insert(names, possible_orders(Epoch(epoch), transactions));
            }
        }
        model
    }

    /// The transactions of an epoch, as agreed on.
    fn transactions(&self, state: &State, epoch: u64) -> Vec<(Identifier, Transaction)> {
        let has = |region: &usize| state[*region].get(epoch as usize - 1).is_some_and(|said| said.batch);
        (0..REGIONS).filter(has).map(|region| transaction(region, epoch)).collect()
    }

    /// What a site settles that knows so many entries of each stream: the depths, by transaction; and what it cannot settle yet.
    fn settle(&self, state: &State, known: [usize; REGIONS]) -> (BTreeMap<Identifier, u64>, usize) {
        let mut ledger = Ledger::default();
        let complete = *known.iter().min().expect("three regions") as u64;
        for epoch in 1..=complete.min(EPOCHS as u64) {
            let conflicts = ledger.register(self.transactions(state, epoch));
            let votes = self.votes(state, known, epoch);
            let read = if self.broken == Broken::DirectDependencies { Execution::of_direct } else { Execution::of };
            let verdicts = votes.verdicts_by(&conflicts, REGIONS, read);
            for (identifier, verdict) in &verdicts {
                if let Some(predecessors) = verdict.predecessors(&conflicts[identifier], &verdicts, |other| other < *identifier) {
                    ledger.place(*identifier, predecessors);
                }
            }
        }
        let mut settled = BTreeMap::new();
        while let Some((identifier, depth, _)) = ledger.take_ready() {
            ledger.settle(identifier, depth);
            settled.insert(identifier, depth);
        }
        if self.broken == Broken::ConflictByTiming {
            self.settle_by_timing(state, known, &mut settled);
        }
        (settled, ledger.len())
    }

    /// A region that knows no other transaction of the epoch takes its own for one without conflict.
    fn settle_by_timing(&self, state: &State, known: [usize; REGIONS], settled: &mut BTreeMap<Identifier, u64>) {
        for region in 0..REGIONS {
            let epoch = self.received[region];
            let knows = |of: usize| known[of] >= epoch as usize && state[of][epoch as usize - 1].batch;
            if knows(region) && (0..REGIONS).filter(|of| *of != region && self.received[*of] == epoch).all(|of| !knows(of)) {
                settled.insert(transaction(region, epoch).0, 0);
            }
        }
    }

    fn votes(&self, state: &State, known: [usize; REGIONS], epoch: u64) -> Votes {
        let mut votes = Votes::default();
        for region in 0..REGIONS {
            let of = RegionId(region as u16);
            let late = if self.broken == Broken::LateVoteCounts { u64::MAX } else { epoch + WINDOW };
            for (place, said) in (1..).zip(&state[region][..known[region]]) {
                if let Some(order) = said.vote.clone().filter(|order| order.epoch == Epoch(epoch) && place <= late) {
                    votes.cast(of, order);
                }
            }
            if known[region] as u64 >= epoch + WINDOW {
                votes.close(of);
            }
        }
        votes
    }

    /// All that a site may know.
    fn prefixes(state: &State) -> impl Iterator<Item = [usize; REGIONS]> + use<> {
        let [a, b, c] = [state[0].len(), state[1].len(), state[2].len()];
        (0..=a).flat_map(move |a| (0..=b).flat_map(move |b| (0..=c).map(move |c| [a, b, c])))
    }

    fn all(state: &State) -> [usize; REGIONS] {
        [state[0].len(), state[1].len(), state[2].len()]
    }

    fn agrees(&self, state: &State) -> bool {
        let (all, _) = self.settle(state, Epochs::all(state));
        Epochs::prefixes(state).all(|known| {
            let (settled, _) = self.settle(state, known);
            settled.iter().all(|(identifier, depth)| all.get(identifier).is_none_or(|other| other == depth))
                && (self.broken == Broken::ConflictByTiming || settled.keys().all(|identifier| all.contains_key(identifier)))
        })
    }

    fn is_serial(&self, state: &State) -> bool {
        let (settled, _) = self.settle(state, Epochs::all(state));
        let places: BTreeSet<(Epoch, u64)> = settled.iter().map(|(identifier, depth)| (identifier.epoch, *depth)).collect();
        // All three conflict with one another.
        places.len() == settled.len()
    }

    fn is_done(&self, state: &State) -> bool {
        let votes_are_in = state.iter().all(|stream| stream.len() as u64 > EPOCHS as u64 + WINDOW - 1);
        !votes_are_in || self.settle(state, Epochs::all(state)).1 == 0
    }
}

/// The transaction that a region receives: it writes two of three keys.
fn transaction(region: usize, epoch: u64) -> (Identifier, Transaction) {
    let write = |server: usize| Operation::Write { key: key(server as u16 % SERVERS), value: "v".into() };
    let identifier = Identifier { epoch: Epoch(epoch), stream: StreamId::first(RegionId(region as u16)), place: 0 };
    (identifier, Transaction::new(vec![write(region), write(region + 1)]))
}

/// A key on each chain server.
fn key(server: u16) -> Key {
    let mut names = (0..).map(|number: u32| Key::from(format!("k{number}").as_str()));
    names.find(|key| server_of(key, SERVERS) == server).expect("a hash reaches every server")
}

/// Every order that the chains of an epoch can bring about, by every way to order their visits.
fn possible_orders(epoch: Epoch, transactions: Vec<(Identifier, Transaction)>) -> Vec<Order> {
    let footprints: BTreeMap<Identifier, Footprint> = transactions.iter().map(|(id, transaction)| (*id, transaction.footprint())).collect();
    let conflicts: Conflicts = Ledger::default().register(transactions);
    if conflicts.is_empty() {
        return Vec::new();
    }
    let (first, visits) = Speculation::begin(epoch, SERVERS, &conflicts, &footprints);
    let mut found: Vec<Order> = Vec::new();
    let mut open: Vec<(Speculation, Vec<Visit>)> = vec![(first, visits)];
    while let Some((speculation, due)) = open.pop() {
        if let Some(order) = speculation.order()
            && !found.contains(&order)
        {
            found.push(order);
        }
        for index in 0..due.len() {
            let (mut next, mut due) = (speculation.clone(), due.clone());
            let visit = due.remove(index);
            due.extend(next.visit(visit));
            open.push((next, due));
        }
    }
    found
}

impl Model for Epochs {
    type State = State;
    type Action = Append;

    fn init_states(&self) -> Vec<State> {
        vec![vec![Vec::new(); REGIONS]]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Append>) {
        let complete = state.iter().map(Vec::len).min().expect("three regions") as u64;
        for (region, stream) in state.iter().enumerate().filter(|(_, stream)| stream.len() < ENTRIES) {
            let next = stream.len() as u64 + 1;
            let voted: BTreeSet<Epoch> = stream.iter().filter_map(|said| said.vote.as_ref().map(|order| order.epoch)).collect();
            let mut votes = vec![None];
            for epoch in (1..=complete.min(EPOCHS as u64)).filter(|epoch| *epoch < next && !voted.contains(&Epoch(*epoch))) {
                // A vote that is late by more says nothing more.
                if next <= epoch + WINDOW + 1 {
                    let names: Vec<Identifier> = self.transactions(state, epoch).into_iter().map(|(identifier, _)| identifier).collect();
                    votes.extend(self.orders[&names].iter().cloned().map(Some));
                }
            }
            for vote in votes {
                if self.received[region] == next {
                    actions.push(Append { region, said: Said { batch: true, vote: vote.clone() } });
                }
                actions.push(Append { region, said: Said { batch: false, vote } });
            }
        }
    }

    fn next_state(&self, last: &State, Append { region, said }: Append) -> Option<State> {
        let mut state = last.clone();
        state[region].push(said);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(AGREEMENT, |model: &Epochs, state: &State| model.agrees(state)),
            Property::always(SERIAL, |model: &Epochs, state: &State| model.is_serial(state)),
            Property::always(PROGRESS, |model: &Epochs, state: &State| model.is_done(state)),
            Property::sometimes("all three are settled one after the other", |model: &Epochs, state: &State| {
                model.settle(state, Epochs::all(state)).0.len() == 3
            }),
        ]
    }
}
