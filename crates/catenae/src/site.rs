//! The actor: one site with its roles, and what they share.
//!
//! A site drops what arrives before it has recovered from its disk, as if it had been lost on the way.

use super::agreement::{Agreement, Event, Part, Pulled};
use super::chains::Chains;
use super::config::{
    AHEAD_MAX, BACKLOG_MAX, BATCH_MAX, COLLECT_EVERY, Config, FLOODED_FACTOR, PAGE_ENTRIES_MAX, RUN_LOADS_MAX, UNCHOSEN_MAX,
    WAITING_READS_MAX,
};
use super::coordinator::Coordinator;
use super::epoch::Epoch;
use super::epochs::Epochs;
use super::forwarding::Forwarding;
use super::ledger::Ledger;
use super::message::{Admin, Answer, Note, Progress, Promise, Request, Status};
use super::planted::Planted;
use super::reads::{Reads, Serving, Wanted};
use super::recovery::Recovery;
use super::runs::{Run, Runs};
use super::stream_id::{self, PerStream, StreamId};
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{Collect, RequestId, Token};
use rhumb_core::{Actor, Ballot, Body, Effects, Input, Inspect, Loaded, RegionId, Rules, SiteId, Span, Table, Time, Topology};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A region has a coordinator and a secondary one, or two coordinators.
pub const SITES_PER_REGION_MAX: u16 = 2;
/// How many epochs pass before a site writes down again how far it has come.
const PROGRESS_EVERY: u64 = 64;
/// The same where it is quiet.
const PROGRESS_EVERY_QUIET: u64 = 512;

/// The timers of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timer {
    /// An epoch ends.
    Epoch,
}

/// What a load or a persist is for.
#[derive(Debug)]
pub(super) enum Job {
    /// A part of what earlier lives left.
    Recover(Recovery),
    /// Entries are durable here.
    Held {
        /// Of which stream.
        id: StreamId,
        /// At which ballot.
        ballot: Ballot,
        /// Up to which place.
        upto: u64,
    },
    /// Rows of a transaction.
    Run(Run),
    /// Rows of a read.
    Read(Serving),
    /// Rows of a transaction that is answered before its place is known, as only a broken rule has it.
    Early {
        /// Which.
        identifier: super::message::Identifier,
        /// What it does.
        transaction: rhumb_commit::one_shot::operation::Transaction,
        /// What it reads.
        fetch: super::fetch::Fetch,
    },
    /// Entries that another site misses.
    Pulled {
        /// Of which stream.
        id: StreamId,
        /// Which.
        pulled: Pulled,
    },
}

/// One site.
pub struct Site {
    pub(super) me: SiteId,
    pub(super) topology: Arc<Topology>,
    pub(super) config: Config,
    /// This site's clock at the current step.
    pub(super) now: Time,
    /// Ends of epochs in this life.
    pub(super) ticks: u64,
    pub(super) serving: bool,
    pub(super) streams: PerStream<Agreement>,
    pub(super) coordinator: Coordinator,
    pub(super) forwarding: Forwarding,
    pub(super) epochs: Epochs,
    pub(super) ledger: Ledger,
    pub(super) runs: Runs,
    pub(super) chains: Chains,
    pub(super) reads: Reads,
    /// How far each site has come, as it last said.
    pub(super) progress: BTreeMap<SiteId, Progress>,
    jobs: BTreeMap<Token, Job>,
    next_token: Token,
    pub(super) rules: Rules<Planted>,
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
        let failures = config.durability.failures(topology.region_count());
        Site {
            me,
            now: Time::ZERO,
            ticks: 0,
            serving: false,
            streams: PerStream::new(&topology, config.coordinators, |id| Agreement::new(id, failures + 1)),
            coordinator: Coordinator::new(config.coordinators),
            forwarding: Forwarding::default(),
            epochs: Epochs::default(),
            ledger: Ledger::default(),
            runs: Runs::default(),
            chains: Chains::default(),
            reads: Reads::default(),
            progress: BTreeMap::new(),
            jobs: BTreeMap::new(),
            next_token: 0,
            topology,
            config,
            rules: Rules::HOLD,
        }
    }

    /// True once it has recovered from its disk.
    pub fn is_serving(&self) -> bool {
        self.serving
    }

    /// All up to this epoch is settled here.
    pub fn settled(&self) -> Epoch {
        self.epochs.settled
    }

    /// Entries of all streams that it keeps in memory.
    pub fn held_entries(&self) -> usize {
        self.streams.iter().map(|stream| stream.view().kept()).sum()
    }

    /// How it fares.
    pub fn status(&self) -> Status {
        let passed_over = |region: &RegionId| {
            let far = self.ending().plus(self.config.window_epochs);
            self.stream_ids().any(|id| id.region() == *region && self.streams[id].view().covered() > far)
        };
        Status {
            serving: self.serving,
            coordinator: self.coordinator.epoch(),
            execution: self.epochs.execution,
            settled: self.epochs.settled,
            unsettled: self.epochs.backlog.len(),
            passed_over: self.topology.regions().filter(passed_over).collect(),
            settling: self.coordinator.settling,
            tables: self.list_tables(),
        }
    }

    /// All streams.
    pub(super) fn stream_ids(&self) -> impl Iterator<Item = StreamId> + use<> {
        stream_id::all(&self.topology, self.config.coordinators)
    }

    /// This site's own stream; that which it stands by for if it has none.
    pub(super) fn own(&self) -> StreamId {
        StreamId::new(self.me.region, self.me.shard % self.config.coordinators)
    }

    /// All sites but this one.
    pub(super) fn others(&self) -> impl Iterator<Item = SiteId> + use<> {
        let me = self.me;
        self.topology.sites().filter(move |site| *site != me)
    }

    /// Names a load or a persist.
    pub(super) fn job(&mut self, job: Job) -> Token {
        self.next_token += 1;
        self.jobs.insert(self.next_token, job);
        self.next_token
    }

    /// Sets the timer to the end of the present epoch.
    pub(super) fn wait_for_end_of_epoch(&self, fx: &mut Effects<Site>) {
        let length = self.config.epoch.as_micros();
        fx.set_timer(Timer::Epoch, Span::from_micros(length - self.now.as_micros() % length));
    }

    fn on_end_of_epoch(&mut self, fx: &mut Effects<Site>) {
        self.ticks += 1;
        self.wait_for_end_of_epoch(fx);
        self.look_after_streams(fx);
        self.look_after_chains(fx);
        self.pull_gaps(fx);
        self.look_after_forwarded(fx);
        self.expire(fx);
        self.truncate(fx);
        if self.ticks.is_multiple_of(if self.is_quiet() { PROGRESS_EVERY_QUIET } else { PROGRESS_EVERY }) {
            self.tell_progress(fx);
        }
        if self.ticks.is_multiple_of(COLLECT_EVERY) {
            self.collect(fx);
        }
    }

    /// Drops versions that no reader can ask for.
    fn collect(&mut self, fx: &mut Effects<Site>) {
        let keep = self.config.keep_epochs;
        let horizon = |epoch: Epoch| Epoch(epoch.0.saturating_sub(keep)).snapshot(self.config.epoch);
        let everywhere = self.topology.sites().map(|site| self.progress.get(&site).map_or(Epoch::NONE, |progress| progress.settled));
        let deletions = horizon(everywhere.min().unwrap_or_default());
        fx.collect(Collect { horizon: horizon(self.epochs.settled), deletions });
    }

    fn on_request(&mut self, id: RequestId, request: Request, fx: &mut Effects<Site>) {
        match request {
            Request::Admin(Admin::Status) => fx.answer(id, Answer::Admin(self.status())),
            _ if !self.serving => fx.answer(id, Answer::Failed(TxnError::Unavailable("the site is recovering".into()))),
            Request::Run(transaction) => self.on_run(id, transaction, fx),
            Request::Read { keys, ranges, reverse, freshness } => self.on_read(id, Wanted { keys, ranges, reverse }, freshness, fx),
        }
    }

    fn on_note(&mut self, from: SiteId, note: Note, fx: &mut Effects<Site>) {
        match note {
            Note::Visit(visit) => self.on_visit(visit, fx),
            Note::Cross { crossing, visit } => self.on_cross(crossing, visit, fx),
            Note::Claim { crossing, visit, open } => self.on_claim(crossing, visit, open, fx),
            Note::Granted { crossing, visit } => self.on_granted(crossing, visit, fx),
            Note::Through { crossing, transaction } => self.on_through(crossing, transaction),
            // That keeps nobody awake: over a wide area entries are overtaken by word of them, so that somebody always asks.
            Note::Pull { stream, after } => self.tell_stream(stream, Event::Pull { from, after }, fx),
            Note::Chosen { stream, first, entries, more } => self.tell_stream(stream, Event::Chosen { from, first, entries, more }, fx),
            Note::Prepare { stream, ballot, after } => self.tell_stream(stream, Event::Prepare { from, ballot, after }, fx),
            Note::Refused { stream, promised } => self.tell_stream(stream, Event::Refused(promised), fx),
            Note::Forward(forward) => self.on_forward(from, forward, fx),
        }
    }

    fn on_promise(&mut self, from: SiteId, promise: Promise, fx: &mut Effects<Site>) {
        match promise {
            Promise::Epoch { stream, ballot, first, entries } => {
                let is_flooded = self.is_flooded(stream);
                self.tell_stream(stream, Event::Epoch { from, ballot, first, entries, is_flooded }, fx);
            }
            Promise::Held { stream, ballot, upto } => self.tell_stream(stream, Event::Held { from, ballot, upto }, fx),
            Promise::Promised { stream, ballot, after, chosen, accepted, more } => {
                let part = Part { after, chosen, accepted, more };
                self.tell_stream(stream, Event::Promised { from, ballot, part }, fx);
            }
            Promise::Settled { progress } => drop(self.progress.insert(from, progress)),
            Promise::Sealed { name, index, place } => self.on_sealed(from, name, index, place, fx),
        }
    }

    fn on_loaded(&mut self, token: Token, loaded: Loaded, fx: &mut Effects<Site>) {
        match self.jobs.remove(&token).expect("every load has its job") {
            Job::Recover(part) => self.on_recovered(part, loaded, fx),
            Job::Run(run) => self.on_run_loaded(run, loaded, fx),
            Job::Read(serving) => self.on_read_loaded(serving, loaded, fx),
            Job::Early { identifier, transaction, fetch } => self.on_early_loaded(identifier, &transaction, fetch, loaded, fx),
            Job::Pulled { id, pulled } => self.tell_stream(id, Event::Loaded { pulled, loaded }, fx),
            Job::Held { .. } => unreachable!("nothing is loaded to hold it"),
        }
    }

    fn on_persisted(&mut self, token: Token, fx: &mut Effects<Site>) {
        let Some(Job::Held { id, ballot, upto }) = self.jobs.remove(&token) else { unreachable!("only entries are waited for") };
        self.tell_stream(id, Event::Durable { ballot, upto }, fx);
    }
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let (sites, streams) = (self.topology.sites().count(), self.streams.iter().count());
        // One batch of each stream may come on top of those after which no more is taken.
        let transactions_max = FLOODED_FACTOR * BACKLOG_MAX + streams * BATCH_MAX * PAGE_ENTRIES_MAX;
        self.coordinator.tables(transactions_max, visit);
        self.forwarding.tables(visit);
        self.ledger.tables(transactions_max, visit);
        self.runs.tables(visit);
        self.chains.tables(visit);
        self.reads.tables(visit);
        let ahead = FLOODED_FACTOR * AHEAD_MAX as usize + PAGE_ENTRIES_MAX;
        visit(Table::new("epochs", self.epochs.contents.len(), streams * ahead));
        visit(Table::new("backlog", self.epochs.backlog.len(), transactions_max));
        // Entries go once their epochs are settled and progress is told.
        let settled = PROGRESS_EVERY_QUIET as usize + UNCHOSEN_MAX as usize;
        visit(Table::new("streams", self.held_entries(), streams * (ahead + settled)).resting_at(streams * settled));
        visit(Table::new("takeovers", self.streams.iter().map(Agreement::held).sum(), streams * (ahead + settled)));
        visit(Table::new("progress", self.progress.len(), sites).stays());
        let loads = RUN_LOADS_MAX + WAITING_READS_MAX + sites * streams;
        visit(Table::new("jobs", self.jobs.len(), loads + streams * UNCHOSEN_MAX as usize).resting_at(streams * UNCHOSEN_MAX as usize));
    }
}

impl Actor for Site {
    type Note = Note;
    type Promise = Promise;
    type Timer = Timer;
    type Request = Request;
    type Answer = Answer;

    fn step(&mut self, now: Time, input: Input<Site>, fx: &mut Effects<Site>) {
        self.now = now;
        match input {
            Input::Start => self.recover(Recovery::Promises, fx),
            Input::Loaded { token, loaded } => self.on_loaded(token, loaded, fx),
            Input::Persisted { token } => self.on_persisted(token, fx),
            Input::Client { id, request } => self.on_request(id, request, fx),
            Input::Message { .. } if !self.serving => {}
            Input::Message { from, body: Body::Note(note) } => self.on_note(from, note, fx),
            Input::Message { from, body: Body::Promise(promise) } => self.on_promise(from, promise, fx),
            Input::Timer(Timer::Epoch) => self.on_end_of_epoch(fx),
        }
    }
}
