//! The actor's driver: takes inputs, steps the actor, carries out what it writes down. The loop of the contract in
//! [`rhumb_core::actor`]. Who drives it, and when: `cell.rs`.

use super::Hosted;
use super::disk::{Disk, Failed};
use super::loader::Loaders;
use super::mailbox::Mailbox;
use super::requests::Requests;
use super::unapplied::Unapplied;
use super::writer::Queued;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::metrics::ActorMetrics;
use crate::service::Service;
use crate::transport::Transport;
use prometheus_client::metrics::counter::Counter;
use rhumb_core::actor::{Batch, Body, Effect, Effects, Gated, Input, Load, Token};
use rhumb_core::{SiteId, Span};
use rhumb_store::{Engine, Newest, Store};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Its belongings.
pub struct Parts<A: Hosted, E> {
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

/// How a turn at the actor ended.
pub enum Left {
    /// Nothing waits.
    Nothing,
    /// Something waits: enough steps were made.
    Steps,
    /// Something waits, for room in a queue.
    Room,
}

/// The site stops or has failed; the reason was reported.
pub struct Ended;

impl From<Failed> for Ended {
    fn from(Failed: Failed) -> Ended {
        Ended
    }
}

/// Steps the actor.
pub struct Driver<A: Hosted, E> {
    parts: Parts<A, E>,
    fx: Effects<A>,
    /// What was taken from the mailbox and not stepped with yet.
    taken: VecDeque<Input<A>>,
    /// By instant, then in the order set. As many as the actor sets.
    timers: BTreeMap<(Instant, u64), A::Timer>,
    timers_set: u64,
    /// When the actor's own thread wakes of itself, if it does.
    wakes_at: Option<Instant>,
    /// Short loads, answered before anything else is taken.
    loaded: VecDeque<Input<A>>,
    /// Loads and notifications that the actor waits for.
    outstanding: usize,
    recovered: bool,
    events: BTreeMap<&'static str, Counter>,
}

impl<A: Hosted, E: Engine> Driver<A, E> {
    /// A driver that has not begun.
    pub fn new(parts: Parts<A, E>) -> Driver<A, E> {
        Driver {
            parts,
            fx: Effects::new(tracing::enabled!(target: "rhumb::trace", tracing::Level::TRACE)),
            taken: VecDeque::new(),
            timers: BTreeMap::new(),
            timers_set: 0,
            wakes_at: None,
            loaded: VecDeque::new(),
            outstanding: 0,
            recovered: false,
            events: BTreeMap::new(),
        }
    }

    /// Makes the first step.
    pub fn begin(&mut self) -> Result<(), Ended> {
        self.step(Input::Start)?;
        self.flush()
    }

    /// Steps with the timers that have run out and with what waits in the mailbox, as long as there are `steps` left.
    pub fn work(&mut self, steps: &mut usize) -> Result<Left, Ended> {
        let now = Instant::now();
        loop {
            while self.is_due(now) || !self.taken.is_empty() {
                if *steps == 0 {
                    return Ok(Left::Steps);
                }
                if !self.parts.disk.has_room() || !self.parts.loaders.has_room() {
                    return Ok(Left::Room);
                }
                *steps -= 1;
                if let Some(input) = self.next(now) {
                    self.step(input)?;
                }
            }
            self.recover();
            match self.parts.mailbox.take(&mut self.taken) {
                Some(true) => {}
                Some(false) => return Ok(Left::Nothing),
                None => {
                    // What was stepped with is made durable.
                    self.flush()?;
                    return Err(Ended);
                }
            }
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next_timer().is_some_and(|next| next <= now)
    }

    /// What to step with next: timers come first.
    fn next(&mut self, now: Instant) -> Option<Input<A>> {
        if self.is_due(now) { self.timers.pop_first().map(|(_, timer)| Input::Timer(timer)) } else { self.taken.pop_front() }
    }

    /// Messages and requests wait until all that the first step led to is read and on disk.
    fn recover(&mut self) {
        if !self.recovered && self.outstanding == 0 {
            self.recovered = true;
            self.parts.mailbox.open();
            self.parts.recovering.send_modify(|services| *services -= 1);
        }
    }

    /// True if more may soon join what is to be written.
    pub fn gathers(&self) -> bool {
        self.parts.disk.gathers()
    }

    /// There is nothing more to do for now: what waits for nobody else is written.
    pub fn flush(&mut self) -> Result<(), Ended> {
        Ok(self.parts.disk.flush()?)
    }

    /// The actor's own thread is about to sleep. Returns until when at the most; None if something was taken and waits.
    pub fn doze(&mut self) -> Option<Option<Instant>> {
        self.wakes_at = self.next_timer();
        self.parts.mailbox.doze();
        self.taken.is_empty().then_some(self.wakes_at)
    }

    /// True if the actor's own thread would wake too late for a timer that was set since it fell asleep.
    pub fn wakes_late(&self) -> bool {
        self.next_timer().is_some_and(|next| self.wakes_at.is_none_or(|wakes_at| next < wakes_at))
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.first_key_value().map(|(&(instant, _), _)| instant)
    }

    /// One step, and those of the short loads that it leads to.
    fn step(&mut self, input: Input<A>) -> Result<(), Ended> {
        let mut next = Some(input);
        while let Some(input) = next {
            if matches!(input, Input::Loaded { .. } | Input::Persisted { .. }) {
                self.outstanding -= 1;
            }
            let begun = Instant::now();
            self.parts.actor.step(self.parts.clock.now(), input, &mut self.fx);
            for effect in self.fx.take() {
                self.carry_out(effect)?;
            }
            self.parts.metrics.step.observe(begun.elapsed().as_secs_f64());
            next = self.loaded.pop_front();
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect<A>) -> Result<(), Ended> {
        let parts = &mut self.parts;
        match effect {
            Effect::Send { to, note } if to == parts.site => {
                parts.mailbox.push_inner(Input::Message { from: to, body: Body::Note(note) });
            }
            Effect::Send { to, note } => parts.transport.send(parts.service, to, &Body::<A::Note, A::Promise>::Note(note)),
            Effect::SetTimer { timer, after } => {
                self.timers_set += 1;
                self.timers.insert((Instant::now() + duration(after), self.timers_set), timer);
            }
            Effect::Load { token, load } => self.load(token, load)?,
            Effect::Persist { batch, token, then } => self.persist(batch, token, then)?,
            Effect::Answer { id, answer } => parts.requests.answer([(id, answer)]),
            Effect::Collect(collect) => parts.disk.queue(Queued::Collect(collect))?,
            Effect::Count(event) => {
                self.events.entry(event).or_insert_with(|| parts.metrics.event(event)).inc();
            }
            Effect::Trace(line) => tracing::trace!(target: "rhumb::trace", "{line}"),
        }
        Ok(())
    }

    fn load(&mut self, token: Token, load: Load) -> Result<(), Ended> {
        self.outstanding += 1;
        let is_short = load.is_short();
        let parts = &mut self.parts;
        if is_short && let Some(loaded) = parts.newest.answer(&load) {
            self.loaded.push_back(Input::Loaded { token, loaded });
            return Ok(());
        }
        if parts.unapplied.concern(&load) {
            return Ok(parts.disk.queue(Queued::Load { token, load })?);
        }
        if !is_short {
            return parts.loaders.load(token, load).then_some(()).ok_or(Ended);
        }
        match parts.store.load_through(&mut parts.newest, &load) {
            Ok(loaded) => self.loaded.push_back(Input::Loaded { token, loaded }),
            Err(error) => {
                parts.failure.report(error.to_string());
                return Err(Ended);
            }
        }
        Ok(())
    }

    fn persist(&mut self, batch: Batch, token: Option<Token>, then: Vec<Gated<A>>) -> Result<(), Ended> {
        self.outstanding += usize::from(token.is_some());
        self.parts.unapplied.queue(&batch);
        self.parts.newest.note(&batch);
        Ok(self.parts.disk.queue(Queued::Write { batch, token, then })?)
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.as_micros())
}
