//! The connections that have not proved yet that they are of a site of this cluster.
//!
//! Their number is bounded, and one more has another leave ([`Crowd`]): a site proves itself in a round trip, so that whoever only keeps
//! connections open does not keep it out, nor does who makes many.

use rhumb_security::crowd::{Crowd, Ticket};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};
use tokio::task::{AbortHandle, Id};

/// The most connections that may be open and have proved nothing yet.
pub const UNPROVEN_MAX: usize = 128;

/// The unproven connections.
#[derive(Default)]
pub struct UnprovenConnections(Mutex<Unproven>);

#[derive(Default)]
struct Unproven {
    crowd: Crowd<(SocketAddr, AbortHandle)>,
    tickets: HashMap<Id, Ticket>,
}

impl UnprovenConnections {
    /// Adds the connection of `address`. If that makes too many, ends one and says whose it was.
    pub fn add(&self, address: SocketAddr, connection: AbortHandle) -> Option<SocketAddr> {
        let mut unproven = self.lock();
        let id = connection.id();
        let ticket = unproven.crowd.enter(address.ip(), (address, connection));
        unproven.tickets.insert(id, ticket);
        let (address, other) = unproven.crowd.beyond(UNPROVEN_MAX)?;
        unproven.tickets.remove(&other.id());
        other.abort();
        Some(address)
    }

    /// The connection has proved itself, or has ended. False if it was ended before that.
    pub fn remove(&self, connection: Id) -> bool {
        let mut unproven = self.lock();
        let ticket = unproven.tickets.remove(&connection);
        ticket.and_then(|ticket| unproven.crowd.leave(ticket)).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Unproven> {
        self.0.lock().expect("nothing panics while it holds the connections")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[tokio::test]
    async fn whoever_makes_many_connections_ends_its_own() {
        let unproven = UnprovenConnections::default();
        let connection = || tokio::spawn(pending::<()>()).abort_handle();
        let (site, flood) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 1).into());
        let first = connection();
        assert_eq!(unproven.add(site, first.clone()), None);
        for number in 1..3 * UNPROVEN_MAX {
            assert_eq!(unproven.add(flood, connection()), (number >= UNPROVEN_MAX).then_some(flood));
        }
        assert!(unproven.remove(first.id()) && !first.is_finished() && !unproven.remove(first.id()));
        let unproven = unproven.lock();
        assert_eq!((unproven.crowd.len(), unproven.tickets.len()), (UNPROVEN_MAX - 1, UNPROVEN_MAX - 1));
    }
}
