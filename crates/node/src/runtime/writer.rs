//! Group commit: write, sync, and then let go of what waited for that.
//!
//! All that is queued is applied, synced at once, and then promises, notifications and answers leave, each in the order of
//! the queue. While it syncs, the next group gathers.
//!
//! A sync is for those who wait. A group that nobody waits for, as what a commit leaves to be applied after its answer,
//! becomes durable with the next group that somebody waits for, or after [`UNSYNCED_MAX`]; nor does a group cost a sync if
//! all is durable already, as one of empty batches. Invariant: what waits for a batch leaves after all batches up to that
//! one are durable.
//!
//! Batches are applied many at a time, as one write of the engine: what many small ones cost is the keys they write, and
//! many that write the same key cost no more than one.
//!
//! If a write or a sync fails, nothing that waited leaves, now or later, and the site ends.

use super::Hosted;
use super::loader::Loaders;
use super::mailbox::Mailbox;
use super::requests::Requests;
use crate::metrics::WriterMetrics;
use crate::service::Service;
use crate::transport::Transport;
use rhumb_core::SiteId;
use rhumb_core::actor::{Batch, Body, Collect, Gated, Input, Load, RequestId, Token, UNSYNCED_MAX};
use rhumb_store::{Engine, Group, Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// So much is in a group at the most, which bounds how long the first waits for the last to be applied.
pub const GROUP_MAX: usize = 4_096;
/// Batches that write about so many keys of the engine are applied as one, which bounds what the engine takes at once.
const WRITE_KEYS_MAX: usize = 64;
/// The same in bytes.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// What is queued, in the order of the actor's effects.
pub enum Queued<A: Hosted> {
    /// A batch, and what waits for it to be durable.
    Write {
        /// What to write.
        batch: Batch,
        /// Whom to notify.
        token: Option<Token>,
        /// What to let go of.
        then: Vec<Gated<A>>,
    },
    /// A load that must see the batches before it.
    Load {
        /// Names the answer.
        token: Token,
        /// What to read.
        load: Load,
    },
    /// Garbage to be collected once the batches before it are durable: they tell up to where nobody reads any more.
    Collect(Collect),
}

/// What waits for a batch that is applied to be durable.
struct Waiting<A: Hosted> {
    token: Option<Token>,
    then: Vec<Gated<A>>,
}

/// Batches to be applied as one.
#[derive(Default)]
struct Pending {
    group: Group,
    batches: u64,
}

/// Writes a store, and has what waited sent.
pub struct Writer<A: Hosted, E> {
    pub site: SiteId,
    pub service: Service,
    pub store: Arc<Store<E>>,
    pub applied: Arc<AtomicU64>,
    pub loaders: Arc<Loaders>,
    pub mailbox: Arc<Mailbox<A>>,
    pub requests: Arc<Requests<A>>,
    pub transport: Arc<Transport>,
    pub metrics: WriterMetrics,
    /// What no sync has covered yet, if anything.
    pub unsynced: Option<Unsynced>,
    /// What waits for that; of several the last, since horizons only rise.
    pub collect: Option<Collect>,
}

/// Batches that are applied, and not durable for certain.
#[derive(Clone, Copy)]
pub struct Unsynced {
    batches: u32,
    /// They are to be durable by then.
    due: Instant,
}

impl<A: Hosted, E: Engine> Writer<A, E> {
    /// Applies `group`, makes it durable if somebody waits for that or it is due, then lets go of what waited: what the actor waits for is
    /// in its mailbox.
    pub fn commit(&mut self, group: impl IntoIterator<Item = Queued<A>>) -> Result<(), StoreError> {
        let waiting = self.write(group)?;
        if !waiting.is_empty() || self.due().is_none_or(|due| due <= Instant::now()) {
            self.sync()?;
        }
        self.release(waiting);
        Ok(())
    }

    /// When what nobody waits for is to be durable; none if all is.
    pub fn due(&self) -> Option<Instant> {
        self.unsynced.map(|unsynced| unsynced.due)
    }

    /// Makes durable all that was applied, and has garbage collected that waited for it. Costs no sync if all is durable.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if let Some(Unsynced { batches, .. }) = self.unsynced {
            let begun = Instant::now();
            self.store.sync()?;
            self.unsynced = None;
            self.metrics.sync.observe(begun.elapsed().as_secs_f64());
            self.metrics.batches.observe(f64::from(batches));
        }
        if let Some(collect) = self.collect.take() {
            self.loaders.collect(collect);
        }
        Ok(())
    }

    /// Applies `group`, and returns what waits for it to be durable.
    fn write(&mut self, group: impl IntoIterator<Item = Queued<A>>) -> Result<Vec<Waiting<A>>, StoreError> {
        let mut waiting = Vec::new();
        let mut pending = Pending::default();
        let mut batches = 0_u32;
        for queued in group {
            match queued {
                Queued::Write { batch, token, then } => {
                    pending.group.add(&batch)?;
                    pending.batches += 1;
                    batches += u32::from(!batch.ops.is_empty());
                    if token.is_some() || !then.is_empty() {
                        waiting.push(Waiting { token, then });
                    }
                    if pending.group.keys() >= WRITE_KEYS_MAX || pending.group.bytes() >= WRITE_BYTES_MAX {
                        self.apply(&mut pending)?;
                    }
                }
                Queued::Load { token, load } => {
                    self.apply(&mut pending)?;
                    // Where nobody reads any more the site ends, and nobody waits for the answer.
                    self.loaders.load(token, load);
                }
                Queued::Collect(collect) => self.collect = Some(collect),
            }
        }
        self.apply(&mut pending)?;
        if batches > 0 {
            let unsynced = self
                .unsynced
                .get_or_insert_with(|| Unsynced { batches: 0, due: Instant::now() + Duration::from_micros(UNSYNCED_MAX.as_micros()) });
            unsynced.batches += batches;
        }
        Ok(waiting)
    }

    fn apply(&self, pending: &mut Pending) -> Result<(), StoreError> {
        let Pending { group, batches } = std::mem::take(pending);
        self.store.apply_group(group)?;
        self.applied.fetch_add(batches, Ordering::Release);
        Ok(())
    }

    /// Lets go of what waited. Answers come last and together: waking many clients at once is cheaper than one by one.
    fn release(&self, waiting: Vec<Waiting<A>>) {
        let mut answers: Vec<(RequestId, A::Answer)> = Vec::new();
        for Waiting { token, then } in waiting {
            for gated in then {
                match gated {
                    Gated::Send { to, promise } if to == self.site => {
                        self.mailbox.push_inner(Input::Message { from: to, body: Body::Promise(promise) });
                    }
                    Gated::Send { to, promise } => {
                        self.transport.send(self.service, to, &Body::<A::Note, A::Promise>::Promise(promise));
                    }
                    Gated::Answer { id, answer } => answers.push((id, answer)),
                }
            }
            if let Some(token) = token {
                self.mailbox.push_inner(Input::Persisted { token });
            }
        }
        self.requests.answer(answers);
    }
}
