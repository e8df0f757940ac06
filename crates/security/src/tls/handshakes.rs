//! The connections of a port that are about their handshakes.
//!
//! Their number is bounded, and one more has another leave ([`Crowd`]): a handshake takes two round trips, so whoever only keeps connections open
//! keeps nobody out, nor does who makes many, and those whose handshake is done are not counted.

use crate::crowd::{Crowd, Ticket};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most handshakes at a port at a time.
pub const HANDSHAKES_MAX: usize = 128;

/// The handshakes under way at a port.
#[derive(Default)]
pub struct Handshakes(Mutex<Crowd<Arc<Notify>>>);

/// The place of one; free again when dropped.
pub struct Place<'a> {
    handshakes: &'a Handshakes,
    ticket: Ticket,
    dismissed: Arc<Notify>,
}

impl Handshakes {
    /// Takes a place for who comes from `address`, that of another if there is no free one.
    pub fn enter(&self, address: IpAddr) -> Place<'_> {
        let dismissed = Arc::new(Notify::new());
        let mut waiting = self.lock();
        let ticket = waiting.enter(address, Arc::clone(&dismissed));
        if let Some(other) = waiting.beyond(HANDSHAKES_MAX) {
            other.notify_one();
        }
        Place { handshakes: self, ticket, dismissed }
    }

    fn lock(&self) -> MutexGuard<'_, Crowd<Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// Waits until another needs it.
    pub async fn dismissed(&self) {
        self.dismissed.notified().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.handshakes.lock().leave(self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn is_dismissed(place: &Place<'_>) -> bool {
        pin!(place.dismissed()).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn one_more_takes_the_place_of_the_oldest_from_where_most_come() {
        let handshakes = Handshakes::default();
        let (site, flood): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let first = handshakes.enter(site);
        let mut places: Vec<Place<'_>> = (1..HANDSHAKES_MAX).map(|_| handshakes.enter(flood)).collect();
        assert!(!is_dismissed(&first) && !places.iter().any(is_dismissed));
        places.push(handshakes.enter(flood));
        assert_eq!(places.iter().map(is_dismissed).position(|dismissed| dismissed), Some(0));
        assert!(!is_dismissed(&first), "it is alone where it comes from");
        drop(places);
        assert_eq!(handshakes.lock().len(), 1);
    }
}
