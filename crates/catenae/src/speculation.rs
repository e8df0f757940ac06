//! The speculative execution of an epoch in one region: its conflicting transactions pass their chains, and the faster ones come first.
//!
//! All footprints are left before the first backward pass begins, as the whole epoch is known by then. What comes out is one
//! order of the conflicting transactions, which is this region's vote. Only their conflicts matter in it.
//!
//! Source: section VI.C; VI.B for the order of servers.

use super::chain::{self, ChainServer};
use super::epoch::Epoch;
pub use super::message::Visit;
use super::message::{Identifier, Order};
use super::resolver::Resolver;
use rhumb_commit::one_shot::footprint::Footprint;
use std::collections::{BTreeMap, BTreeSet};

/// Conflicts of an epoch: by transaction, those that it conflicts with. Symmetric; transactions without conflict are left out.
pub type Conflicts = BTreeMap<Identifier, BTreeSet<Identifier>>;

/// An epoch's chains under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Speculation {
    epoch: Epoch,
    servers: Vec<ChainServer>,
    resolver: Resolver,
    /// Transactions that are not through, and the visit that each is on.
    under_way: BTreeMap<Identifier, u16>,
    through: Vec<Identifier>,
}

impl Speculation {
    /// Passes the conflicting transactions of `epoch` forward over so many servers; returns the first visits of their backward
    /// passes.
    pub fn begin(
        epoch: Epoch,
        servers: u16,
        conflicts: &Conflicts,
        footprints: &BTreeMap<Identifier, Footprint>,
    ) -> (Speculation, Vec<Visit>) {
        let mut speculation = Speculation {
            epoch,
            servers: vec![ChainServer::default(); usize::from(servers)],
            resolver: Resolver::default(),
            under_way: BTreeMap::new(),
            through: Vec::new(),
        };
        for (number, server) in (0..).zip(&mut speculation.servers) {
            pass_forward(server, number, servers, conflicts, footprints);
        }
        let visits = conflicts.keys().filter_map(|&transaction| speculation.next_visit(transaction, servers)).collect();
        (speculation, visits)
    }

    /// A transaction arrives at a chain server; returns the visits that follow. One that comes a second time changes nothing.
    pub fn visit(&mut self, visit: Visit) -> Vec<Visit> {
        if self.under_way.get(&visit.transaction) != Some(&visit.server) {
            return Vec::new();
        }
        let passed = self.servers[usize::from(visit.server)].visit(visit.transaction, &mut self.resolver);
        passed.into_iter().filter_map(|transaction| self.next_visit(transaction, visit.server)).collect()
    }

    /// Sends a transaction on to its last server below `server`; it is through if there is none.
    fn next_visit(&mut self, transaction: Identifier, server: u16) -> Option<Visit> {
        let next = (0..server).rev().find(|server| self.servers[usize::from(*server)].is_passed_by(transaction));
        match next {
            Some(server) => {
                self.under_way.insert(transaction, server);
                Some(Visit { transaction, server })
            }
            None => {
                self.under_way.remove(&transaction);
                self.through.push(transaction);
                None
            }
        }
    }

    /// The order in which all of them ran, once all are through.
    pub fn order(&self) -> Option<Order> {
        self.under_way.is_empty().then(|| in_order(self.epoch, &self.through, &self.resolver))
    }
}

/// The order of all transactions of an epoch: those with fewer predecessors come first. That order has no cycle, and transactions that tie do not
/// conflict.
pub(super) fn in_order(epoch: Epoch, transactions: &[Identifier], resolver: &Resolver) -> Order {
    let mut sequence = transactions.to_vec();
    sequence.sort_by_key(|transaction| (resolver.rank(*transaction), *transaction));
    Order { epoch, sequence }
}

/// The transactions of an epoch leave their footprints on one chain server of so many.
pub(super) fn pass_forward(
    server: &mut ChainServer,
    number: u16,
    servers: u16,
    conflicts: &Conflicts,
    footprints: &BTreeMap<Identifier, Footprint>,
) {
    let here = |key: &_| chain::server_of(key, servers) == number;
    for (&transaction, others) in conflicts {
        let own = &footprints[&transaction];
        if chain::passes(own, number, servers) {
            let meets = others.iter().copied().filter(|other| own.meets(&footprints[other], here));
            server.leave_footprint(transaction, meets);
        }
    }
}

#[cfg(test)]
mod tests;
