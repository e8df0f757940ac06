//! What clients ask: the micro-benchmark of section VII.C, that of section III.B, and two transactions of TPC-C as lists of operations.
//!
//! A list names all its keys beforehand, so an order's number cannot be read from its district first: clients number their orders
//! themselves, and New-Order still adds one to the district's counter, which is where its conflicts are.

use super::parameters as p;
use rhumb_bench::workloads::tpcc::{NuRand, Scale};
use rhumb_bench::workloads::ycsb::distribution::Zipf;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_commit::one_shot::{Freshness, Request};
use rhumb_core::{Key, Rng, Value};
use std::collections::BTreeSet;

/// How often records are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skew {
    /// All alike.
    Uniform,
    /// By Zipf's law with this exponent.
    Zipf(u8),
}

/// What clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// Reads of one to five of 100,000 records.
    ReadOnly(Skew),
    /// One to five of 100,000 records, each read, written, or read and written.
    ReadWrite(Skew),
    /// One to four of 10,000 records, each read or written: section III.B.
    Speculation(Skew),
    /// TPC-C's New-Order with so many warehouses.
    NewOrder(u64),
    /// TPC-C's Order-Status with so many warehouses.
    OrderStatus(u64),
}

impl Skew {
    /// Its name in tables and plots.
    pub fn name(self) -> String {
        match self {
            Skew::Uniform => "uniform".into(),
            Skew::Zipf(exponent) => format!("zipf {exponent}"),
        }
    }
}

impl Workload {
    /// Its name in tables and plots.
    pub fn name(self) -> String {
        match self {
            Workload::ReadOnly(skew) => format!("read-only, {}", skew.name()),
            Workload::ReadWrite(skew) => format!("read-write, {}", skew.name()),
            Workload::Speculation(skew) => skew.name(),
            Workload::NewOrder(warehouses) => format!("New-Order, {warehouses} warehouses"),
            Workload::OrderStatus(warehouses) => format!("Order-Status, {warehouses} warehouses"),
        }
    }
}

/// Draws what a client asks next.
pub(super) struct Draw {
    workload: Workload,
    rng: Rng,
    zipf: Option<Zipf>,
    nu_rand: NuRand,
    /// Makes the numbers of its orders its own.
    client: u64,
    orders: u64,
}

impl Draw {
    pub(super) fn new(workload: Workload, client: u64, mut rng: Rng) -> Draw {
        let zipf = match workload {
            Workload::ReadOnly(Skew::Zipf(exponent)) | Workload::ReadWrite(Skew::Zipf(exponent)) => {
                Some(Zipf::new(p::RECORDS, f64::from(exponent)))
            }
            Workload::Speculation(Skew::Zipf(exponent)) => Some(Zipf::new(p::RECORDS_OF_FIGURE_1, f64::from(exponent))),
            _ => None,
        };
        // One constant for all clients, as the standard asks for.
        let nu_rand = NuRand::for_run(Scale::conforming(1), &mut Rng::seeded(1));
        Draw { workload, rng: rng.fork(), zipf, nu_rand, client, orders: 0 }
    }

    /// What to ask next.
    pub(super) fn next(&mut self) -> Request {
        match self.workload {
            Workload::ReadOnly(_) => {
                let keys = self.records(p::RECORDS, p::RECORDS_PER_TXN);
                Request::Read { keys, ranges: Vec::new(), reverse: false, freshness: Freshness::Settled }
            }
            Workload::ReadWrite(_) => {
                let keys = self.records(p::RECORDS, p::RECORDS_PER_TXN);
                let operations = keys.into_iter().flat_map(|key| match self.rng.below(3) {
                    0 => vec![read(key)],
                    1 => vec![write(key)],
                    _ => vec![read(key.clone()), write(key)],
                });
                Request::Run(Transaction::new(operations.collect()))
            }
            Workload::Speculation(_) => {
                let keys = self.records(p::RECORDS_OF_FIGURE_1, p::RECORDS_PER_TXN_OF_FIGURE_1);
                let operations = keys.into_iter().map(|key| if self.rng.chance(0.5) { read(key) } else { write(key) });
                Request::Run(Transaction::new(operations.collect()))
            }
            Workload::NewOrder(warehouses) => Request::Run(self.new_order(warehouses)),
            Workload::OrderStatus(warehouses) => {
                Request::Read { keys: self.order_status(warehouses), ranges: Vec::new(), reverse: false, freshness: Freshness::Settled }
            }
        }
    }

    fn records(&mut self, records: u64, most: u64) -> Vec<Key> {
        let count = self.rng.between(1, most) as usize;
        let mut chosen = BTreeSet::new();
        while chosen.len() < count {
            chosen.insert(match &self.zipf {
                Some(zipf) => zipf.sample(&mut self.rng) - 1,
                None => self.rng.below(records),
            });
        }
        chosen.into_iter().map(|record| key('r', &[record])).collect()
    }

    /// TPC-C 2.4: reads the warehouse, the customer and the items, counts the district's orders, takes the items from stock, and writes
    /// the order, its line in the queue of new orders, and its lines.
    fn new_order(&mut self, warehouses: u64) -> Transaction {
        let (warehouse, district) = (self.rng.below(warehouses), self.rng.below(p::DISTRICTS));
        let customer = self.nu_rand.customer(&mut self.rng) as u64;
        self.orders += 1;
        let order = [warehouse, district, self.client, self.orders];
        let mut operations = vec![
            read(key('w', &[warehouse])),
            Operation::Add { key: key('d', &[warehouse, district]), amount: 1 },
            read(key('c', &[warehouse, district, customer])),
            Operation::Insert { key: key('o', &order), value: row(24) },
            Operation::Insert { key: key('n', &order), value: row(8) },
        ];
        let lines = self.rng.between(p::LINES.0, p::LINES.1) as usize;
        let mut items = BTreeSet::new();
        while items.len() < lines {
            items.insert(self.nu_rand.item(&mut self.rng) as u64);
        }
        for (line, item) in (1..).zip(items) {
            let remote = self.rng.below(100) < p::REMOTE_PERCENT;
            let supplier = if remote { self.rng.below(warehouses) } else { warehouse };
            operations.push(read(key('i', &[item])));
            operations.push(Operation::Add { key: key('s', &[supplier, item]), amount: -(self.rng.between(1, 10) as i64) });
            operations.push(Operation::Insert { key: key('l', &[order[0], order[1], order[2], order[3], line]), value: row(54) });
        }
        Transaction::new(operations)
    }

    /// TPC-C 2.6: the customer, the last order and its lines.
    fn order_status(&mut self, warehouses: u64) -> Vec<Key> {
        let (warehouse, district) = (self.rng.below(warehouses), self.rng.below(p::DISTRICTS));
        let customer = self.nu_rand.customer(&mut self.rng) as u64;
        let lines = self.rng.between(p::LINES.0, p::LINES.1);
        let order = [warehouse, district, customer];
        let head = [key('c', &order), key('o', &order)];
        head.into_iter().chain((1..=lines).map(|line| key('l', &[order[0], order[1], order[2], line]))).collect()
    }
}

fn read(key: Key) -> Operation {
    Operation::Read { key }
}

fn write(key: Key) -> Operation {
    Operation::Write { key, value: row(100) }
}

/// A row of so many bytes.
fn row(bytes: usize) -> Value {
    Value::new(vec![b'x'; bytes])
}

/// A table's letter and numbers.
fn key(table: char, numbers: &[u64]) -> Key {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    Key::from(format!("{table}{}", words.join(".")).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Workload; 7] = [
        Workload::ReadOnly(Skew::Zipf(1)),
        Workload::ReadWrite(Skew::Uniform),
        Workload::ReadWrite(Skew::Zipf(1)),
        Workload::Speculation(Skew::Zipf(2)),
        Workload::Speculation(Skew::Uniform),
        Workload::NewOrder(4),
        Workload::OrderStatus(4),
    ];

    #[test]
    fn every_list_is_a_transaction() {
        for workload in ALL {
            let mut draw = Draw::new(workload, 7, Rng::seeded(1));
            for _ in 0..200 {
                match draw.next() {
                    Request::Run(transaction) => assert_eq!(transaction.validate(), Ok(()), "{workload:?}"),
                    Request::Read { keys, .. } => assert!((1..=17).contains(&keys.len()), "{workload:?}"),
                    Request::Admin(none) => match none {},
                }
            }
        }
    }

    #[test]
    fn a_new_order_has_three_operations_per_line_and_conflicts_in_its_district() {
        let mut draw = Draw::new(Workload::NewOrder(1), 7, Rng::seeded(1));
        let Request::Run(transaction) = draw.next() else { panic!("it writes") };
        assert!((5 + 15..=5 + 45).contains(&transaction.operations.len()));
        let counts = transaction.operations.iter().filter(|it| it.key().is_some_and(|key| key.0.starts_with(b"d")) && it.writes());
        assert_eq!(counts.count(), 1);
    }
}
