//! Where messages of peers go: an inbox per service, each with its own room.
//!
//! A peer's messages for all services come over one connection, in order. While a service has no room, nothing more is
//! read from that connection, which slows the peer down; but not for longer than [`HOLD_MAX`]: from then on messages for
//! that service are dropped until it takes some, so that a service that is stuck, or recovers for long, does not take the
//! others along. The protocols tolerate loss.

use crate::service::Service;
use crate::transport::frame::FrameError;
use rhumb_core::SiteId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, TryAcquireError};

/// A service without room holds up the other messages of a connection for so long at the most.
const HOLD_MAX: Duration = Duration::from_secs(1);

/// The inbox of each service.
pub type Inboxes = BTreeMap<Service, Arc<dyn Inbox>>;

/// Takes what peers send to a service.
pub trait Inbox: Send + Sync {
    /// Its room for messages.
    fn room(&self) -> &Room;

    /// Takes a message for which there is room: [`Room::enter`] said so just before. Fails if it cannot be decoded.
    fn put(&self, from: SiteId, data: &[u8]) -> Result<(), FrameError>;

    /// Takes nothing more.
    fn close(&self);
}

/// Room for a bounded number of messages.
pub struct Room {
    places: Semaphore,
    /// True once somebody has waited in vain, until messages leave.
    stuck: AtomicBool,
}

impl Room {
    /// Room for `messages`.
    pub fn new(messages: usize) -> Room {
        Room { places: Semaphore::new(messages), stuck: AtomicBool::new(false) }
    }

    /// Takes a place for one message; waits for it while there is none. False if none becomes free in good time, or ever.
    pub async fn enter(&self) -> bool {
        let place = match self.places.try_acquire() {
            Ok(place) => place,
            Err(TryAcquireError::NoPermits) if !self.stuck.load(Ordering::Relaxed) => {
                match tokio::time::timeout(HOLD_MAX, self.places.acquire()).await {
                    Ok(Ok(place)) => place,
                    Ok(Err(_)) => return false,
                    Err(_) => {
                        self.stuck.store(true, Ordering::Relaxed);
                        return false;
                    }
                }
            }
            Err(_) => return false,
        };
        place.forget();
        true
    }

    /// Gives back the places of `messages`.
    pub fn leave(&self, messages: usize) {
        if messages > 0 {
            self.stuck.store(false, Ordering::Relaxed);
            self.places.add_permits(messages);
        }
    }

    /// Has no place for anybody from now on.
    pub fn close(&self) {
        self.places.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn at_once(future: impl Future<Output = bool>) -> Option<bool> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(entered) => Some(entered),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn who_finds_no_room_waits_and_after_a_wait_in_vain_nobody_does_until_there_is_room_again() {
        let room = Room::new(1);
        assert_eq!(at_once(room.enter()), Some(true));
        assert_eq!(at_once(room.enter()), None, "it waits");
        assert!(!room.enter().await, "in vain");
        assert_eq!(at_once(room.enter()), Some(false), "no further wait");
        room.leave(1);
        assert_eq!(at_once(room.enter()), Some(true));
        assert_eq!(at_once(room.enter()), None, "it waits again");
        room.close();
        assert_eq!(at_once(room.enter()), Some(false));
    }
}
