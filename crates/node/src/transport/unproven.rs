//! The connections that have not proved yet that they are of a site of this cluster.
//!
//! Their number is bounded. One more takes the place of the oldest: a site proves itself in a round trip, so that whoever only keeps
//! connections open does not keep it out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};
use tokio::task::{AbortHandle, Id};

/// So many connections may be open that have proved nothing yet.
pub const STRANGERS_MAX: usize = 128;

/// Those there are, oldest first.
#[derive(Default)]
pub struct Strangers(Mutex<VecDeque<(SocketAddr, AbortHandle)>>);

impl Strangers {
    /// Adds the connection of `address`. If that makes too many, ends the oldest and says whose it was.
    pub fn add(&self, address: SocketAddr, connection: AbortHandle) -> Option<SocketAddr> {
        let mut strangers = self.lock();
        strangers.push_back((address, connection));
        if strangers.len() <= STRANGERS_MAX {
            return None;
        }
        let (address, oldest) = strangers.pop_front()?;
        oldest.abort();
        Some(address)
    }

    /// The connection is a stranger's no more, or is no more. False if it was ended before that.
    pub fn remove(&self, connection: Id) -> bool {
        let mut strangers = self.lock();
        let place = strangers.iter().position(|(_, stranger)| stranger.id() == connection);
        place.and_then(|place| strangers.remove(place)).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(SocketAddr, AbortHandle)>> {
        self.0.lock().expect("nothing panics while it holds the strangers")
    }
}
