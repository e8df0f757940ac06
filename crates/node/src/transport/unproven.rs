//! The connections that have not proved yet that they are of a site of this cluster.
//!
//! Their number is bounded. One more takes the place of the oldest: a site proves itself in a round trip, so that whoever only keeps
//! connections open does not keep it out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};
use tokio::task::{AbortHandle, Id};

/// The most connections that may be open and have proved nothing yet.
pub const UNPROVEN_MAX: usize = 128;

/// The unproven connections, oldest first.
#[derive(Default)]
pub struct UnprovenConnections(Mutex<VecDeque<(SocketAddr, AbortHandle)>>);

impl UnprovenConnections {
    /// Adds the connection of `address`. If that makes too many, ends the oldest and says whose it was.
    pub fn add(&self, address: SocketAddr, connection: AbortHandle) -> Option<SocketAddr> {
        let mut connections = self.lock();
        connections.push_back((address, connection));
        if connections.len() <= UNPROVEN_MAX {
            return None;
        }
        let (address, oldest) = connections.pop_front()?;
        oldest.abort();
        Some(address)
    }

    /// The connection has proved itself, or has ended. False if it was ended before that.
    pub fn remove(&self, connection: Id) -> bool {
        let mut connections = self.lock();
        let place = connections.iter().position(|(_, other)| other.id() == connection);
        place.and_then(|place| connections.remove(place)).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(SocketAddr, AbortHandle)>> {
        self.0.lock().expect("nothing panics while it holds the connections")
    }
}
