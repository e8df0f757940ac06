//! Three transactions of TPC-C as a list of rows to read at once and a list of rows to write.
//!
//! Every object is as likely as any other, for "no hot spots" is what the paper says. So nobody writes the one warehouse or the ten
//! districts: orders and payments are numbered by the worker, and a payment is booked on its customer alone. New-Orders conflict in their
//! stock entries.

use super::parameters as p;
use crate::draft::Draft;
use rhumb_core::{Key, Rng, Span, Value};
use std::collections::BTreeSet;

/// What a worker draws its transactions from.
#[derive(Clone, Debug)]
pub(super) struct Transactions {
    read_percent: u64,
    /// Makes the numbers of its orders its own.
    worker: u64,
    orders: u64,
    rng: Rng,
}

impl Transactions {
    pub(super) fn new(read_percent: u64, worker: u64, rng: Rng) -> Transactions {
        Transactions { read_percent, worker, orders: 0, rng }
    }

    /// How long a worker thinks before the next one.
    pub(super) fn think(&mut self, most: Span) -> Span {
        Span::from_micros(self.rng.below(most.as_micros() + 1))
    }

    pub(super) fn draw(&mut self) -> Draft {
        let district = self.rng.below(p::DISTRICTS);
        let customer = self.rng.below(p::CUSTOMERS);
        let lines = self.rng.between(p::LINES.0, p::LINES.1);
        if self.rng.below(100) < self.read_percent {
            order_status(district, customer, lines)
        } else if self.rng.chance(0.5) {
            self.new_order(district, customer, lines)
        } else {
            self.payment(district, customer)
        }
    }

    /// TPC-C 2.5: reads the warehouse, the district and the customer; writes the customer and its history.
    fn payment(&mut self, district: u64, customer: u64) -> Draft {
        self.orders += 1;
        let customer = key(b'c', &[district, customer]);
        let reads = vec![key(b'w', &[0]), key(b'd', &[district]), customer.clone()];
        Draft { reads, writes: vec![write(customer, 100), write(key(b'h', &[self.worker, self.orders]), 46)] }
    }

    /// TPC-C 2.4: reads the warehouse, the district, the customer, the items and their stock; writes the stock, the order, its line
    /// in the queue of new orders, and its lines.
    fn new_order(&mut self, district: u64, customer: u64, lines: u64) -> Draft {
        self.orders += 1;
        let order = [district, self.worker, self.orders];
        let mut items = BTreeSet::new();
        while items.len() < lines as usize {
            items.insert(self.rng.below(p::STOCK));
        }
        let mut reads = vec![key(b'w', &[0]), key(b'd', &[district]), key(b'c', &[district, customer])];
        let mut writes = vec![write(key(b'o', &order), 24), write(key(b'n', &order), 8)];
        for (line, item) in (1..).zip(items) {
            reads.push(key(b'i', &[item]));
            reads.push(key(b's', &[item]));
            writes.push(write(key(b's', &[item]), 100));
            writes.push(write(key(b'l', &[order[0], order[1], order[2], line]), 54));
        }
        Draft { reads, writes }
    }
}

/// TPC-C 2.6: reads the customer, the last order and its lines.
fn order_status(district: u64, customer: u64, lines: u64) -> Draft {
    let order = [district, customer];
    let head = [key(b'c', &order), key(b'o', &order)];
    Draft { reads: head.into_iter().chain((1..=lines).map(|line| key(b'l', &[district, customer, line]))).collect(), writes: Vec::new() }
}

/// A row of so many bytes.
fn write(key: Key, bytes: usize) -> (Key, Option<Value>) {
    (key, Some(Value::new(vec![b'x'; bytes])))
}

/// A table's letter and numbers.
fn key(table: u8, numbers: &[u64]) -> Key {
    Key::new(std::iter::once(table).chain(numbers.iter().flat_map(|number| number.to_be_bytes())).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_of_a_hundred_only_read() {
        let mut transactions = Transactions::new(20, 7, Rng::seeded(1));
        let drafts: Vec<Draft> = (0..2_000).map(|_| transactions.draw()).collect();
        let reading = drafts.iter().filter(|draft| draft.writes.is_empty()).count();
        assert!((340..460).contains(&reading), "{reading}");
        for draft in drafts.into_iter().filter(|draft| draft.writes.len() != 2) {
            let lines = if draft.writes.is_empty() { draft.reads.len() - 2 } else { (draft.writes.len() - 2) / 2 };
            assert!((5..=15).contains(&lines), "{lines}");
        }
    }

    #[test]
    fn new_orders_of_different_workers_meet_in_the_stock_alone() {
        let written = |worker| {
            let mut transactions = Transactions::new(0, worker, Rng::seeded(1));
            transactions.new_order(3, 4, 5).writes.into_iter().map(|(key, _)| key).collect::<BTreeSet<Key>>()
        };
        let (one, other) = (written(1), written(2));
        let common: Vec<&Key> = one.intersection(&other).collect();
        assert_eq!(common.len(), (one.len() - 2) / 2);
        assert!(common.iter().all(|key| key.0.starts_with(b"s")));
    }
}
