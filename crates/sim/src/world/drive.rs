//! The driver's loop in virtual time: what each event does, and how an actor's effects are carried out.

use super::World;
use crate::client::{ClientEvent, Next, Reply};
use crate::disk::Waiting;
use crate::error::SimError;
use crate::fault::Fault;
use crate::network::TOO_LARGE;
use crate::planted::Planted;
use rhumb_core::actor::{Actor, Batch, Body, Collect, Effect, Effects, Gated, Input, MESSAGE_BYTES_MAX, RequestId, Token, UNSYNCED_MAX};
use rhumb_core::record::encoded_bytes;
use rhumb_core::{Load, Loaded, SiteId, Span, Time, work};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Versions removed per call of the store's collection, which the driver repeats until all is collected.
const COLLECT_STEP: usize = 1_000;

/// Syncs that failed are counted under this name.
pub(crate) const SYNC_FAILED: &str = "disk.sync_failed";

/// What is scheduled.
pub(crate) enum Event<A: Actor> {
    /// A message reaches a site, whichever incarnation that is in.
    Arrival { from: SiteId, to: SiteId, sent: Time, body: Body<A::Note, A::Promise> },
    /// An input to one incarnation of a site: a timer, an answer of the store.
    Input { site: SiteId, incarnation: u64, input: Input<A> },
    /// The store of one incarnation of a site answers.
    Load { site: SiteId, incarnation: u64, token: Token, load: Load },
    /// A site steps with the first input that waits.
    Turn { site: SiteId, incarnation: u64 },
    /// A sync of a site's disk ends.
    Synced { site: SiteId, incarnation: u64 },
    /// What nothing waits for has been without a sync for long enough.
    FallsDue { site: SiteId, incarnation: u64 },
    /// A site compares its clock with those of the others.
    ComparesClocks { site: SiteId, process: u64 },
    /// A site that stood still goes on.
    StallOver(SiteId),
    /// A client is told something.
    Client { client: usize, event: ClientEvent<A::Answer> },
    /// A request to a site that was down is refused.
    Refused(RequestId),
    /// A fault strikes, unless the world has been healed since it was scheduled.
    Fault { healings: u64, fault: Fault },
}

impl<A: Actor> World<A> {
    pub(crate) fn happen(&mut self, event: Event<A>) {
        match event {
            Event::Arrival { from, to, sent, body } => self.arrive(from, to, sent, body),
            Event::Input { site, incarnation, input } => {
                if self.is_alive(site, incarnation) {
                    self.input(site, input);
                }
            }
            Event::Load { site, incarnation, token, load } => {
                if self.is_alive(site, incarnation) {
                    let loaded = self.site(site).store.load(&load).expect("memory does not fail");
                    self.loaded(site, token, loaded, self.now);
                }
            }
            Event::Turn { site, incarnation } => {
                if self.is_alive(site, incarnation) {
                    self.turn(site);
                }
            }
            Event::Synced { site, incarnation } => {
                if self.is_alive(site, incarnation) {
                    self.synced(site);
                }
            }
            Event::FallsDue { site, incarnation } => {
                if self.is_alive(site, incarnation) {
                    self.fall_due(site);
                }
            }
            Event::ComparesClocks { site, process } => self.compare_clocks(site, process),
            Event::StallOver(site) => self.go_on(site),
            Event::Client { client, event } => self.tell_client(client, event),
            Event::Refused(id) => self.lose_request(id),
            Event::Fault { healings, fault } => {
                if healings == self.healings {
                    self.strike(&fault);
                }
            }
        }
    }

    fn is_alive(&self, site: SiteId, incarnation: u64) -> bool {
        self.is_up(site) && self.incarnation(site) == incarnation
    }

    /// Begins an incarnation of `site`.
    pub(crate) fn begin_incarnation(&mut self, site: SiteId) {
        let incarnation = self.site(site).incarnation + 1;
        let actor = (self.factory)(site, incarnation);
        self.site_mut(site).start(actor);
        self.trace.line(self.now, format_args!("{site} starts incarnation {incarnation}"));
        self.input(site, Input::Start);
    }

    fn arrive(&mut self, from: SiteId, to: SiteId, sent: Time, body: Body<A::Note, A::Promise>) {
        if self.is_up(to) && !self.is_introduced(from, to) {
            self.trace.line(self.now, format_args!("{to} does not know {from}: {body}"));
        } else if self.is_up(to) && from != to && !self.admits(to, sent) {
            *self.probes.entry("clock.refused").or_default() += 1;
            self.trace.line(self.now, format_args!("{to} refuses what {from} sent at {sent} by its clock: {body}"));
        } else if self.is_up(to) {
            self.input(to, Input::Message { from, body });
        } else {
            self.trace.line(self.now, format_args!("{to} is down ← {from} {body}"));
        }
    }

    /// True if `to` takes what `from` sends: their processes have met, or meet now.
    fn is_introduced(&mut self, from: SiteId, to: SiteId) -> bool {
        self.have_met(from, to) || (self.site(from).is_running() && self.meet(from, to))
    }

    /// Lets `input` wait for its step at `site`, which is up.
    pub(crate) fn input(&mut self, site: SiteId, input: Input<A>) {
        let process = self.site_mut(site).process.as_mut().expect("only a site that is up is given inputs");
        process.inbox.push_back(input);
        self.schedule_turn(site);
    }

    fn schedule_turn(&mut self, site: SiteId) {
        let (now, local) = (self.now, self.config.local);
        let state = self.site_mut(site);
        let (incarnation, stalled_until) = (state.incarnation, state.stalled_until);
        let [step, request, remote] = [Span::ZERO, local.request, local.remote].map(|more| state.work(local.step + more));
        let Some(process) = &mut state.process else { return };
        if process.turn.is_none()
            && let Some(first) = process.inbox.front()
        {
            let work = match first {
                Input::Client { .. } => request,
                Input::Message { from, .. } if *from != site => remote,
                _ => step,
            };
            let turn = (now.max(process.busy_until) + work).max(stalled_until);
            process.turn = Some(turn);
            self.schedule.push(turn, Event::Turn { site, incarnation });
        }
    }

    fn turn(&mut self, site: SiteId) {
        let now = self.now;
        let state = self.site_mut(site);
        let (clock, steady) = (state.clock.read(now), state.clock.steady(now));
        let stalled_until = state.stalled_until;
        let Some(process) = &mut state.process else { return };
        if process.turn != Some(now) {
            return;
        }
        process.turn = None;
        if now < stalled_until {
            return self.schedule_turn(site);
        }
        let input = process.inbox.pop_front().expect("a turn is scheduled only for an input that waits");
        self.begin_step(site, &input);
        let effects = Effects::new(self.trace.is_on()).at_steady(steady);
        let mut effects = if self.agreements.is_some() { effects.recording() } else { effects };
        let Some(process) = &mut self.site_mut(site).process else { return };
        let step = AssertUnwindSafe(|| process.actor.step(clock, input, &mut effects));
        let (stepped, units) = work::measure(|| catch_unwind(step));
        self.charge_units(site, units);
        match stepped {
            Ok(()) => {
                self.compare(site, effects.take_agreed());
                self.carry_out(site, effects.take());
            }
            Err(panic) => self.fail(SimError::Panicked { at: now, site, message: panic_message(&*panic) }),
        }
        self.end_step(site);
        self.begin_sync(site);
        self.schedule_turn(site);
    }

    /// Carries out a step's effects in order; only some of them if a crash in the middle is due.
    fn carry_out(&mut self, site: SiteId, mut effects: Vec<Effect<A>>) {
        let armed = self.site(site).process.as_ref().and_then(|process| process.crash_mid_step);
        // Lines for the trace do not count: a traced run must crash where an untraced one does.
        let counted = effects.iter().filter(|effect| !matches!(effect, Effect::Trace(_))).count() as u64;
        let crash = armed.filter(|_| counted >= 2);
        if crash.is_some() {
            let mut left = self.rng.between(1, counted - 1);
            effects.retain(|effect| {
                let kept = left > 0;
                left -= u64::from(kept && !matches!(effect, Effect::Trace(_)));
                kept
            });
        }
        for effect in effects {
            self.carry_out_one(site, effect);
            if !self.is_up(site) {
                return;
            }
        }
        if let Some(down) = crash {
            self.crash(site, down);
        }
    }

    fn carry_out_one(&mut self, site: SiteId, effect: Effect<A>) {
        match effect {
            Effect::Send { to, note } => self.send(site, to, Body::Note(note)),
            Effect::SetTimer { timer, after } => {
                let due = self.now + self.site(site).clock.true_span(after);
                self.schedule_input(site, due, Input::Timer(timer));
            }
            Effect::Load { .. } if self.site(site).is_damaged => self.refuse(site, "a block of its disk cannot be read"),
            Effect::Load { token, load } => {
                let local = self.config.local;
                let answered = self.now + if load.is_short() { local.load } else { local.long_load };
                let state = self.site_mut(site);
                if load.is_short() {
                    let process = state.process.as_mut().expect("effects are those of a site that is up");
                    let loaded = state.store.load_through(&mut process.newest, &load).expect("memory does not fail");
                    self.loaded(site, token, loaded, answered);
                } else {
                    // As late as it can be: it shows what is written until then.
                    let incarnation = state.incarnation;
                    self.schedule.push(answered, Event::Load { site, incarnation, token, load });
                }
            }
            Effect::Persist { batch, token, then } => self.persist(site, &batch, token, then),
            Effect::Answer { id, answer } => self.answer(site, id, answer),
            Effect::Collect(collect) => self.collect(site, collect),
            Effect::Count(event) => *self.probes.entry(event).or_default() += 1,
            Effect::Trace(line) => self.trace.line(self.now, format_args!("{site} · {line}")),
        }
    }

    fn loaded(&mut self, site: SiteId, token: Token, loaded: Loaded, at: Time) {
        self.charge_loaded(site, &loaded);
        self.schedule_input(site, at, Input::Loaded { token, loaded });
    }

    fn schedule_input(&mut self, site: SiteId, at: Time, input: Input<A>) {
        let incarnation = self.site(site).incarnation;
        self.schedule.push(at, Event::Input { site, incarnation, input });
    }

    fn send(&mut self, from: SiteId, to: SiteId, body: Body<A::Note, A::Promise>) {
        assert!(self.config.topology.has(to), "{from} sends to {to}, which the cluster does not have: {body}");
        // What a site tells itself crosses no network.
        let bytes = if from == to { 0 } else { encoded_bytes(&body) };
        if bytes > MESSAGE_BYTES_MAX {
            *self.probes.entry(TOO_LARGE).or_default() += 1;
            return self
                .trace
                .line(self.now, format_args!("{from} → {to} lost: {bytes} bytes, of which a frame holds {MESSAGE_BYTES_MAX}"));
        }
        let fate = self.network.fate(self.now, from, to);
        let sent = self.clock(from);
        if let Some(again) = fate.again {
            self.schedule.push(again, Event::Arrival { from, to, sent, body: body.clone() });
        }
        match fate.arrives {
            Some(at) => self.schedule.push(at, Event::Arrival { from, to, sent, body }),
            None => self.trace.line(self.now, format_args!("{from} → {to} lost: {body}")),
        }
    }

    fn persist(&mut self, site: SiteId, batch: &Batch, token: Option<Token>, mut then: Vec<Gated<A>>) {
        self.site(site).store.apply(batch).expect("memory does not fail");
        self.charge_written(site, batch);
        if self.rules.breaks(Planted::AnswerBeforeSync) {
            self.let_go(site, std::mem::take(&mut then));
        }
        let is_noted = !self.rules.breaks(Planted::NewestNotNoted);
        let state = self.site_mut(site);
        let process = state.process.as_mut().expect("effects are those of a site that is up");
        if is_noted {
            process.newest.note(batch);
        }
        process.disk.write(batch.ops.is_empty(), Waiting { token, then });
        self.release(site);
    }

    fn begin_sync(&mut self, site: SiteId) {
        let now = self.now;
        let state = self.site_mut(site);
        let (incarnation, ends) = (state.incarnation, now + state.sync.at(now));
        let Some(process) = &mut state.process else { return };
        if process.disk.begin() {
            // It covers all that is written.
            process.due = None;
            self.schedule.push(ends, Event::Synced { site, incarnation });
        } else if process.due.is_none() && process.disk.has_unneeded() {
            process.due = Some(now + UNSYNCED_MAX);
            self.schedule.push(now + UNSYNCED_MAX, Event::FallsDue { site, incarnation });
        }
    }

    /// What nothing waits for falls due, unless a sync has covered what this was scheduled for.
    fn fall_due(&mut self, site: SiteId) {
        let now = self.now;
        match &mut self.site_mut(site).process {
            Some(process) if process.due == Some(now) => {
                process.due = None;
                process.disk.fall_due();
            }
            _ => return,
        }
        // A process that stands still begins none, and does once it goes on.
        if self.now >= self.site(site).stalled_until {
            self.begin_sync(site);
        }
    }

    /// A sync ends: the disk has done its work even if the process stands still, which learns of it once it goes on.
    fn synced(&mut self, site: SiteId) {
        let now = self.now;
        if let Some(down) = self.site_mut(site).process.as_mut().and_then(|process| process.fail_sync.take()) {
            *self.probes.entry(SYNC_FAILED).or_default() += 1;
            self.trace.line(now, format_args!("{site} fails to sync, and ends"));
            return self.fail_sync(site, down);
        }
        let state = self.site_mut(site);
        state.store.sync().expect("memory does not fail");
        state.folder.synced();
        if let Some(process) = &mut state.process {
            process.disk.finish();
        }
        if now >= state.stalled_until {
            self.release(site);
            self.begin_sync(site);
        }
    }

    /// A sync has failed: the process ends, and nothing that waited for it leaves.
    fn fail_sync(&mut self, site: SiteId, down: Option<Span>) {
        if self.rules.breaks(Planted::SyncFailureIgnored)
            && let Some(process) = &mut self.site_mut(site).process
        {
            process.disk.finish();
            self.release(site);
        }
        self.crash(site, down);
    }

    /// Carries out what waited for writes that are durable now.
    fn release(&mut self, site: SiteId) {
        while let Some(Waiting { token, then }) = self.site_mut(site).process.as_mut().and_then(|process| process.disk.release()) {
            self.let_go(site, then);
            if let Some(token) = token {
                self.input(site, Input::Persisted { token });
            }
        }
    }

    fn let_go(&mut self, site: SiteId, gated: Vec<Gated<A>>) {
        for gated in gated {
            match gated {
                Gated::Send { to, promise } => self.send(site, to, Body::Promise(promise)),
                Gated::Answer { id, answer } => self.answer(site, id, answer),
            }
        }
    }

    fn go_on(&mut self, site: SiteId) {
        if self.now >= self.site(site).stalled_until {
            self.release(site);
            self.begin_sync(site);
            self.schedule_turn(site);
        }
    }

    fn collect(&mut self, site: SiteId, collect: Collect) {
        let store = &self.site(site).store;
        while store.collect(collect, COLLECT_STEP).expect("memory does not fail").more {}
    }

    fn answer(&mut self, site: SiteId, id: RequestId, answer: A::Answer) {
        match self.outstanding.remove(&id) {
            Some(outstanding) if outstanding.site == site => {
                self.trace.line(self.now, format_args!("{site} → client, request {id} answered"));
                match outstanding.client {
                    Some(client) => self.schedule.push(self.now, Event::Client { client, event: ClientEvent::Answered(answer) }),
                    None => self.replies.push(Reply { at: self.now, site, id, answer: Some(answer) }),
                }
            }
            _ => self.fail(SimError::Violation {
                at: self.now,
                what: format!("site {site} answers request {id}, which it was not asked or has answered before"),
            }),
        }
    }

    /// The site asked is down: whoever waits for this answer is told so.
    pub(crate) fn lose_request(&mut self, id: RequestId) {
        let Some(outstanding) = self.outstanding.remove(&id) else { return };
        match outstanding.client {
            Some(client) => self.schedule.push(self.now, Event::Client { client, event: ClientEvent::GatewayLost }),
            None => self.replies.push(Reply { at: self.now, site: outstanding.site, id, answer: None }),
        }
    }

    fn tell_client(&mut self, index: usize, event: ClientEvent<A::Answer>) {
        let client = &mut self.clients[index];
        let site = client.site;
        match client.program.next(self.now, event) {
            Next::Request(request) => {
                self.request(site, request, Some(index));
            }
            Next::Wait(span) => self.schedule.push(self.now + span, Event::Client { client: index, event: ClientEvent::Woken }),
            Next::Done => client.done = true,
        }
    }
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into())
}
