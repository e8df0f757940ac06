//! The connections of a port that are about their handshakes.
//!
//! Their number is bounded. One more takes the place of the oldest: a handshake takes two round trips, so whoever only keeps connections open
//! keeps nobody out, and those whose handshake is done are not counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most handshakes at a port at a time.
pub const HANDSHAKES_MAX: usize = 128;

/// The handshakes under way at a port.
#[derive(Default)]
pub struct Handshakes(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    next: u64,
    /// In the order in which they began.
    places: BTreeMap<u64, Arc<Notify>>,
}

/// The place of one; free again when dropped.
pub struct Place<'a> {
    handshakes: &'a Handshakes,
    number: u64,
    dismissed: Arc<Notify>,
}

impl Handshakes {
    /// Takes a place, that of the oldest if there is no other.
    pub fn enter(&self) -> Place<'_> {
        let dismissed = Arc::new(Notify::new());
        let mut waiting = self.lock();
        waiting.next += 1;
        let number = waiting.next;
        waiting.places.insert(number, Arc::clone(&dismissed));
        if waiting.places.len() > HANDSHAKES_MAX
            && let Some((_, oldest)) = waiting.places.pop_first()
        {
            oldest.notify_one();
        }
        Place { handshakes: self, number, dismissed }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
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
        self.handshakes.lock().places.remove(&self.number);
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
    fn one_too_many_takes_the_place_of_the_oldest() {
        let handshakes = Handshakes::default();
        let mut places: Vec<Place<'_>> = (0..HANDSHAKES_MAX).map(|_| handshakes.enter()).collect();
        assert!(!places.iter().any(is_dismissed));
        drop(places.remove(7));
        places.push(handshakes.enter());
        assert!(!places.iter().any(is_dismissed), "one had gone");
        places.push(handshakes.enter());
        let dismissed: Vec<usize> = (0..places.len()).filter(|&index| is_dismissed(&places[index])).collect();
        assert_eq!(dismissed, [0]);
        drop(places);
        assert!(handshakes.lock().places.is_empty());
    }
}
