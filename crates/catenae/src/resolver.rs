//! The transaction resolver of a region: keeps the orders that its chain servers have settled free of cycles.
//!
//! A chain server sees only its own keys. When it puts one transaction before another, the resolver knows what follows from that
//! together with what other servers have settled: the *implicit* dependencies. They arise only where a transaction comes to
//! stand between two others, the structure of the paper's Figure 4; where it does not, there is nothing to work out.
//!
//! Invariant: the order is transitive and has no cycle.
//!
//! Source: section VI.C.

use super::message::Identifier;
use std::collections::{BTreeMap, BTreeSet};

/// The order settled so far among the transactions of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resolver {
    /// By transaction: all that must come before it.
    before: BTreeMap<Identifier, BTreeSet<Identifier>>,
    /// By transaction: all that must come after it.
    after: BTreeMap<Identifier, BTreeSet<Identifier>>,
}

impl Resolver {
    /// True if `first` must come before `second`, directly or by what lies between.
    pub fn is_before(&self, first: Identifier, second: Identifier) -> bool {
        self.after.get(&first).is_some_and(|after| after.contains(&second))
    }

    /// Puts `first` before `second`, and with it all that follows.
    ///
    /// # Panics
    /// If the opposite is settled: a chain server asks before it puts one first.
    pub fn put_before(&mut self, first: Identifier, second: Identifier) {
        assert!(first != second && !self.is_before(second, first), "{first} before {second} would close a cycle");
        if self.is_before(first, second) {
            return;
        }
        let mut firsts = self.before.get(&first).cloned().unwrap_or_default();
        let mut seconds = self.after.get(&second).cloned().unwrap_or_default();
        // Unless one of the two stands between others now, these are just the two themselves.
        firsts.insert(first);
        seconds.insert(second);
        for &one in &firsts {
            self.after.entry(one).or_default().extend(&seconds);
        }
        for &other in &seconds {
            self.before.entry(other).or_default().extend(&firsts);
        }
    }

    /// Rule 2: `transaction` claims to be the next at a chain server where `open`, which it conflicts with there, have not
    /// pre-committed. Puts it before them and returns true, unless one of them must come before it.
    pub fn claim(&mut self, transaction: Identifier, open: impl Iterator<Item = Identifier> + Clone) -> bool {
        let is_next = open.clone().all(|other| !self.is_before(other, transaction));
        if is_next {
            open.for_each(|other| self.put_before(transaction, other));
        }
        is_next
    }

    /// How many transactions must come before this one.
    pub fn rank(&self, transaction: Identifier) -> usize {
        self.before.get(&transaction).map_or(0, BTreeSet::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::Epoch;
    use crate::stream_id::StreamId;
    use rhumb_core::RegionId;

    fn id(place: u16) -> Identifier {
        Identifier { epoch: Epoch(1), stream: StreamId::first(RegionId(0)), place }
    }

    #[test]
    fn a_transaction_between_two_others_orders_them() {
        let mut resolver = Resolver::default();
        resolver.put_before(id(1), id(4));
        resolver.put_before(id(4), id(3));
        assert!(resolver.is_before(id(1), id(3)), "the example of the paper's Figure 3: T1 before T4 before T3");
        assert!(!resolver.is_before(id(3), id(1)));
    }

    #[test]
    fn two_chains_that_meet_become_one() {
        let mut resolver = Resolver::default();
        resolver.put_before(id(1), id(2));
        resolver.put_before(id(3), id(4));
        resolver.put_before(id(2), id(3));
        assert!(resolver.is_before(id(1), id(4)));
        assert_eq!((1..=4).map(|place| resolver.rank(id(place))).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn whoever_claims_first_comes_first_and_may_claim_again() {
        let mut resolver = Resolver::default();
        assert!(resolver.claim(id(2), [id(1), id(3)].into_iter()));
        assert!(!resolver.claim(id(1), [id(2)].into_iter()), "it must come after what it meets");
        assert!(resolver.claim(id(1), [id(3)].into_iter()), "where it does not meet that, it is next");
        assert!(resolver.claim(id(2), [id(1), id(3)].into_iter()));
    }

    #[test]
    #[should_panic(expected = "would close a cycle")]
    fn a_cycle_is_a_bug_of_a_chain_server() {
        let mut resolver = Resolver::default();
        resolver.put_before(id(1), id(2));
        resolver.put_before(id(2), id(3));
        resolver.put_before(id(3), id(1));
    }
}
