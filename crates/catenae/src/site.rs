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
use super::log::Log;
use super::message::{Admin, Answer, Note, Order, Promise, Request, Status};
use super::planted::Planted;
use super::reads::{Reads, Wanted};
use super::runs::Runs;
use super::stream::Found;
use super::stream_id::StreamId;
use super::streams::{self, Recovered, Streams};
use rhumb_commit::one_shot::Freshness;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_commit::reason::Reason;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{RequestId, Token};
use rhumb_core::{Actor, Body, Effects, Input, Inspect, Loaded, RegionId, Rules, SiteId, Span, Table, Time, Topology, work};
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
    log: Log,
    coordinator: Coordinator,
    forwarding: Forwarding,
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
            log: Log { streams: Streams::new(&shared), epochs: Epochs::default(), runs: Runs::default() },
            coordinator: Coordinator::new(shared.config.coordinators),
            forwarding: Forwarding::default(),
            chains: Chains::default(),
            reads: Reads::default(),
        };
        Site { shared, roles }
    }

    /// The same site by other rules.
    pub fn with_rules(mut self, rules: Rules<Planted>) -> Site {
        self.shared.rules = rules;
        if rules.breaks(Planted::AnsweredAtHome) {
            self.roles.log.streams.agreed_alone(self.shared.own());
        }
        self
    }

    /// True once it has recovered from its disk.
    pub fn is_serving(&self) -> bool {
        self.roles.log.streams.are_recovered()
    }

    /// All up to this epoch is settled here.
    pub fn settled(&self) -> Epoch {
        self.roles.log.epochs.settled()
    }

    /// Entries of all streams that it keeps in memory.
    pub fn held_entries(&self) -> usize {
        self.roles.log.streams.kept()
    }

    /// What is agreed on in a stream.
    #[cfg(test)]
    pub(super) fn stream(&self, id: StreamId) -> &super::stream::Stream {
        self.roles.log.streams.view(id)
    }

    /// What is agreed on and not settled, to be changed by tests.
    #[cfg(test)]
    pub(super) fn backlog_mut(&mut self) -> &mut super::backlog::Backlog {
        self.roles.log.runs.backlog_mut()
    }

    /// How it fares.
    pub fn status(&self) -> Status {
        let Site { shared, roles } = self;
        let Log { streams, epochs, runs } = &roles.log;
        let far = roles.ending(shared).plus(shared.config.window_epochs);
        let passed_over = |region: &RegionId| shared.streams().any(|id| id.region() == *region && streams.view(id).covered() > far);
        Status {
            serving: self.is_serving(),
            coordinator: roles.coordinator.epoch(),
            execution: epochs.execution(),
            settled: epochs.settled(),
            unsettled: runs.backlog().len(),
            passed_over: shared.topology.regions().filter(passed_over).collect(),
            settling: roles.coordinator.settling(),
            tables: self.list_tables(),
        }
    }
}

impl Roles {
    /// True if nothing has been asked or told for a while, and nothing is under way.
    fn is_quiet(&self, cx: &Shared) -> bool {
        let idle = self.coordinator.is_idle() && self.forwarding.is_idle() && self.reads.are_idle();
        idle && !cx.is_awake() && self.log.is_idle()
    }

    /// The epoch that ends now, by this site's clock or those of the others; by those of the others alone if it is quiet.
    fn ending(&self, cx: &Shared) -> Epoch {
        if self.is_quiet(cx) { cx.heard() } else { cx.ended().max(cx.heard()) }
    }

    /// The epoch up to which a stream should have spoken. Who only stands by seals nothing, so that nobody can keep pace with its
    /// clock: it goes by the epochs of others, save for the coordinator whose place it is to take.
    fn due(&self, stream: StreamId, cx: &Shared) -> Epoch {
        if stream.region() != cx.me.region && self.log.streams.only_stands_by(cx) { cx.heard() } else { self.ending(cx) }
    }

    fn on_request(&mut self, id: RequestId, request: Request, cx: &mut Context<'_>) {
        let done = match request {
            Request::Admin(Admin::Status) => unreachable!("answered by the site"),
            _ if !self.log.streams.are_recovered() => Err(TxnError::Unavailable("the site is recovering".into())),
            Request::Run(transaction) => self.on_run(id, transaction, cx),
            Request::Read { keys, ranges, reverse, freshness } => self.on_read(id, Wanted { keys, ranges, reverse }, freshness, cx),
        };
        if let Err(error) = done {
            cx.fx.answer(id, Answer::Failed(error));
        }
    }

    /// A client's transaction.
    fn on_run(&mut self, id: RequestId, transaction: Transaction, cx: &mut Context<'_>) -> Result<(), TxnError> {
        transaction.validate()?;
        self.check_coordinates(cx)?;
        self.coordinator.check_room(&self.log, cx)?;
        cx.stay_awake();
        self.direct(Asked { by: Asker::Client(id), transaction, since: cx.ticks, stays: false }, cx);
        Ok(())
    }

    /// A client reads. An epoch is sealed for a strict read.
    fn on_read(&mut self, id: RequestId, wanted: Wanted, freshness: Freshness, cx: &mut Context<'_>) -> Result<(), TxnError> {
        if freshness != Freshness::Settled {
            self.reads.check_room(self.coordinator.reads())?;
        }
        let epochs = &self.log.epochs;
        let Some(read) = self.reads.on_read(id, wanted, freshness, epochs, cx) else { return Ok(()) };
        self.check_coordinates(cx)?;
        if cx.rules.breaks(Planted::StrictByClock) {
            self.reads.await_settled(cx.ended(), read, &self.log.epochs, cx);
        } else {
            cx.stay_awake();
            self.coordinator.stream_mut(cx.own()).read_strictly(read);
        }
        Ok(())
    }

    /// # Errors
    /// If this site only stands by. Its coordinator is asked what is new: should it not answer, this site is to take over.
    fn check_coordinates(&mut self, cx: &mut Context<'_>) -> Result<(), TxnError> {
        if !self.log.streams.only_stands_by(cx) {
            return Ok(());
        }
        cx.stay_awake();
        let own = cx.own();
        let SiteId { region, shard } = self.log.streams.view(own).promised().leader;
        let coordinator = SiteId { region, shard };
        self.on_stream(own, Event::Ask(coordinator), cx);
        let why = Reason::from("this site stands by; connect to site ").then(coordinator);
        Err(TxnError::Unavailable(why.then(", which coordinates its region")))
    }

    /// Brings what a client asks to the coordinator of its namespace's stream, here or at another site of the region.
    fn direct(&mut self, asked: Asked, cx: &mut Context<'_>) {
        let ending = self.ending(cx);
        if let Some(asked) = self.forwarding.forward(asked, &self.log, ending, cx) {
            let stream = self.log.carrier(&asked.transaction, cx);
            self.coordinator.stream_mut(stream).queue(asked);
        }
    }

    fn on_note(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        let epochs = &self.log.epochs;
        let vote = match note {
            Note::Visit(visit) => self.chains.on_visit(visit, cx),
            Note::Cross { crossing, visit } => self.chains.on_cross(crossing, visit, epochs, cx),
            Note::Claim { crossing, visit, open } => self.chains.on_claim(crossing, visit, open, epochs, cx),
            Note::Granted { crossing, visit } => self.chains.on_granted(crossing, visit, epochs, cx),
            Note::Through { crossing, transaction } => self.chains.on_through(crossing, transaction, epochs),
            // A pull keeps nobody awake: over a wide-area network acknowledgements of entries overtake the entries, so that some site always pulls.
            Note::Pull { stream, after } => return self.on_stream(stream, Event::Pull { from, after }, cx),
            Note::Chosen { stream, first, entries, more } => {
                return self.on_stream(stream, Event::Chosen { from, first, entries, more }, cx);
            }
            Note::Prepare { stream, ballot, after } => return self.on_stream(stream, Event::Prepare { from, ballot, after }, cx),
            Note::Refused { stream, promised } => return self.on_stream(stream, Event::Refused(promised), cx),
            Note::Forward(forward) => {
                let stream = forward.stream;
                let asked = self.forwarding.on_forward(from, forward, &self.log, &self.coordinator, cx);
                return asked.into_iter().for_each(|asked| self.coordinator.stream_mut(stream).queue(asked));
            }
        };
        self.vote(vote, cx);
    }

    /// Votes of this region stand in its first stream.
    fn vote(&mut self, votes: impl IntoIterator<Item = Order>, cx: &Shared) {
        self.coordinator.stream_mut(StreamId::first(cx.me.region)).vote(votes);
    }

    fn on_promise(&mut self, from: SiteId, promise: Promise, cx: &mut Context<'_>) {
        match promise {
            Promise::Epoch { stream, ballot, first, entries } => {
                let is_flooded = self.log.is_flooded(stream);
                self.on_stream(stream, Event::Epoch { from, ballot, first, entries, is_flooded }, cx);
            }
            Promise::Held { stream, ballot, upto } => self.on_stream(stream, Event::Held { from, ballot, upto }, cx),
            Promise::Promised { stream, ballot, after, chosen, accepted, more } => {
                let part = Part { after, chosen, accepted, more };
                self.on_stream(stream, Event::Promised { from, ballot, part }, cx);
            }
            Promise::Settled { progress } => self.log.streams.hear_progress(from, progress),
            Promise::Sealed { name, index, place } => {
                let agreed = self.forwarding.on_sealed(from, name, index, place, &self.log, cx);
                self.log.runs.await_runs(agreed);
            }
        }
    }

    fn on_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        match cx.jobs.end(token) {
            Job::Recover => match self.log.streams.on_recovered(loaded, cx) {
                Some(Recovered::Settled(settled)) => self.log.epochs.resume(settled),
                Some(Recovered::All) => self.serve(cx),
                None => {}
            },
            Job::Run => {
                self.log.runs.on_loaded(token, loaded, cx);
                self.settle(cx);
            }
            Job::Early => self.log.runs.on_early_loaded(token, loaded, cx),
            Job::Read => self.reads.on_loaded(token, loaded, &self.log.epochs, cx),
            Job::Pulled { id, pulled } => self.on_stream(id, Event::Loaded { pulled, loaded }, cx),
            Job::Held { .. } => unreachable!("nothing is loaded to hold it"),
        }
    }

    fn on_persisted(&mut self, token: Token, cx: &mut Context<'_>) {
        let Job::Held { id, ballot, upto } = cx.jobs.end(token) else { unreachable!("only entries are waited for") };
        self.on_stream(id, Event::Durable { ballot, upto }, cx);
    }

    /// All is read that earlier incarnations left.
    fn serve(&mut self, cx: &mut Context<'_>) {
        for id in cx.streams() {
            if id.region() == cx.me.region {
                self.coordinator.stream_mut(id).resume(self.log.streams.view(id).last_epoch());
            }
            self.on_stream(id, Event::Start, cx);
        }
        cx.stay_awake();
        self.execute(cx);
        wait_for_end_of_epoch(cx);
    }

    /// Tells the agreement on a stream of an event, and does what it wants done.
    fn on_stream(&mut self, id: StreamId, event: Event, cx: &mut Context<'_>) {
        for effect in self.log.streams.on(id, event, cx) {
            match effect {
                Effect::Chosen(found) => self.on_chosen(id, found, cx),
                Effect::Advanced => self.execute(cx),
                Effect::TookOver => {
                    let until = self.due(id, cx).plus(cx.config.ahead_epochs);
                    self.on_stream(id, Event::PassOver(until), cx);
                }
                Effect::HasMore(at) if self.log.takes_more(id) => self.on_stream(id, Event::Ask(at), cx),
                Effect::HasMore(_) => {}
                effect => streams::carry_out(id, effect, cx),
            }
        }
    }

    /// An entry is chosen.
    fn on_chosen(&mut self, id: StreamId, Found { index, entry, covered, void }: Found, cx: &mut Context<'_>) {
        work::add(1 + entry.batch.len());
        cx.fx.agree("entry", format_args!("{id}/{index}"), &entry);
        if id.region() == cx.me.region {
            if !void && let Some(Confirmed { agreed, reads }) = self.coordinator.stream_mut(id).confirm(id, &entry, cx) {
                if id == cx.own() {
                    self.forwarding.has_spoken(entry.epoch);
                }
                self.log.runs.await_runs(agreed);
                reads.into_iter().for_each(|read| self.reads.await_settled(entry.epoch, read, &self.log.epochs, cx));
            }
            self.coordinator.take_back_lost(id, covered, cx);
            if !void {
                let agreed = self.forwarding.on_chosen(id, index, &entry, &self.log, cx);
                self.log.runs.await_runs(agreed);
            }
            if cx.rules.breaks(Planted::ConflictByTiming) {
                self.log.runs.run_early(id, &entry, &self.log.epochs, cx);
            }
        }
        if !void {
            self.log.take_entry(id, entry, cx);
        }
    }

    /// Takes the epochs as far as what is agreed on allows.
    fn execute(&mut self, cx: &mut Context<'_>) {
        for epoch in self.log.complete(self.coordinator.epoch(), cx) {
            self.log.schedule(epoch, cx);
            let vote = self.chains.on_scheduled(epoch, &self.log, cx);
            self.vote(vote, cx);
        }
        self.log.judge(cx);
        self.log.runs.run_ready(cx);
        self.settle(cx);
    }

    /// Moves on what is settled.
    fn settle(&mut self, cx: &mut Context<'_>) {
        if let Some(settled) = self.log.settle() {
            self.chains.forget(settled);
            self.coordinator.measure_settling(settled, cx.now);
            self.reads.on_settled(&self.log.epochs, cx);
        }
    }

    fn on_end_of_epoch(&mut self, cx: &mut Context<'_>) {
        cx.ticks += 1;
        wait_for_end_of_epoch(cx);
        cx.streams().for_each(|id| self.speak(id, cx));
        if cx.me.shard > 0 && !self.log.streams.speaks_for(cx.me.region) {
            self.coordinator.stream_mut(StreamId::first(cx.me.region)).forget_votes();
        }
        let votes = self.chains.on_end_of_epoch(&self.log, cx);
        self.vote(votes, cx);
        for id in cx.streams() {
            let takes_more = self.log.takes_more(id);
            self.on_stream(id, Event::LookForGaps { takes_more }, cx);
        }
        self.forwarding.forget_past(&self.log);
        cx.streams_of_others().for_each(|id| self.take_back(id, cx));
        self.expire(cx);
        self.log.streams.clean_up(self.log.epochs.settled(), self.is_quiet(cx), cx);
    }

    /// At the end of an epoch: a stream goes on if this site leads it, and is taken over if it is silent.
    fn speak(&mut self, id: StreamId, cx: &mut Context<'_>) {
        let (log, is_quiet) = (&self.log, self.is_quiet(cx));
        let (takes_more, is_far_ahead) = (log.takes_more(id), log.is_far_ahead(id));
        let moment = Moment { due: self.due(id, cx), takes_more, is_far_ahead, is_quiet };
        let speaks = id.region() == cx.me.region && log.streams.leads(id);
        let sealed = if speaks { self.coordinator.seal(id, &moment, log, cx) } else { None };
        self.on_stream(id, Event::EndOfEpoch { moment, sealed }, cx);
    }

    /// At the end of an epoch: takes back what was forwarded to be carried in a stream of another coordinator and can run no more by its name;
    /// where this site leads that stream no more, its clients' transactions go there.
    fn take_back(&mut self, stream: StreamId, cx: &mut Context<'_>) {
        for asked in self.forwarding.take_back(stream, &self.log, cx) {
            let stream = self.log.carrier(&asked.transaction, cx);
            self.coordinator.stream_mut(stream).queue_first(asked);
        }
        if !self.log.streams.leads(stream) {
            self.coordinator.stream_mut(stream).withdraw().for_each(|asked| self.direct(asked, cx));
        }
    }

    /// Tells clients that have waited too long what is known.
    fn expire(&mut self, cx: &mut Context<'_>) {
        let Some(deadline) = cx.ticks.checked_sub(cx.config.deadline_epochs) else { return };
        self.reads.expire(self.coordinator.reads(), deadline, cx);
        self.forwarding.expire(deadline, cx);
        self.coordinator.expire(deadline, self.log.streams.only_stands_by(cx), cx);
        self.log.runs.expire(deadline, cx);
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
        visit(Table::new("coordinator.running", roles.log.runs.awaited(), transactions_max));
        roles.forwarding.tables(visit);
        roles.log.runs.tables(transactions_max, visit);
        let epochs_max = streams * (FLOODED_FACTOR * AHEAD_MAX as usize + PAGE_ENTRIES_MAX);
        roles.chains.tables(epochs_max, visit);
        roles.reads.tables(roles.coordinator.reads(), visit);
        roles.log.epochs.tables(epochs_max, visit);
        visit(Table::new("backlog", roles.log.runs.backlog().len(), transactions_max));
        roles.log.streams.tables(shared, visit);
        let loads = RUN_LOADS_MAX + WAITING_READS_MAX + sites * streams;
        let unchosen = streams * UNCHOSEN_MAX as usize;
        visit(Table::new("jobs", shared.jobs.count(), loads + unchosen).resting_at(unchosen));
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
            Input::Start => roles.log.streams.recover(cx),
            Input::Loaded { token, loaded } => roles.on_loaded(token, loaded, cx),
            Input::Persisted { token } => roles.on_persisted(token, cx),
            Input::Client { id, request } => roles.on_request(id, request, cx),
            Input::Message { .. } if !roles.log.streams.are_recovered() => {}
            Input::Message { body, .. } if !roles.log.streams.understands(&body) => cx.fx.count("catenae.dropped_unknown_stream"),
            Input::Message { from, body: Body::Note(note) } => roles.on_note(from, note, cx),
            Input::Message { from, body: Body::Promise(promise) } => roles.on_promise(from, promise, cx),
            Input::Timer(Timer::Epoch) => roles.on_end_of_epoch(cx),
        }
    }
}
