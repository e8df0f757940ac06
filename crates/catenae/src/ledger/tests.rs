//! The ledger against the rule that it stands for, and the work that it takes.

use super::*;
use crate::stream_id::StreamId;
use proptest::prelude::*;
use rhumb_commit::one_shot::operation::Operation;
use rhumb_core::{Key, KeyRange, RegionId};

fn id(epoch: u64, place: u16) -> Identifier {
    Identifier { epoch: Epoch(epoch), stream: StreamId::first(RegionId(0)), place }
}

fn writes(keys: &[&str]) -> Transaction {
    Transaction::new(keys.iter().map(|key| Operation::Write { key: (*key).into(), value: "v".into() }).collect())
}

fn run(ledger: &mut Ledger) -> Vec<(Identifier, u64)> {
    let mut ran = Vec::new();
    while let Some((identifier, depth, _)) = ledger.take_ready() {
        ledger.settle(identifier, depth);
        ran.push((identifier, depth));
    }
    ran
}

#[test]
fn without_conflict_a_place_is_known_at_once() {
    let mut ledger = Ledger::default();
    assert!(ledger.register(vec![(id(1, 0), writes(&["a"])), (id(1, 1), writes(&["b"]))]).is_empty());
    assert_eq!(run(&mut ledger), [(id(1, 0), 0), (id(1, 1), 0)]);
    assert!(ledger.is_empty());
}

#[test]
fn conflicts_with_earlier_epochs_wait_and_within_an_epoch_need_a_place() {
    let mut ledger = Ledger::default();
    let conflicts = ledger.register(vec![(id(1, 0), writes(&["a"])), (id(1, 1), writes(&["a", "b"]))]);
    assert_eq!(conflicts, [(id(1, 0), [id(1, 1)].into()), (id(1, 1), [id(1, 0)].into())].into());
    assert!(ledger.register(vec![(id(2, 0), writes(&["b"]))]).is_empty());
    assert_eq!(run(&mut ledger), []);
    ledger.place(id(1, 0), [id(1, 1)].into());
    assert_eq!(run(&mut ledger), []);
    ledger.place(id(1, 1), [].into());
    assert_eq!(run(&mut ledger), [(id(1, 1), 0), (id(1, 0), 1), (id(2, 0), 0)]);
}

#[test]
fn a_scan_waits_for_a_write_into_its_range() {
    let scan = Transaction::new(vec![Operation::Scan { range: KeyRange::prefix(b"k"), limit: 9 }]);
    let mut ledger = Ledger::default();
    let conflicts = ledger.register(vec![(id(1, 0), writes(&["k7"])), (id(1, 1), scan.clone()), (id(1, 2), writes(&["z"]))]);
    assert_eq!(conflicts.len(), 2);
    let mut ledger = Ledger::default();
    assert_eq!(ledger.register(vec![(id(1, 0), scan), (id(1, 1), writes(&["k7"]))]).len(), 2);
}

/// The rule, said plainly: each transaction is compared with every other.
#[derive(Default)]
struct Reference {
    pending: BTreeMap<Identifier, (Footprint, Option<BTreeSet<Identifier>>)>,
    ready: VecDeque<Identifier>,
}

impl Reference {
    fn conflicting(&self, with: Identifier, footprint: &Footprint) -> impl Iterator<Item = Identifier> {
        let others = self.pending.iter().filter(move |(other, (theirs, _))| **other != with && theirs.conflicts(footprint));
        others.map(|(other, _)| *other)
    }

    fn register(&mut self, transactions: &[(Identifier, Transaction)]) -> Conflicts {
        let mut conflicts = Conflicts::new();
        for (identifier, transaction) in transactions {
            let footprint = transaction.footprint();
            for other in self.conflicting(*identifier, &footprint).filter(|other| other.epoch == identifier.epoch) {
                conflicts.entry(*identifier).or_default().insert(other);
                conflicts.entry(other).or_default().insert(*identifier);
            }
            self.pending.insert(*identifier, (footprint, None));
        }
        for (identifier, _) in transactions.iter().filter(|(identifier, _)| !conflicts.contains_key(identifier)) {
            self.place(*identifier, BTreeSet::new());
        }
        conflicts
    }

    fn is_ready(&self, identifier: Identifier) -> bool {
        let (footprint, predecessors) = &self.pending[&identifier];
        let waits = self.conflicting(identifier, footprint).any(|other| other.epoch < identifier.epoch);
        !waits && predecessors.as_ref().is_some_and(|before| before.iter().all(|before| !self.pending.contains_key(before)))
    }

    fn place(&mut self, identifier: Identifier, predecessors: BTreeSet<Identifier>) {
        self.pending.get_mut(&identifier).expect("registered").1 = Some(predecessors);
        if self.is_ready(identifier) {
            self.ready.push_back(identifier);
        }
    }

    fn settle(&mut self, identifier: Identifier) {
        let waited: Vec<Identifier> = self.pending.keys().copied().filter(|other| !self.is_ready(*other)).collect();
        self.pending.remove(&identifier);
        let freed = waited.into_iter().filter(|other| *other != identifier && self.is_ready(*other));
        self.ready.extend(freed.collect::<Vec<Identifier>>());
    }
}

fn operations() -> impl Strategy<Value = Transaction> {
    let key = prop::sample::select(vec!["a", "b", "k", "k1", "k2", "k2x", "l"]);
    let range = prop_oneof![
        prop::sample::select(vec!["k", "k2", "l", ""]).prop_map(|prefix| KeyRange::prefix(prefix.as_bytes())),
        (key.clone(), key.clone()).prop_map(|(start, end)| KeyRange::new(start.into(), end.into())),
    ];
    let operation = prop_oneof![
        3 => key.clone().prop_map(|key| Operation::Read { key: key.into() }),
        3 => key.prop_map(|key| Operation::Write { key: key.into(), value: "v".into() }),
        1 => range.prop_map(|range| Operation::Scan { range, limit: 9 }),
    ];
    prop::collection::vec(operation, 1..4).prop_map(Transaction::new)
}

/// Some of the conflicting ones that have no place yet, placed after those of lower identifiers; or one that is ready, run.
fn act(choice: u8, open: &mut Vec<(Identifier, BTreeSet<Identifier>)>, ledger: &mut Ledger, reference: &mut Reference) {
    if choice.is_multiple_of(2) && !open.is_empty() {
        let (identifier, others) = open.remove(usize::from(choice / 2) % open.len());
        let before: BTreeSet<Identifier> = others.into_iter().filter(|other| *other < identifier).collect();
        ledger.place(identifier, before.clone());
        reference.place(identifier, before);
        return;
    }
    let ready = ledger.take_ready().map(|(identifier, depth, _)| (identifier, depth));
    assert_eq!(ready.map(|(identifier, _)| identifier), reference.ready.pop_front());
    if let Some((identifier, depth)) = ready {
        ledger.settle(identifier, depth);
        reference.settle(identifier);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn transactions_become_ready_in_the_order_of_the_plain_rule(
        epochs in prop::collection::vec((prop::collection::vec(operations(), 0..6), prop::collection::vec(any::<u8>(), 0..8)), 1..6),
    ) {
        let (mut ledger, mut reference, mut open) = (Ledger::default(), Reference::default(), Vec::new());
        for (epoch, (transactions, choices)) in (1..).zip(epochs) {
            let named: Vec<_> = (0..).zip(transactions).map(|(place, transaction)| (id(epoch, place), transaction)).collect();
            let conflicts = reference.register(&named);
            prop_assert_eq!(&ledger.register(named), &conflicts);
            open.extend(conflicts);
            choices.into_iter().for_each(|choice| act(choice, &mut open, &mut ledger, &mut reference));
        }
        while !open.is_empty() {
            act(0, &mut open, &mut ledger, &mut reference);
        }
        while !reference.ready.is_empty() {
            act(1, &mut open, &mut ledger, &mut reference);
        }
        prop_assert!(ledger.take_ready().is_none() && ledger.is_empty() && reference.pending.is_empty());
        prop_assert!(ledger.accesses.is_empty());
    }
}

const MANY: usize = 10_000;

/// The work per transaction of so many that wait for a first one, from their coming until all are settled.
fn work_per_transaction(first: Transaction, each: impl Fn(usize) -> Transaction, per_epoch: usize) -> usize {
    let mut ledger = Ledger::default();
    let all: Vec<usize> = (0..MANY).collect();
    let ((), work) = rhumb_core::work::measure(|| {
        ledger.register(vec![(id(1, 0), first)]);
        for (epoch, these) in (2..).zip(all.chunks(per_epoch)) {
            let named = (0..).zip(these).map(|(place, number)| (id(epoch, place), each(*number))).collect();
            ledger.register(named);
        }
        assert_eq!(ledger.len(), MANY + 1);
        assert_eq!(run(&mut ledger).len(), MANY + 1);
    });
    work as usize / MANY
}

#[test]
fn many_transactions_on_one_table_cost_the_same_each() {
    let read = |key: &str| Operation::Read { key: key.into() };
    let write = |key: String| Operation::Write { key: Key::new(key.into_bytes()), value: "v".into() };
    let on_a_table = |number: usize| Transaction::new(vec![read("descriptor"), write(format!("row{number:05}"))]);
    assert!(work_per_transaction(writes(&["descriptor"]), on_a_table, 1_000) <= 8, "all read the table's descriptor");
    let of_one_row = |_| writes(&["row"]);
    assert!(work_per_transaction(writes(&["row"]), of_one_row, 1) <= 8, "all write one row, an epoch each");
    let counting = |number: usize| match number % 2 {
        0 => Transaction::new(vec![Operation::Scan { range: KeyRange::prefix(b"row"), limit: 9 }]),
        _ => Transaction::new(vec![write(format!("row{number:05}"))]),
    };
    let first = Transaction::new(vec![Operation::Scan { range: KeyRange::prefix(b"row"), limit: 9 }, write("row".into())]);
    assert!(work_per_transaction(first, counting, 1) <= 8, "all scan the table or write into it, an epoch each");
    let apart = |number: usize| {
        let range = KeyRange::prefix(format!("customer{number:05}").as_bytes());
        Transaction::new(vec![read("descriptor"), Operation::Scan { range, limit: 9 }, write(format!("customer{number:05}x"))])
    };
    assert!(work_per_transaction(writes(&["descriptor"]), apart, 1_000) <= 16, "each scans what it writes into");
}
