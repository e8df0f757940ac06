//! The table against a naive one: no conflicting holders, no ring, all drain.

use super::*;
use proptest::prelude::*;
use rhumb_core::{SiteId, Timestamp};
use std::collections::BTreeMap;

/// Transaction `n`: the smaller, the older.
fn txn(n: u64) -> TxnId {
    TxnId { began: Timestamp::from_bits(n), gateway: SiteId::new(0, 0) }
}

fn shared(key: &str) -> Lock {
    Lock { range: one_key(&key.into()), mode: Mode::Shared }
}

fn exclusive(key: &str) -> Lock {
    Lock { range: one_key(&key.into()), mode: Mode::Exclusive }
}

fn scan(start: &str, end: &str) -> Lock {
    Lock { range: KeyRange::new(start.into(), end.into()), mode: Mode::Shared }
}

/// A table where `asked` was asked for, growing, and granted without a wound.
fn holding(asked: &[(u64, Lock)]) -> WoundWait {
    let mut table = WoundWait::default();
    for (n, lock) in asked {
        assert_eq!(table.request(txn(*n), lock.clone(), Phase::Growing), Ok(vec![Outcome::Granted(txn(*n), lock.clone())]));
    }
    table
}

#[test]
fn shared_locks_are_shared_and_exclusive_ones_are_not() {
    let mut table = holding(&[(1, shared("k")), (2, shared("k")), (3, scan("a", "z"))]);
    assert_eq!(table.request(txn(4), exclusive("k"), Phase::Growing), Ok(vec![]), "a younger one waits");
    assert_eq!(table.waits_for(), BTreeSet::from([(txn(4), txn(1)), (txn(4), txn(2)), (txn(4), txn(3))]));
    assert_eq!(table.release(txn(1)), []);
    assert_eq!(table.release(txn(3)), []);
    assert_eq!(table.release(txn(2)), [Outcome::Granted(txn(4), exclusive("k"))]);
    assert!(table.covers(txn(4), &shared("k")) && !table.is_waiting(txn(4)));
}

#[test]
fn an_older_transaction_wounds_younger_holders() {
    let mut table = holding(&[(5, shared("k")), (6, scan("a", "z")), (6, shared("zz"))]);
    let outcomes = table.request(txn(1), exclusive("k"), Phase::Growing);
    assert_eq!(outcomes, Ok(vec![Outcome::Wounded(txn(5)), Outcome::Wounded(txn(6)), Outcome::Granted(txn(1), exclusive("k"))]));
    assert_eq!(table.held(txn(6)).count(), 0, "the wounded lose all their locks, not only those in the way");
    assert_eq!(table.request(txn(5), shared("other"), Phase::Growing), Err(Refused::Wounded));
    assert_eq!(table.release(txn(5)), []);
    assert!(!table.is_wounded(txn(5)));
}

#[test]
fn who_waited_for_the_wounded_is_served() {
    let mut table = holding(&[(5, shared("k")), (5, exclusive("x"))]);
    assert_eq!(table.request(txn(7), shared("x"), Phase::Growing), Ok(vec![]));
    let outcomes = table.request(txn(1), exclusive("k"), Phase::Growing);
    let granted = [Outcome::Granted(txn(1), exclusive("k")), Outcome::Granted(txn(7), shared("x"))];
    assert_eq!(outcomes, Ok([vec![Outcome::Wounded(txn(5))], granted.to_vec()].concat()));
}

#[test]
fn a_prepared_transaction_is_waited_for() {
    let mut table = holding(&[(5, exclusive("k"))]);
    table.prepare(txn(5));
    assert_eq!(table.request(txn(1), exclusive("k"), Phase::Growing), Ok(vec![]));
    assert_eq!(table.request(txn(2), scan("a", "z"), Phase::Preparing), Err(Refused::OlderInTheWay), "transaction 1 waits and is older");
    assert_eq!(table.release(txn(5)), [Outcome::Granted(txn(1), exclusive("k"))]);
}

#[test]
fn a_preparing_transaction_never_waits_for_an_older_one() {
    let mut table = holding(&[(1, shared("k")), (9, shared("l"))]);
    assert_eq!(table.request(txn(5), exclusive("k"), Phase::Preparing), Err(Refused::OlderInTheWay));
    table.prepare(txn(9));
    assert_eq!(table.request(txn(5), exclusive("l"), Phase::Preparing), Ok(vec![]), "for a younger prepared one it does");
    let outcomes = table.request(txn(2), shared("l"), Phase::Growing);
    assert_eq!(
        outcomes,
        Ok(vec![Outcome::Wounded(txn(5)), Outcome::Granted(txn(2), shared("l"))]),
        "and is wounded when an older one comes"
    );
}

#[test]
fn a_reader_upgrades_its_lock() {
    let mut table = holding(&[(3, shared("k")), (5, shared("k"))]);
    assert_eq!(table.request(txn(5), exclusive("k"), Phase::Growing), Ok(vec![]), "the younger of two waits");
    let outcomes = table.request(txn(3), exclusive("k"), Phase::Growing);
    assert_eq!(outcomes, Ok(vec![Outcome::Wounded(txn(5)), Outcome::Granted(txn(3), exclusive("k"))]), "the older wounds it");
}

#[test]
fn a_writer_that_waits_is_not_passed_by_younger_readers() {
    let mut table = holding(&[(1, shared("k"))]);
    assert_eq!(table.request(txn(5), exclusive("k"), Phase::Growing), Ok(vec![]));
    assert_eq!(table.request(txn(9), shared("k"), Phase::Growing), Ok(vec![]), "younger: behind the writer");
    assert_eq!(table.request(txn(3), shared("k"), Phase::Growing), Ok(vec![Outcome::Granted(txn(3), shared("k"))]), "older: before it");
    assert_eq!(table.release(txn(1)), []);
    assert_eq!(table.release(txn(3)), [Outcome::Granted(txn(5), exclusive("k"))]);
    assert_eq!(table.release(txn(5)), [Outcome::Granted(txn(9), shared("k"))]);
}

#[test]
fn asking_again_changes_nothing() {
    let mut table = holding(&[(1, scan("a", "z"))]);
    assert_eq!(
        table.request(txn(1), shared("k"), Phase::Growing),
        Ok(vec![Outcome::Granted(txn(1), shared("k"))]),
        "its range covers the key"
    );
    assert_eq!(table.held(txn(1)).count(), 1);
    for _ in 0..2 {
        assert_eq!(table.request(txn(2), exclusive("k"), Phase::Growing), Ok(vec![]));
    }
    assert_eq!(table.release(txn(1)), [Outcome::Granted(txn(2), exclusive("k"))]);
}

#[test]
fn the_queue_is_bounded() {
    let mut table = holding(&[(1, exclusive("k"))]);
    for n in 0..WAITING_MAX as u64 {
        assert_eq!(table.request(txn(2 + n), shared("k"), Phase::Growing), Ok(vec![]));
    }
    assert_eq!(table.request(txn(1_000_000), shared("k"), Phase::Growing), Err(Refused::QueueFull));
    assert_eq!(table.request(txn(1_000_000), shared("l"), Phase::Growing), Ok(vec![Outcome::Granted(txn(1_000_000), shared("l"))]));
}

#[test]
#[should_panic(expected = "was wounded and prepares")]
fn the_wounded_do_not_prepare() {
    let mut table = holding(&[(5, shared("k"))]);
    assert!(table.request(txn(1), exclusive("k"), Phase::Growing).is_ok());
    table.prepare(txn(5));
}

const MANY: usize = 100_000;

fn key(n: usize) -> String {
    format!("key {n:06}")
}

/// How many spans were looked at, for each of so many locks.
fn work_for_each(what: impl FnOnce()) -> f64 {
    rhumb_core::work::measure(what).1 as f64 / MANY as f64
}

#[test]
fn each_lock_of_a_large_transaction_costs_the_same() {
    let mut table = WoundWait::default();
    let ask = |table: &mut WoundWait, mode: Mode, phase: Phase| {
        work_for_each(|| {
            for n in 0..MANY {
                let lock = Lock { range: one_key(&key(n).as_str().into()), mode };
                assert_eq!(table.request(txn(7), lock.clone(), phase), Ok(vec![Outcome::Granted(txn(7), lock)]));
            }
        })
    };
    for (mode, phase) in [(Mode::Shared, Phase::Growing), (Mode::Exclusive, Phase::Preparing), (Mode::Exclusive, Phase::Preparing)] {
        let work = ask(&mut table, mode, phase);
        assert!(work < 20.0, "{work} spans for each");
    }
    table.prepare(txn(7));
    let work = work_for_each(|| assert_eq!(table.release(txn(7)), []));
    assert!(work < 20.0, "{work} spans for each");
    assert_eq!(table.transactions(), BTreeSet::new());
}

#[test]
fn those_who_wait_are_looked_at_once_when_a_large_transaction_ends() {
    let all: Vec<(u64, Lock)> = (0..MANY).map(|n| (1, exclusive(&key(n)))).collect();
    let mut table = holding(&all);
    for n in 0..100 {
        let lock = if n % 2 == 0 { exclusive(&key(n)) } else { scan(&key(n), "zz") };
        assert_eq!(table.request(txn(2 + n as u64), lock, Phase::Growing), Ok(vec![]));
    }
    let mut served = Vec::new();
    let work = work_for_each(|| served = table.release(txn(1)));
    assert!(work < 20.0, "{work} spans for each");
    assert_eq!(served[0], Outcome::Granted(txn(2), exclusive(&key(0))));
    assert!(served.len() > 1, "{served:?}");
}

/// The same table over keys 0 to 7 as lists and bit sets, with every rule looked up in all of them.
#[derive(Clone, Default)]
struct Naive {
    held: BTreeSet<(u64, u8, Mode)>,
    waiting: BTreeSet<(u64, u8, Mode, Phase)>,
    prepared: BTreeSet<u64>,
    wounded: BTreeSet<u64>,
}

impl Naive {
    fn blockers(&self, n: u64, keys: u8, mode: Mode) -> Vec<u64> {
        let mut blockers = Vec::new();
        for &(other, theirs, held) in &self.held {
            if other != n && keys & theirs != 0 && mode.conflicts(held) && (other < n || self.prepared.contains(&other)) {
                blockers.push(other);
            }
        }
        for &(other, theirs, wanted, _) in &self.waiting {
            if other < n && keys & theirs != 0 && mode.conflicts(wanted) {
                blockers.push(other);
            }
        }
        blockers
    }

    fn drop(&mut self, n: u64) {
        self.held.retain(|held| held.0 != n);
        self.waiting.retain(|waits| waits.0 != n);
    }

    /// Grants until nothing more can be granted.
    fn settle(&mut self) {
        while let Some(next) = self.waiting.iter().copied().find(|&(n, keys, mode, _)| self.blockers(n, keys, mode).is_empty()) {
            self.waiting.remove(&next);
            self.held.insert((next.0, next.1, next.2));
        }
    }

    /// False if refused.
    fn request(&mut self, n: u64, keys: u8, mode: Mode, phase: Phase) -> bool {
        if self.wounded.contains(&n) {
            return false;
        }
        let asked_before = self.waiting.iter().any(|waits| (waits.0, waits.1, waits.2) == (n, keys, mode));
        if asked_before || self.held.iter().any(|&(owner, held, strength)| owner == n && keys & !held == 0 && strength >= mode) {
            return true;
        }
        if phase == Phase::Preparing && self.blockers(n, keys, mode).iter().any(|other| *other < n) {
            return false;
        }
        let holders = self.held.iter().map(|&(other, theirs, held)| (other, theirs, held, true));
        let waiters = self.waiting.iter().map(|&(other, theirs, wanted, phase)| (other, theirs, wanted, phase == Phase::Preparing));
        let victims: Vec<u64> = holders
            .chain(waiters)
            .filter(|&(other, theirs, theirs_mode, counts)| {
                counts && other > n && keys & theirs != 0 && mode.conflicts(theirs_mode) && !self.prepared.contains(&other)
            })
            .map(|(other, ..)| other)
            .collect();
        for victim in victims {
            self.drop(victim);
            self.wounded.insert(victim);
        }
        self.waiting.insert((n, keys, mode, phase));
        self.settle();
        true
    }
}

/// Where a transaction stands, over all tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Growing,
    Preparing,
    Over,
}

/// Two tables, as two sites, and their naive doubles.
struct Pair {
    tables: [WoundWait; 2],
    naive: [Naive; 2],
    life: BTreeMap<u64, Life>,
}

fn range(from: u8, to: u8) -> KeyRange {
    if to == from + 1 {
        one_key(&Key::new(vec![b'a' + from]))
    } else {
        KeyRange::new(Key::new(vec![b'a' + from]), Key::new(vec![b'a' + to]))
    }
}

fn bits(from: u8, to: u8) -> u8 {
    (from..to).fold(0, |bits, key| bits | 1 << key)
}

impl Pair {
    fn new(transactions: u64) -> Pair {
        Pair { tables: Default::default(), naive: Default::default(), life: (0..transactions).map(|n| (n, Life::Growing)).collect() }
    }

    fn request(&mut self, at: usize, n: u64, (from, to): (u8, u8), mode: Mode, phase: Phase) {
        let taken = self.tables[at].request(txn(n), Lock { range: range(from, to), mode }, phase).is_ok();
        assert_eq!(taken, self.naive[at].request(n, bits(from, to), mode, phase), "refused alike");
        if !taken {
            self.end(n);
        }
    }

    /// The transaction is over everywhere.
    fn end(&mut self, n: u64) {
        for at in 0..2 {
            self.tables[at].release(txn(n));
            self.naive[at].drop(n);
            self.naive[at].prepared.remove(&n);
            self.naive[at].wounded.remove(&n);
            self.naive[at].settle();
        }
        self.life.insert(n, Life::Over);
    }

    fn waits(&self, n: u64) -> bool {
        self.tables.iter().any(|table| table.is_waiting(txn(n)))
    }

    /// Transaction `n` takes its next step; `what` says which, where there is a choice.
    fn step(&mut self, n: u64, at: usize, keys: (u8, u8), mode: Mode, end: bool) {
        match self.life[&n] {
            Life::Growing if !end => self.request(at, n, keys, mode, Phase::Growing),
            // The first request of a prepare; nothing waits then.
            Life::Growing if !self.waits(n) => {
                self.life.insert(n, Life::Preparing);
                self.request(at, n, keys, Mode::Exclusive, Phase::Preparing);
            }
            Life::Growing => {}
            Life::Preparing => {
                if self.tables[at].is_wounded(txn(n)) || (self.tables.iter().all(|table| table.is_prepared(txn(n))) && end) {
                    self.end(n);
                } else if !self.tables[at].is_waiting(txn(n)) && !self.tables[at].is_prepared(txn(n)) {
                    if end {
                        self.tables[at].prepare(txn(n));
                        self.naive[at].prepared.insert(n);
                    } else {
                        self.request(at, n, keys, mode, Phase::Preparing);
                    }
                }
            }
            Life::Over => {}
        }
    }

    fn check(&self) {
        let mut edges = BTreeSet::new();
        for (table, naive) in self.tables.iter().zip(&self.naive) {
            for n in self.life.keys() {
                let mut held: Vec<(u8, Mode)> = table.held(txn(*n)).map(|lock| (in_bits(&lock.range), lock.mode)).collect();
                held.sort();
                let expected: Vec<(u8, Mode)> = naive.held.iter().filter(|held| held.0 == *n).map(|held| (held.1, held.2)).collect();
                assert_eq!(held, expected, "held by {n}");
                assert_eq!(table.is_waiting(txn(*n)), naive.waiting.iter().any(|waits| waits.0 == *n), "whether {n} waits");
                assert_eq!(table.is_wounded(txn(*n)), naive.wounded.contains(n), "whether {n} is wounded");
            }
            for a in &naive.held {
                for b in &naive.held {
                    assert!(a.0 == b.0 || a.1 & b.1 == 0 || !a.2.conflicts(b.2), "{a:?} and {b:?} are held together");
                }
            }
            edges.extend(table.waits_for());
        }
        assert_acyclic(edges);
    }
}

fn in_bits(range: &KeyRange) -> u8 {
    (0..8).filter(|key| range.contains(&Key::new(vec![b'a' + key]))).fold(0, |bits, key| bits | 1 << key)
}

/// Takes away, again and again, the edges to those who wait for nobody.
fn assert_acyclic(mut edges: BTreeSet<(TxnId, TxnId)>) {
    while !edges.is_empty() {
        let waiting: BTreeSet<TxnId> = edges.iter().map(|edge| edge.0).collect();
        let before = edges.len();
        edges.retain(|edge| waiting.contains(&edge.1));
        assert!(edges.len() < before, "these wait for each other: {edges:?}");
    }
}

type Step = (u64, usize, (u8, u8), bool, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let keys = (0_u8..8, 1_u8..4, 0..3).prop_map(|(from, len, wide)| (from, if wide == 0 { (from + len).min(8) } else { from + 1 }));
    prop::collection::vec((0_u64..7, 0_usize..2, keys, any::<bool>(), any::<bool>()), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_table_does_as_its_naive_double_and_nobody_waits_in_a_ring(steps in steps()) {
        let mut pair = Pair::new(7);
        for (n, at, keys, exclusive, end) in steps {
            pair.step(n, at, keys, if exclusive { Mode::Exclusive } else { Mode::Shared }, end);
            pair.check();
        }
        // Everybody goes on to its end: nothing is stuck.
        for _ in 0..7 * 7 {
            for n in 0..7 {
                for at in 0..2 {
                    if pair.tables[at].is_wounded(txn(n)) {
                        pair.end(n);
                    }
                    pair.step(n, at, (7, 8), Mode::Shared, true);
                }
            }
            pair.check();
        }
        prop_assert!(pair.life.values().all(|life| *life == Life::Over), "{:?}", pair.life);
    }
}
