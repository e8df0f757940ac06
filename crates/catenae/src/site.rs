//! The actor: one site with its roles. It hands each message, load, write and end of an epoch to the role that it concerns, and what one role
//! returns to the next.
//!
//! ```text
//!   clients ─▶ Coordinator ◀─▶ Forwarding        Streams ── an entry is chosen ─▶ Coordinator, Forwarding, Epochs
//!                  │ seals an epoch                  ▲    ── more is complete ──▶ Epochs ── scheduled ─▶ Chains ── vote ─▶ Coordinator
//!                  └─────────────────────────────────┘                               └── settled ──▶ Reads, Chains, Coordinator
//! ```
//!
//! A site drops what arrives before it has recovered from its disk, as if it had been lost on the way.

use super::agreement::{Effect, Event, Moment, Part};
use super::asked::{Asked, Asker};
use super::chains::Chains;
use super::config::{
    AHEAD_MAX, BACKLOG_MAX, BATCH_MAX, Config, FLOODED_FACTOR, PAGE_ENTRIES_MAX, RUN_LOADS_MAX, UNCHOSEN_MAX, WAITING_READS_MAX,
};
use super::context::{Context, Job, Shared};
use super::coordinator::{Confirmed, Coordinator};
use super::epoch::Epoch;
use super::epochs::Epochs;
use super::forwarding::Forwarding;
use super::message::{Admin, Answer, Note, Promise, Request, Status};
use super::nearby::Near;
use super::planted::Planted;
use super::reads::{Read, Reads, Wanted};
use super::stream::Found;
use super::stream_id::StreamId;
use super::streams::{Recovered, Streams};
use rhumb_commit::one_shot::Freshness;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{RequestId, Token};
use rhumb_core::{Actor, Body, Effects, Input, Inspect, Loaded, Rules, SiteId, Span, Table, Time, Topology, work};
use std::sync::Arc;

/// A region has a coordinator and a secondary one, or two coordinators.
pub const SITES_PER_REGION_MAX: u16 = 2;

/// The timers of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timer {
    /// An epoch ends.
    Epoch,
}

/// One site.
pub struct Site {
    shared: Shared,
    roles: Roles,
}

/// The roles of a site. Each has its state to itself.
struct Roles {
    streams: Streams,
    coordinator: Coordinator,
    forwarding: Forwarding,
    epochs: Epochs,
    chains: Chains,
    reads: Reads,
}

impl Site {
    /// The site `me`, before its first step.
    ///
    /// # Panics
    /// If the cluster does not have it, a region has more than a coordinator and a secondary one, or the settings contradict one
    /// another.
    pub fn new(me: SiteId, topology: Arc<Topology>, config: Config) -> Site {
        assert!(topology.has(me), "a site belongs to its cluster");
        assert!(topology.shard_count() <= SITES_PER_REGION_MAX, "a region has a coordinator and at most one secondary coordinator");
        config.check(&topology);
        let shared = Shared::new(me, topology, config);
        let roles = Roles {
            streams: Streams::new(&shared),
            coordinator: Coordinator::new(shared.config.coordinators),
            forwarding: Forwarding::default(),
            epochs: Epochs::default(),
            chains: Chains::default(),
            reads: Reads::default(),
        };
        Site { shared, roles }
    }

    /// The same site by other rules.
    pub fn with_rules(mut self, rules: Rules<Planted>) -> Site {
        self.shared.rules = rules;
        if rules.breaks(Planted::AnsweredAtHome) {
            self.roles.streams.agreed_alone(self.shared.own());
        }
        self
    }

    /// True once it has recovered from its disk.
    pub fn is_serving(&self) -> bool {
        self.roles.streams.are_recovered()
    }

    /// All up to this epoch is settled here.
    pub fn settled(&self) -> Epoch {
        self.roles.epochs.settled()
    }

    /// Entries of all streams that it keeps in memory.
    pub fn held_entries(&self) -> usize {
        self.roles.streams.kept()
    }

    /// What is agreed on in a stream.
    #[cfg(test)]
    pub(super) fn stream(&self, id: StreamId) -> &super::stream::Stream {
        self.roles.streams.view(id)
    }

    /// What is agreed on and not settled, to be changed by tests.
    #[cfg(test)]
    pub(super) fn backlog_mut(&mut self) -> &mut super::backlog::Backlog {
        self.roles.epochs.backlog_mut()
    }

    /// How it fares.
    pub fn status(&self) -> Status {
        let Site { shared, roles } = self;
        let (near, ending) = (roles.near(), roles.ending(shared));
        Status {
            serving: self.is_serving(),
            coordinator: roles.coordinator.epoch(),
            execution: roles.epochs.execution(),
            settled: roles.epochs.settled(),
            unsettled: roles.epochs.backlog().len(),
            passed_over: shared.topology.regions().filter(|region| near.is_passed_over(*region, ending, shared)).collect(),
            settling: roles.coordinator.settling(),
            tables: self.list_tables(),
        }
    }
}

impl Roles {
    fn near(&self) -> Near<'_> {
        Near { streams: &self.streams, epochs: &self.epochs }
    }

    /// True if nothing has been asked or told for a while, and nothing is under way.
    fn is_quiet(&self, cx: &Shared) -> bool {
        !cx.is_awake()
            && self.coordinator.is_idle()
            && self.forwarding.is_idle()
            && self.reads.are_idle()
            && self.epochs.are_idle()
            && self.streams.say_nothing_new()
    }

    /// The epoch that ends now, by this site's clock or those of the others; by those of the others alone if it is quiet.
    fn ending(&self, cx: &Shared) -> Epoch {
        if self.is_quiet(cx) { cx.heard() } else { cx.ended().max(cx.heard()) }
    }

    /// The epoch up to which a stream should have spoken. Who only stands by seals nothing, so that nobody can keep pace with its
    /// clock: it goes by the epochs of others, save for the coordinator whose place it is to take.
    fn due(&self, stream: StreamId, cx: &Shared) -> Epoch {
        if stream.region() != cx.me.region && self.streams.only_stands_by(cx) { cx.heard() } else { self.ending(cx) }
    }

    fn on_request(&mut self, id: RequestId, request: Request, cx: &mut Context<'_>) {
        match request {
            Request::Admin(Admin::Status) => unreachable!("answered by the site"),
            _ if !self.streams.are_recovered() => {
                cx.fx.answer(id, Answer::Failed(TxnError::Unavailable("the site is recovering".into())));
            }
            Request::Run(transaction) => self.on_run(id, transaction, cx),
            Request::Read { keys, ranges, reverse, freshness } => self.on_read(id, Wanted { keys, ranges, reverse }, freshness, cx),
        }
    }

    /// A client's transaction.
    fn on_run(&mut self, id: RequestId, transaction: Transaction, cx: &mut Context<'_>) {
        if let Err(invalid) = transaction.validate() {
            return cx.fx.answer(id, Answer::Failed(invalid.into()));
        }
        if self.streams.only_stands_by(cx) {
            return self.refuse(id, cx);
        }
        if let Err(error) = self.coordinator.check_room(&self.near(), cx) {
            return cx.fx.answer(id, Answer::Failed(error));
        }
        cx.stay_awake();
        self.direct(Asked { by: Asker::Client(id), transaction, since: cx.ticks, stays: false }, cx);
    }

    /// A client reads.
    fn on_read(&mut self, id: RequestId, wanted: Wanted, freshness: Freshness, cx: &mut Context<'_>) {
        if freshness != Freshness::Settled && self.reads.are_full(self.coordinator.reads()) {
            let full = format!("{WAITING_READS_MAX} reads wait already");
            return cx.fx.answer(id, Answer::Failed(TxnError::Unavailable(full)));
        }
        if let Some(read) = self.reads.on_read(id, wanted, freshness, &self.epochs, cx) {
            self.read_strictly(read, cx);
        }
    }

    /// A read that must see all that ended before it.
    fn read_strictly(&mut self, read: Read, cx: &mut Context<'_>) {
        if self.streams.only_stands_by(cx) {
            self.refuse(read.id(), cx);
        } else if cx.rules.breaks(Planted::StrictByClock) {
            self.reads.await_settled(cx.ended(), read, &self.epochs, cx);
        } else {
            cx.stay_awake();
            self.coordinator.read_strictly(read, cx.own());
        }
    }

    /// Sends a client to the coordinator, which is asked what is new: should it not answer, this site is to take over.
    fn refuse(&mut self, id: RequestId, cx: &mut Context<'_>) {
        cx.stay_awake();
        let own = cx.own();
        let coordinator = self.streams.view(own).promised().leader;
        self.on_stream(own, Event::Ask(coordinator), cx);
        let region = cx.topology.name(coordinator.region);
        let why = format!("this site stands by; connect to site {region}/{}, which coordinates its region", coordinator.shard);
        cx.fx.answer(id, Answer::Failed(TxnError::Unavailable(why)));
    }

    /// Brings what a client asks to the coordinator of its namespace's stream, here or at another site of the region.
    fn direct(&mut self, asked: Asked, cx: &mut Context<'_>) {
        let (stream, ending) = (cx.stream_of(&asked.transaction), self.ending(cx));
        if let Some(asked) = self.forwarding.forward(asked, stream, &self.streams, ending, cx) {
            self.coordinator.queue(asked, self.streams.carrier(stream, cx));
        }
    }

    fn on_note(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        let vote = match note {
            Note::Visit(visit) => self.chains.on_visit(visit, cx),
            Note::Cross { crossing, visit } => self.chains.on_cross(crossing, visit, &self.epochs, cx),
            Note::Claim { crossing, visit, open } => self.chains.on_claim(crossing, visit, open, &self.epochs, cx),
            Note::Granted { crossing, visit } => self.chains.on_granted(crossing, visit, &self.epochs, cx),
            Note::Through { crossing, transaction } => self.chains.on_through(crossing, transaction, &self.epochs),
            // That keeps nobody awake: over a wide area entries are overtaken by word of them, so that somebody always asks.
            Note::Pull { stream, after } => return self.on_stream(stream, Event::Pull { from, after }, cx),
            Note::Chosen { stream, first, entries, more } => {
                return self.on_stream(stream, Event::Chosen { from, first, entries, more }, cx);
            }
            Note::Prepare { stream, ballot, after } => return self.on_stream(stream, Event::Prepare { from, ballot, after }, cx),
            Note::Refused { stream, promised } => return self.on_stream(stream, Event::Refused(promised), cx),
            Note::Forward(forward) => {
                let stream = forward.stream;
                if let Some(asked) = self.forwarding.on_forward(from, forward, &self.streams, &self.coordinator, cx) {
                    self.coordinator.queue(asked, stream);
                }
                return;
            }
        };
        self.coordinator.vote(cx.me.region, vote);
    }

    fn on_promise(&mut self, from: SiteId, promise: Promise, cx: &mut Context<'_>) {
        match promise {
            Promise::Epoch { stream, ballot, first, entries } => {
                let is_flooded = self.near().is_flooded(stream);
                self.on_stream(stream, Event::Epoch { from, ballot, first, entries, is_flooded }, cx);
            }
            Promise::Held { stream, ballot, upto } => self.on_stream(stream, Event::Held { from, ballot, upto }, cx),
            Promise::Promised { stream, ballot, after, chosen, accepted, more } => {
                let part = Part { after, chosen, accepted, more };
                self.on_stream(stream, Event::Promised { from, ballot, part }, cx);
            }
            Promise::Settled { progress } => self.streams.hear_progress(from, progress),
            Promise::Sealed { name, index, place } => {
                let agreed = self.forwarding.on_sealed(from, name, index, place, &self.epochs, cx);
                agreed.into_iter().for_each(|agreed| self.epochs.await_run(agreed));
            }
        }
    }

    fn on_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        match cx.take_job(token) {
            Job::Recover => match self.streams.on_recovered(loaded, cx) {
                Some(Recovered::Settled(settled)) => self.epochs.resume(settled),
                Some(Recovered::All) => self.serve(cx),
                None => {}
            },
            Job::Run => {
                self.epochs.on_run_loaded(token, loaded, cx);
                self.settle(cx);
            }
            Job::Early => self.epochs.on_early_loaded(token, loaded, cx),
            Job::Read => self.reads.on_loaded(token, loaded, &self.epochs, cx),
            Job::Pulled(id) => {
                let event = self.streams.loaded(token, loaded);
                self.on_stream(id, event, cx);
            }
            Job::Held(_) => unreachable!("nothing is loaded to hold it"),
        }
    }

    fn on_persisted(&mut self, token: Token, cx: &mut Context<'_>) {
        let Job::Held(id) = cx.take_job(token) else { unreachable!("only entries are waited for") };
        let event = self.streams.durable(token);
        self.on_stream(id, event, cx);
    }

    /// All is read that earlier lives left.
    fn serve(&mut self, cx: &mut Context<'_>) {
        for id in cx.streams() {
            if id.region() == cx.me.region {
                self.coordinator.resume(id, self.streams.view(id).last_epoch());
            }
            self.on_stream(id, Event::Start, cx);
        }
        cx.stay_awake();
        self.execute(cx);
        wait_for_end_of_epoch(cx);
    }

    /// Tells the agreement on a stream of an event, and does what it wants done.
    fn on_stream(&mut self, id: StreamId, event: Event, cx: &mut Context<'_>) {
        for effect in self.streams.on(id, event, cx) {
            match effect {
                Effect::Chosen(found) => self.on_chosen(id, found, cx),
                Effect::Advanced => self.execute(cx),
                Effect::TookOver => {
                    let until = self.due(id, cx).plus(cx.config.ahead_epochs);
                    self.on_stream(id, Event::PassOver(until), cx);
                }
                Effect::HasMore(at) => {
                    if self.near().takes_more(id) {
                        self.on_stream(id, Event::Ask(at), cx);
                    }
                }
                effect => self.streams.carry_out(id, effect, cx),
            }
        }
    }

    /// An entry is chosen.
    fn on_chosen(&mut self, id: StreamId, found: Found, cx: &mut Context<'_>) {
        let Found { index, entry, covered, void } = found;
        work::add(1 + entry.batch.len());
        cx.fx.agree("entry", format_args!("{id}/{index}"), &entry);
        if id.region() == cx.me.region {
            if !void && let Some(Confirmed { agreed, reads }) = self.coordinator.confirm(id, &entry, cx.me) {
                if id == cx.own() {
                    self.forwarding.has_spoken(entry.epoch);
                }
                agreed.into_iter().for_each(|agreed| self.epochs.await_run(agreed));
                reads.into_iter().for_each(|read| self.reads.await_settled(entry.epoch, read, &self.epochs, cx));
            }
            self.coordinator.take_back_lost(id, covered, cx);
            if !void {
                let agreed = self.forwarding.on_chosen(id, index, &entry, &self.epochs, cx);
                agreed.into_iter().for_each(|agreed| self.epochs.await_run(agreed));
            }
            if cx.rules.breaks(Planted::ConflictByTiming) {
                self.epochs.answer_by_timing(id, &entry, cx);
            }
        }
        if !void {
            self.epochs.take_entry(id, entry, cx);
        }
    }

    /// Takes the epochs as far as what is agreed on allows.
    fn execute(&mut self, cx: &mut Context<'_>) {
        for epoch in self.epochs.complete(self.streams.complete(self.coordinator.epoch(), cx)) {
            self.epochs.schedule(epoch, cx);
            let near = Near { streams: &self.streams, epochs: &self.epochs };
            let vote = self.chains.on_scheduled(epoch, &near, cx);
            self.coordinator.vote(cx.me.region, vote);
        }
        self.epochs.judge(&self.streams, cx);
        self.epochs.run(cx);
        self.settle(cx);
    }

    /// Moves on what is settled.
    fn settle(&mut self, cx: &mut Context<'_>) {
        if let Some(settled) = self.epochs.settle() {
            self.chains.forget(settled);
            self.coordinator.measure_settling(settled, cx.now);
            self.reads.on_settled(&self.epochs, cx);
        }
    }

    fn on_end_of_epoch(&mut self, cx: &mut Context<'_>) {
        cx.ticks += 1;
        wait_for_end_of_epoch(cx);
        self.speak(cx);
        if cx.me.shard > 0 && !self.streams.speaks_for(cx.me.region) {
            self.coordinator.forget_votes(cx.me.region);
        }
        let near = Near { streams: &self.streams, epochs: &self.epochs };
        let votes = self.chains.on_end_of_epoch(&near, cx);
        self.coordinator.vote(cx.me.region, votes);
        for id in cx.streams() {
            let takes_more = self.near().takes_more(id);
            self.on_stream(id, Event::LookForGaps { takes_more }, cx);
        }
        self.take_back_forwarded(cx);
        self.expire(cx);
        self.streams.clean_up(self.epochs.settled(), self.is_quiet(cx), cx);
    }

    /// At the end of an epoch: what this site leads goes on, and what is silent is taken over.
    fn speak(&mut self, cx: &mut Context<'_>) {
        for id in cx.streams() {
            let near = self.near();
            let (takes_more, is_far_ahead) = (near.takes_more(id), near.is_far_ahead(id));
            let moment = Moment { due: self.due(id, cx), takes_more, is_far_ahead, is_quiet: self.is_quiet(cx) };
            let near = Near { streams: &self.streams, epochs: &self.epochs };
            let speaks = id.region() == cx.me.region && self.streams.leads(id);
            let sealed = if speaks { self.coordinator.seal(id, &moment, &near, cx) } else { None };
            self.on_stream(id, Event::EndOfEpoch { moment, sealed }, cx);
        }
    }

    /// At the end of an epoch: takes back what can run no more by its name; forgets names that no epoch is left to; and where this site
    /// leads a stream of another coordinator no more, its clients' transactions go there.
    fn take_back_forwarded(&mut self, cx: &mut Context<'_>) {
        self.forwarding.forget_past(&self.streams);
        let (region, own) = (cx.me.region, cx.own());
        for stream in cx.streams().filter(|id| id.region() == region && *id != own) {
            for asked in self.forwarding.take_back(stream, &self.streams, cx) {
                let stream = cx.stream_of(&asked.transaction);
                self.coordinator.queue_first(asked, self.streams.carrier(stream, cx));
            }
            if !self.streams.leads(stream) {
                self.coordinator.withdraw(stream).for_each(|asked| self.direct(asked, cx));
            }
        }
    }

    /// Tells clients that have waited too long what is known.
    fn expire(&mut self, cx: &mut Context<'_>) {
        let Some(deadline) = cx.ticks.checked_sub(cx.config.deadline_epochs) else { return };
        self.reads.expire(self.coordinator.reads(), deadline, cx);
        self.forwarding.expire(deadline, cx);
        self.coordinator.expire(deadline, self.streams.only_stands_by(cx), cx);
        self.epochs.expire(deadline, cx);
    }
}

/// Sets the timer to the end of the present epoch.
fn wait_for_end_of_epoch(cx: &mut Context<'_>) {
    let length = cx.config.epoch.as_micros();
    let left = length - cx.now.as_micros() % length;
    cx.fx.set_timer(Timer::Epoch, Span::from_micros(left));
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let Site { shared, roles } = self;
        let (sites, streams) = (shared.topology.sites().count(), shared.streams().count());
        // One batch of each stream may come on top of those after which no more is taken.
        let transactions_max = FLOODED_FACTOR * BACKLOG_MAX + streams * BATCH_MAX * PAGE_ENTRIES_MAX;
        roles.coordinator.tables(visit);
        visit(Table::new("coordinator.running", roles.epochs.clients(), transactions_max));
        roles.forwarding.tables(visit);
        roles.epochs.run_tables(transactions_max, visit);
        roles.chains.tables(visit);
        roles.reads.tables(roles.coordinator.reads(), visit);
        roles.epochs.tables(streams * (FLOODED_FACTOR * AHEAD_MAX as usize + PAGE_ENTRIES_MAX), transactions_max, visit);
        roles.streams.tables(shared, visit);
        let loads = RUN_LOADS_MAX + WAITING_READS_MAX + sites * streams;
        let unchosen = streams * UNCHOSEN_MAX as usize;
        visit(Table::new("jobs", shared.jobs(), loads + unchosen).resting_at(unchosen));
    }
}

impl Actor for Site {
    type Note = Note;
    type Promise = Promise;
    type Timer = Timer;
    type Request = Request;
    type Answer = Answer;

    fn step(&mut self, now: Time, input: Input<Site>, fx: &mut Effects<Site>) {
        self.shared.now = now;
        if let Input::Client { id, request: Request::Admin(Admin::Status) } = input {
            return fx.answer(id, Answer::Admin(self.status()));
        }
        let Site { shared, roles } = self;
        let cx = &mut Context { shared, fx };
        match input {
            Input::Start => roles.streams.recover(cx),
            Input::Loaded { token, loaded } => roles.on_loaded(token, loaded, cx),
            Input::Persisted { token } => roles.on_persisted(token, cx),
            Input::Client { id, request } => roles.on_request(id, request, cx),
            Input::Message { .. } if !roles.streams.are_recovered() => {}
            Input::Message { from, body: Body::Note(note) } => roles.on_note(from, note, cx),
            Input::Message { from, body: Body::Promise(promise) } => roles.on_promise(from, promise, cx),
            Input::Timer(Timer::Epoch) => roles.on_end_of_epoch(cx),
        }
    }
}
