//! The actor's driver: takes inputs, steps the actor, carries out what it writes down. The loop of the contract in
//! [`rhumb_core::actor`].
//!
//! A task on a thread of its own, so that a step waits for nobody's query. Clients that need nothing but this actor may
//! live on that thread too: what they ask, all that the network has brought, is there when the driver gets its turn, and
//! no thread had to be woken for it.

use super::Hosted;
use super::disk::{Disk, Failed};
use super::loader::{self, Loaders};
use super::mailbox::Mailbox;
use super::requests::Requests;
use super::unapplied::Unapplied;
use super::writer::Queued;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::metrics::ActorMetrics;
use crate::service::Service;
use crate::transport::{Inbox, Transport};
use prometheus_client::metrics::counter::Counter;
use rhumb_core::actor::{Batch, Body, Effect, Effects, Gated, Input, Load, Token};
use rhumb_core::{SiteId, Span};
use rhumb_store::{Engine, Newest, Store};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

/// So often the driver looks whether more has arrived before it has a group written.
const GATHER_ROUNDS: usize = 8;

/// Its belongings.
pub struct Driver<A: Hosted, E> {
    pub site: SiteId,
    pub service: Service,
    pub actor: A,
    pub clock: Clock,
    pub store: Arc<Store<E>>,
    pub mailbox: Arc<Mailbox<A>>,
    pub requests: Arc<Requests<A>>,
    pub transport: Arc<Transport>,
    pub disk: Disk<A, E>,
    pub unapplied: Unapplied,
    pub newest: Newest,
    pub loaders: Arc<Loaders>,
    pub failure: Failure,
    pub recovering: watch::Sender<usize>,
    pub metrics: ActorMetrics,
}

/// The site stops or has failed; the reason was reported.
struct Ended;

impl From<Failed> for Ended {
    fn from(Failed: Failed) -> Ended {
        Ended
    }
}

/// However the thread ends, nobody may wait for an answer that will not come.
struct End<A: Hosted> {
    mailbox: Arc<Mailbox<A>>,
    requests: Arc<Requests<A>>,
}

impl<A: Hosted> Drop for End<A> {
    fn drop(&mut self) {
        self.mailbox.close();
        self.requests.stop();
    }
}

/// What changes from step to step.
struct Progress<A: Hosted> {
    fx: Effects<A>,
    /// By instant, then in the order set. As many as the actor sets.
    timers: BTreeMap<(Instant, u64), A::Timer>,
    timers_set: u64,
    /// Short loads, answered before anything else is taken.
    loaded: VecDeque<Input<A>>,
    /// Loads and notifications that the actor waits for.
    outstanding: usize,
    events: BTreeMap<&'static str, Counter>,
}

impl<A: Hosted, E: Engine> Driver<A, E> {
    /// Runs the actor, once the incarnation of the site has begun, until the mailbox is closed.
    pub async fn run(mut self) {
        let _guard = self.failure.guard(self.service.actor());
        let _end = End { mailbox: Arc::clone(&self.mailbox), requests: Arc::clone(&self.requests) };
        if !self.begins().await {
            return;
        }
        let mut progress = Progress {
            fx: Effects::new(tracing::enabled!(target: "rhumb::trace", tracing::Level::TRACE)),
            timers: BTreeMap::new(),
            timers_set: 0,
            loaded: VecDeque::new(),
            outstanding: 0,
            events: BTreeMap::new(),
        };
        if self.step(Input::Start, &mut progress).is_ok() && self.disk.flush().is_ok() {
            let Ended = self.serve(&mut progress).await;
        }
    }

    /// Waits until the incarnation of the site begins. False if the mailbox is closed before that.
    async fn begins(&mut self) -> bool {
        let (mut begun, mut none) = (self.transport.clocks().begun(), VecDeque::new());
        tokio::select! {
            begun = begun.wait_for(|begun| *begun) => begun.is_ok(),
            // The site's own inputs begin with the first step, so that this ends for that reason alone.
            _ = self.mailbox.take(&mut none, false, None) => false,
        }
    }

    async fn serve(&mut self, progress: &mut Progress<A>) -> Ended {
        let mut taken = VecDeque::new();
        let mut recovered = false;
        loop {
            // Messages and requests wait until all that the first step led to is read and on disk.
            if !recovered && progress.outstanding == 0 {
                recovered = true;
                self.recovering.send_modify(|services| *services -= 1);
            }
            let next_timer = progress.timers.first_key_value().map(|(&(instant, _), _)| instant);
            if !self.mailbox.take(&mut taken, recovered, next_timer).await {
                return Ended;
            }
            if let Err(ended) = self.work(&mut taken, recovered, progress).await {
                return ended;
            }
            // A mailbox that fills as fast as it is emptied would leave no turn to anybody else.
            consume_budget().await;
        }
    }

    /// Steps with all that was taken, and with what arrives while a larger group is worth it; then has it written.
    async fn work(&mut self, taken: &mut VecDeque<Input<A>>, outside: bool, progress: &mut Progress<A>) -> Result<(), Ended> {
        let mut rounds = 0;
        loop {
            self.fire(progress)?;
            for input in taken.drain(..) {
                self.step(input, progress)?;
            }
            if rounds == GATHER_ROUNDS || !self.disk.gathers() {
                break;
            }
            rounds += 1;
            // Now the network brings what has come meanwhile, and clients on this thread pass it on.
            yield_now().await;
            match self.mailbox.try_take(taken, outside) {
                Some(open) => open.then_some(()).ok_or(Ended)?,
                None => break,
            }
        }
        Ok(self.disk.flush()?)
    }

    /// Steps with the timers that have run out.
    fn fire(&mut self, progress: &mut Progress<A>) -> Result<(), Ended> {
        let now = Instant::now();
        while let Some(entry) = progress.timers.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let timer = entry.remove();
            self.step(Input::Timer(timer), progress)?;
        }
        Ok(())
    }

    /// One step, and those of the short loads that it leads to.
    fn step(&mut self, input: Input<A>, progress: &mut Progress<A>) -> Result<(), Ended> {
        let mut next = Some(input);
        while let Some(input) = next {
            if matches!(input, Input::Loaded { .. } | Input::Persisted { .. }) {
                progress.outstanding -= 1;
            }
            let begun = Instant::now();
            self.actor.step(self.clock.now(), input, &mut progress.fx);
            for effect in progress.fx.take() {
                self.carry_out(effect, progress)?;
            }
            self.metrics.step.observe(begun.elapsed().as_secs_f64());
            next = progress.loaded.pop_front();
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect<A>, progress: &mut Progress<A>) -> Result<(), Ended> {
        match effect {
            Effect::Send { to, note } if to == self.site => {
                self.mailbox.push_inner(Input::Message { from: to, body: Body::Note(note) });
            }
            Effect::Send { to, note } => self.transport.send(self.service, to, &Body::<A::Note, A::Promise>::Note(note)),
            Effect::SetTimer { timer, after } => {
                progress.timers_set += 1;
                progress.timers.insert((Instant::now() + duration(after), progress.timers_set), timer);
            }
            Effect::Load { token, load } => self.load(token, load, progress)?,
            Effect::Persist { batch, token, then } => self.persist(batch, token, then, progress)?,
            Effect::Answer { id, answer } => self.requests.answer([(id, answer)]),
            Effect::Collect(collect) => self.loaders.collect(collect),
            Effect::Count(event) => {
                progress.events.entry(event).or_insert_with(|| self.metrics.event(event)).inc();
            }
            Effect::Trace(line) => tracing::trace!(target: "rhumb::trace", "{line}"),
        }
        Ok(())
    }

    fn load(&mut self, token: Token, load: Load, progress: &mut Progress<A>) -> Result<(), Ended> {
        progress.outstanding += 1;
        let is_short = loader::is_short(&load);
        if is_short && let Some(loaded) = self.newest.answer(&load) {
            progress.loaded.push_back(Input::Loaded { token, loaded });
            return Ok(());
        }
        if self.unapplied.concern(&load) {
            return Ok(self.disk.queue(Queued::Load { token, load })?);
        }
        if !is_short {
            self.loaders.load(token, load);
            return Ok(());
        }
        match self.store.load_through(&mut self.newest, &load) {
            Ok(loaded) => progress.loaded.push_back(Input::Loaded { token, loaded }),
            Err(error) => {
                self.failure.report(error.to_string());
                return Err(Ended);
            }
        }
        Ok(())
    }

    fn persist(&mut self, batch: Batch, token: Option<Token>, then: Vec<Gated<A>>, progress: &mut Progress<A>) -> Result<(), Ended> {
        progress.outstanding += usize::from(token.is_some());
        self.unapplied.queue(&batch);
        self.newest.note(&batch);
        Ok(self.disk.queue(Queued::Write { batch, token, then })?)
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.as_micros())
}
