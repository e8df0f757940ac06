//! A chain server: one partition of a region's keys, through which the transactions of an epoch pass one after the other.
//!
//! In its forward pass a transaction leaves a *footprint* at each of its servers. In its backward pass it *pre-commits* at one
//! after the other. Whoever pre-commits first on a key that two of them share comes first (Rule 1), here and, by the resolver,
//! everywhere; one that has to come after others waits until they have pre-committed here (Rule 2).
//!
//! What is pre-committed is the transaction's place among the others. Operations are pure functions of the rows that they
//! find, so values follow from the places and are worked out once the places are settled: a speculation that fails
//! leaves no value behind to take back.
//!
//! Source: section VI.C.

use super::message::Identifier;
pub use super::partition::server_of;
use super::resolver::Resolver;
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_core::work;
use std::collections::{BTreeMap, BTreeSet};

/// One chain server, for one epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChainServer {
    /// By transaction: the others that it conflicts with on this server's keys.
    footprints: BTreeMap<Identifier, BTreeSet<Identifier>>,
    precommitted: BTreeSet<Identifier>,
    /// Came by, and must come after others that have not yet.
    waiting: BTreeSet<Identifier>,
}

impl ChainServer {
    /// Forward pass: `transaction` leaves its footprint, which meets those of the transactions named.
    pub fn leave_footprint(&mut self, transaction: Identifier, meets: impl IntoIterator<Item = Identifier>) {
        let footprint = self.footprints.entry(transaction).or_default();
        footprint.extend(meets);
    }

    /// True if `transaction` passes this server.
    pub fn is_passed_by(&self, transaction: Identifier) -> bool {
        self.footprints.contains_key(&transaction)
    }

    /// Backward pass: `transaction` comes by. Returns those that have pre-committed by that, itself among them unless it waits.
    pub fn visit(&mut self, transaction: Identifier, resolver: &mut Resolver) -> Vec<Identifier> {
        self.waiting.insert(transaction);
        let mut passed = Vec::new();
        // What other servers settle only ever adds to what one has to wait for, so nobody need be asked again but after a
        // pre-commit here.
        while let Some(next) =
            self.waiting.iter().copied().inspect(|_| work::add(1)).find(|waiting| resolver.claim(*waiting, self.open(*waiting)))
        {
            self.precommit(next);
            passed.push(next);
        }
        passed
    }

    /// True if `transaction` has pre-committed here.
    pub fn has_precommitted(&self, transaction: Identifier) -> bool {
        self.precommitted.contains(&transaction)
    }

    /// `transaction` pre-commits: the resolver has put it before those that are open here.
    pub fn precommit(&mut self, transaction: Identifier) {
        self.waiting.remove(&transaction);
        self.precommitted.insert(transaction);
    }

    /// Those it conflicts with here that have not pre-committed.
    pub fn open(&self, transaction: Identifier) -> impl Iterator<Item = Identifier> + Clone + '_ {
        let meets = self.footprints.get(&transaction).expect("a transaction passes forward before it comes back");
        meets.iter().copied().inspect(|_| work::add(1)).filter(|other| !self.precommitted.contains(other))
    }
}

/// The keys of a footprint that lie on one server of so many; a range lies on all.
pub fn passes(footprint: &Footprint, server: u16, servers: u16) -> bool {
    !footprint.ranges.is_empty() || footprint.keys.keys().any(|key| server_of(key, servers) == server)
}
