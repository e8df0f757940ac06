//! Who steps the actor: whoever has something for it, in place.
//!
//! ```text
//!   client ─ask─▶ mailbox, then: is the actor free?
//!                   yes: step with all that waits, on this very thread; the answer is there when the client looks for it
//!                   no:  whoever steps it looks into the mailbox again before it leaves
//! ```
//!
//! So no thread is woken for a step: a client that reads a row goes from socket to socket on one thread, and the thread that has synced
//! the disk steps with what waited for that. The actor's own thread serves its timers, and takes over where others would be held up:
//! they make [`STEPS_MAX`] steps at the most, and never wait for a queue that has no room.
//!
//! A service whose clients live on the actor's thread ([`Disk::Here`](super::disk::Disk)) is stepped there alone.
//!
//! Invariants: one step at a time; nothing that was added waits for an input that comes later.

use super::attend::Attend;
use super::driver::{Driver, Ended, Left};
use super::mailbox::Mailbox;
use super::requests::Requests;
use super::{Hosted, decode_message};
use crate::failure::Failure;
use crate::service::Service;
use crate::transport::frame::FrameError;
use crate::transport::{Inbox, Room};
use rhumb_core::SiteId;
use rhumb_store::Engine;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::yield_now;

/// So many steps others than the actor's own thread make before they leave the rest to it.
const STEPS_MAX: usize = 256;
/// So many steps the actor's own thread makes before whoever waits for that thread, or for the actor, gets a turn.
const STEPS_AT_HOME_MAX: usize = 1_024;
/// While a queue has no room, the actor's own thread looks so often whether it has again.
const FULL_PAUSE: Duration = Duration::from_millis(1);
/// So often the actor's own thread looks whether more has arrived before it has a group written.
const GATHER_ROUNDS: usize = 8;

/// An actor and its mailbox.
pub struct Cell<A: Hosted, E> {
    pub service: Service,
    pub mailbox: Arc<Mailbox<A>>,
    pub requests: Arc<Requests<A>>,
    pub failure: Failure,
    /// True if whoever has something for the actor steps it.
    pub in_place: bool,
    /// None before the actor has begun and after it has ended.
    pub driver: Mutex<Option<Driver<A, E>>>,
}

/// However the actor ends, with its driver the ways to its threads end, once these have done what they were given.
struct Life<'a, A: Hosted, E>(&'a Cell<A, E>);

impl<A: Hosted, E> Drop for Life<'_, A, E> {
    fn drop(&mut self) {
        self.0.end();
        self.0.lock().take();
    }
}

impl<A: Hosted, E> Cell<A, E> {
    fn end(&self) {
        self.mailbox.close();
        self.requests.stop();
    }

    /// Waits for the actor.
    fn lock(&self) -> MutexGuard<'_, Option<Driver<A, E>>> {
        // Steps do not panic with the lock held.
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the driver do something. Should that end it, or panic, nobody may wait for an answer that will not come.
    fn drive<T>(&self, slot: &mut Option<Driver<A, E>>, what: impl FnOnce(&mut Driver<A, E>) -> Result<T, Ended>) -> Result<T, Ended> {
        let driver = slot.as_mut().ok_or(Ended)?;
        let done = catch_unwind(AssertUnwindSafe(|| what(driver)));
        if !matches!(done, Ok(Ok(_))) {
            self.end();
            *slot = None;
        }
        done.unwrap_or_else(|_| {
            self.failure.report_panic(self.service.actor());
            Err(Ended)
        })
    }
}

impl<A: Hosted, E: Engine> Cell<A, E> {
    /// The life of the actor, on its own thread: it begins with the incarnation of the site, which `begun` tells, and ends when the
    /// mailbox is closed.
    pub async fn live(self: Arc<Self>, driver: Driver<A, E>, begun: watch::Receiver<bool>) {
        let _life = Life(&self);
        if self.begins(begun).await {
            let Ended = self.serve(driver).await;
        }
    }

    /// Waits until the incarnation of the site begins. False if the mailbox is closed before that.
    async fn begins(&self, mut begun: watch::Receiver<bool>) -> bool {
        tokio::select! {
            begun = begun.wait_for(|begun| *begun) => begun.is_ok(),
            () = self.mailbox.closed() => false,
        }
    }

    async fn serve(&self, driver: Driver<A, E>) -> Ended {
        if let Err(ended) = self.begin(driver) {
            return ended;
        }
        loop {
            match self.turn().await {
                Ok(Some(until)) => self.mailbox.sleep(until).await,
                // Whoever else lives on this thread, or wants to step, gets a turn.
                Ok(None) => yield_now().await,
                Err(ended) => return ended,
            }
        }
    }

    fn begin(&self, driver: Driver<A, E>) -> Result<(), Ended> {
        let mut slot = self.lock();
        *slot = Some(driver);
        self.drive(&mut slot, Driver::begin)
    }

    /// A turn of the actor's own thread. Returns until when it may sleep at the most, if it may.
    async fn turn(&self) -> Result<Option<Option<Instant>>, Ended> {
        for round in 0.. {
            let mut steps = STEPS_AT_HOME_MAX;
            let (left, gathers) = self.drive(&mut self.lock(), |driver| Ok((driver.work(&mut steps)?, driver.gathers())))?;
            match left {
                Left::Steps => {
                    self.drive(&mut self.lock(), Driver::flush)?;
                    return Ok(None);
                }
                Left::Room => return Ok(Some(Some(Instant::now() + FULL_PAUSE))),
                Left::Nothing if gathers && round < GATHER_ROUNDS => {
                    // Now the network brings what has come meanwhile, and clients on this thread pass it on.
                    yield_now().await;
                    if self.mailbox.is_empty() {
                        break;
                    }
                }
                Left::Nothing => break,
            }
        }
        let until = self.drive(&mut self.lock(), |driver| {
            driver.flush()?;
            Ok(driver.doze())
        })?;
        // Looked at once the actor is free again: who could not step because of this very turn counts on it.
        Ok(until.filter(|_| self.mailbox.rests()))
    }
}

impl<A: Hosted, E: Engine> Attend for Cell<A, E> {
    fn attend(&self) {
        if !self.in_place {
            return self.mailbox.rouse();
        }
        let mut steps = STEPS_MAX;
        loop {
            // Who has it looks into the mailbox again after it has let go.
            let Ok(mut slot) = self.driver.try_lock() else { return };
            let worked = self.drive(&mut slot, |driver| Ok((driver.work(&mut steps)?, driver.wakes_late())));
            drop(slot);
            match worked {
                Ok((Left::Nothing, late)) => {
                    if late {
                        self.mailbox.rouse();
                    }
                    if self.mailbox.is_empty() {
                        return;
                    }
                }
                Ok((Left::Steps | Left::Room, _)) => return self.mailbox.rouse(),
                // It has not begun, or has ended.
                Err(Ended) => return,
            }
        }
    }

    fn close(&self) {
        self.end();
    }
}

impl<A: Hosted, E: Engine> Inbox for Cell<A, E> {
    fn room(&self) -> &Room {
        self.mailbox.room()
    }

    fn put(&self, from: SiteId, data: &[u8]) -> Result<(), FrameError> {
        let body = decode_message::<A::Note, A::Promise>(data).inspect_err(|_| self.mailbox.room().leave(1))?;
        self.mailbox.push_peer(from, body);
        self.attend();
        Ok(())
    }

    fn close(&self) {
        self.mailbox.close();
    }
}
