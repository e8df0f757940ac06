//! Chains that cross the sites of a region: each site has some of the chain servers, the coordinator has the resolver.
//!
//! ```text
//!   server on site 1           resolver at the coordinator          server on site 0
//!        │── Claim (T, open) ──────────▶│                                 │
//!        │◀──────────────── Granted (T) ┤                                 │
//!        ├── Cross (T) ──────────────────────────────────────────────────▶│  nobody open: it passes
//!        │                              │◀──────────────────── Through (T) ┤
//! ```
//!
//! A site works out the footprints on its servers by itself, from the batches that all agree on. Where a transaction comes to
//! a server and all that it meets there have pre-committed, it passes without a question: their places were settled
//! when they did. Otherwise the server claims for it to be next, and the resolver grants that once Rule 2 allows.
//!
//! This file is data and rules. Invariants: of two transactions that meet at a server, the one granted first there comes first
//! everywhere; claims and grants that come twice or in another order change nothing. `chains.rs`, which runs this, makes up for lost messages.
//! Nothing here is durable, and only the region's vote depends on it.
//!
//! Source: section VI.C; chain servers on several machines are those of section IV.

use super::chain::ChainServer;
use super::epoch::Epoch;
use super::message::{Identifier, Order};
use super::resolver::Resolver;
use super::speculation::{Conflicts, Visit, in_order, pass_forward};
use rhumb_commit::one_shot::footprint::Footprint;
use std::collections::{BTreeMap, BTreeSet};

/// The chain servers of one site, for one epoch.
#[derive(Clone, Debug)]
pub struct Part {
    servers: BTreeMap<u16, ChainServer>,
}

/// What follows if a transaction comes to a chain server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It has pre-committed: on to the next.
    Passes,
    /// These, which it meets there, have not: the resolver is to be asked.
    Claims(Vec<Identifier>),
    /// It has been here, or does not belong here.
    Nothing,
}

impl Part {
    /// The servers `here` of so many, which the conflicting transactions have passed forward.
    pub fn begin(
        here: impl IntoIterator<Item = u16>,
        servers: u16,
        conflicts: &Conflicts,
        footprints: &BTreeMap<Identifier, Footprint>,
    ) -> Part {
        let passed = |number| {
            let mut server = ChainServer::default();
            pass_forward(&mut server, number, servers, conflicts, footprints);
            (number, server)
        };
        Part { servers: here.into_iter().map(passed).collect() }
    }

    /// A transaction comes in its backward pass.
    pub fn come(&mut self, visit: Visit) -> Arrival {
        let Some(server) = self.servers.get_mut(&visit.server) else { return Arrival::Nothing };
        if !server.is_passed_by(visit.transaction) || server.has_precommitted(visit.transaction) {
            return Arrival::Nothing;
        }
        let open: Vec<Identifier> = server.open(visit.transaction).collect();
        if open.is_empty() {
            server.precommit(visit.transaction);
            return Arrival::Passes;
        }
        Arrival::Claims(open)
    }

    /// The resolver has granted a claim. True if that is new: on to the next.
    pub fn grant(&mut self, visit: Visit) -> bool {
        let Some(server) = self.servers.get_mut(&visit.server) else { return false };
        let is_new = server.is_passed_by(visit.transaction) && !server.has_precommitted(visit.transaction);
        if is_new {
            server.precommit(visit.transaction);
        }
        is_new
    }
}

/// The coordinator's share of an epoch's chains: who comes before whom, and who is through.
#[derive(Clone, Debug)]
pub struct Resolution {
    epoch: Epoch,
    resolver: Resolver,
    /// Claims that are not granted, by server, each with the transactions that it meets there and that have no grant either.
    claims: BTreeMap<u16, BTreeMap<Identifier, BTreeSet<Identifier>>>,
    granted: BTreeSet<Visit>,
    under_way: BTreeSet<Identifier>,
    through: Vec<Identifier>,
}

impl Resolution {
    /// Of an epoch with these conflicts.
    pub fn begin(epoch: Epoch, conflicts: &Conflicts) -> Resolution {
        Resolution {
            epoch,
            resolver: Resolver::default(),
            claims: BTreeMap::new(),
            granted: BTreeSet::new(),
            under_way: conflicts.keys().copied().collect(),
            through: Vec::new(),
        }
    }

    /// A chain server claims for a transaction to be next there. Returns the grants that follow.
    pub fn claim(&mut self, visit: Visit, open: impl IntoIterator<Item = Identifier>) -> Vec<Visit> {
        let Visit { transaction, server } = visit;
        if self.granted.contains(&visit) {
            return vec![visit];
        }
        let open = open
            .into_iter()
            .filter(|other| *other != transaction && !self.granted.contains(&Visit { transaction: *other, server }))
            .collect();
        let claims = self.claims.entry(server).or_default();
        claims.insert(transaction, open);
        let mut grants = Vec::new();
        while let Some(next) = claims.iter().find_map(|(next, open)| self.resolver.claim(*next, open.iter().copied()).then_some(*next)) {
            claims.remove(&next);
            claims.values_mut().for_each(|open| open.retain(|other| *other != next));
            let grant = Visit { transaction: next, server };
            self.granted.insert(grant);
            grants.push(grant);
        }
        grants
    }

    /// A transaction has ended its backward pass.
    pub fn through(&mut self, transaction: Identifier) {
        if self.under_way.remove(&transaction) {
            self.through.push(transaction);
        }
    }

    /// The order in which all of them ran, once all are through.
    pub fn order(&self) -> Option<Order> {
        self.under_way.is_empty().then(|| in_order(self.epoch, &self.through, &self.resolver))
    }
}

#[cfg(test)]
mod tests;
