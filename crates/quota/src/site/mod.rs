//! The actor: one site with its part of every quota.
//!
//! ```text
//!   client ──Run──▶ requests ──▶ accounts ──▶ one batch per step: accounts, answers, protocol states
//!                      │ too few here             │ durable
//!                      ▼                          ├──▶ client
//!               redistribution ──▶ avantan ───────┴──▶ other sites (promises)
//! ```
//!
//! The four modules of the paper's Figure 3: request handling (`requests`), prediction ([`demand`](crate::demand)),
//! redistribution ([`reallocate`](crate::reallocate) and the offer policies in `quota`), protocol
//! ([`avantan`](crate::avantan)). Each knows the others by a trait or a few calls.
//!
//! Invariants kept here: all that a step changed is written as one batch, and every answer and promise of the step waits
//! for it; a batch holds the tokens, the protocol's state and the request id that belong together.

mod counting;
mod define;
mod lost;
mod pace;
pub mod planted;
mod quota;
mod reads;
mod recovery;
mod redistribution;
mod requests;
mod settling;
mod shortage;
mod waiting;

use crate::account::Account;
use crate::catalog::{Catalog, Definitions, QuotaId};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::list::List;
use crate::message::{Note, Promise};
use crate::operation::RequestKey;
use crate::planted::Planted;
use crate::records;
use crate::refusal::Refusal;
use crate::request::{Answer, Request, Status};
use crate::spec::QUOTAS_MAX;
use crate::window::Window;
use pace::Pace;
use quota::Quota;
use reads::{GlobalRead, READERS_MAX, READS_MAX};
use recovery::Recovery;
use requests::Running;
use rhumb_core::actor::{Body, RequestId};
use rhumb_core::{Actor, Batch, Effects, Input, Inspect, Rules, SiteId, Table, Time, Topology, record, work};
use std::collections::{BTreeMap, BTreeSet};
use waiting::RETRIES_ATTACHED_MAX;

/// The timer of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Look after what is overdue.
    Tick,
}

/// One site.
pub struct Site {
    cluster: Cluster,
    config: Config,
    /// This site's clock at the current step.
    now: Time,
    ticks: u64,
    catalog: Catalog,
    quotas: BTreeMap<QuotaId, Quota>,
    /// Quotas to be looked after at every tick.
    active: BTreeSet<QuotaId>,
    window: Window,
    pace: Pace,
    /// Requests of which some operation waits.
    running: BTreeMap<RequestId, Running>,
    /// The quotas of operations that wait under an id.
    waiting_ids: BTreeMap<RequestKey, QuotaId>,
    /// Operations that wait.
    waiting: usize,
    reads: BTreeMap<u64, GlobalRead>,
    last_read: u64,
    /// So many losses it has taken up.
    losses_known: u32,
    recovery: Option<Recovery>,
    outcome: Outcome,
    rules: Rules<Planted>,
}

/// What the current step has changed and who waits for that.
#[derive(Default)]
struct Outcome {
    batch: Batch,
    accounts: BTreeSet<QuotaId>,
    protocols: BTreeSet<QuotaId>,
    lists: BTreeSet<QuotaId>,
    catalog: bool,
    promises: Vec<(SiteId, Promise)>,
    answers: Vec<(RequestId, Answer)>,
}

impl Site {
    /// The site `me` of a cluster, before its first step.
    pub fn new(me: SiteId, topology: &Topology, config: Config) -> Site {
        let cluster = Cluster::new(me, topology);
        Site {
            now: Time::ZERO,
            ticks: 0,
            catalog: Catalog::new(cluster.clone(), crate::catalog::State::default(), BTreeMap::new()),
            cluster,
            quotas: BTreeMap::new(),
            active: BTreeSet::new(),
            pace: Pace::default(),
            window: Window::new(records::ANSWERS, config.window_bytes),
            config,
            running: BTreeMap::new(),
            waiting_ids: BTreeMap::new(),
            waiting: 0,
            reads: BTreeMap::new(),
            last_read: 0,
            losses_known: 0,
            recovery: Some(Recovery::default()),
            outcome: Outcome::default(),
            rules: Rules::HOLD,
        }
    }

    /// The same site by other rules.
    pub fn with_rules(self, rules: Rules<Planted>) -> Site {
        Site { rules, ..self }
    }

    /// True once it has recovered from its disk.
    pub fn is_serving(&self) -> bool {
        self.recovery.is_none()
    }

    /// How it is.
    pub fn status(&self) -> Status {
        Status {
            serving: self.is_serving(),
            quotas: self.quotas.values().filter(|quota| !quota.definition.closing).count(),
            waiting: self.waiting,
            lost: self.cluster.lost.to_vec(),
            unsettled: self.quotas.keys().filter(|id| !self.is_settled(**id)).count(),
            tables: self.list_tables(),
            redistributing: self.active.iter().filter(|id| self.quotas.get(id).is_some_and(|quota| !quota.protocol.is_idle())).count(),
        }
    }

    /// Its accounts, for those who check that no token is minted or lost.
    pub fn accounts(&self) -> impl Iterator<Item = (QuotaId, &Account)> + '_ {
        self.quotas.iter().map(|(id, quota)| (*id, &quota.account))
    }

    /// The quotas as it knows them.
    pub fn definitions(&self) -> &Definitions {
        self.catalog.definitions()
    }

    /// How many changes of the quotas it has applied.
    pub fn changes(&self) -> u64 {
        self.catalog.state().slot
    }

    /// The decided lists of quota `id` that it remembers.
    pub fn lists(&self, id: QuotaId) -> Vec<&List> {
        self.quotas.get(&id).map(|quota| quota.protocol.decided()).unwrap_or_default()
    }

    fn on_note(&mut self, from: SiteId, note: Note, fx: &mut Effects<Site>) {
        match note {
            Note::Catalog(note) => self.with_catalog(fx, |catalog, out| catalog.on_note(from, note, out)),
            Note::Avantan(id, note) => self.with_protocol(id, fx, |protocol, port, out| protocol.on_note(from, note, port, out)),
            Note::Count(id, note) => self.with_count(id, fx, |count, _, out| count.on_note(from, note, out)),
            Note::Look(id, read) => self.on_look(from, id, read, fx),
            Note::Seen(id, read, tokens) => self.on_seen(id, read, tokens, fx),
        }
    }

    fn on_promise(&mut self, from: SiteId, promise: Promise, fx: &mut Effects<Site>) {
        match promise {
            Promise::Catalog(promise) => self.with_catalog(fx, |catalog, out| catalog.on_promise(from, promise, out)),
            Promise::Avantan(id, promise) => {
                if promise.is_offer()
                    && let Some(calling) = self.quotas.get_mut(&id).and_then(|quota| quota.calling.as_mut())
                {
                    self.pace.answered(calling, from, self.ticks);
                }
                self.with_protocol(id, fx, |protocol, port, out| protocol.on_promise(from, promise, port, out))
            }
            Promise::Count(id, promise) => self.with_count(id, fx, |count, here, out| count.on_promise(from, promise, here, out)),
        }
    }

    fn on_request(&mut self, client: RequestId, request: Request, fx: &mut Effects<Site>) {
        if let Request::Status = request {
            return fx.answer(client, Answer::Status(self.status()));
        }
        if !self.is_serving() {
            return fx.answer(client, refuse_all(&request, Refusal::Unavailable("this site is still recovering from its disk".into())));
        }
        if self.is_lost() {
            return fx.answer(client, refuse_all(&request, Refusal::DeclaredLost));
        }
        match request {
            Request::Run(operations) => self.on_run(client, operations, fx),
            Request::Create { name, spec } => self.propose(client, crate::catalog::Change::Create { name, spec }, fx),
            Request::SetLimit { name, limit } => self.propose(client, crate::catalog::Change::SetLimit { name, limit }, fx),
            Request::Drop { name } => self.propose(client, crate::catalog::Change::Drop { name }, fx),
            Request::DeclareLost { site } => self.on_declare_lost(client, site, fx),
            Request::Get { name, read } => self.on_get(client, &name, read, fx),
            Request::List => self.on_list(client),
            Request::Status => unreachable!("answered above"),
        }
    }

    fn on_tick(&mut self, fx: &mut Effects<Site>) {
        fx.set_timer(Timer::Tick, self.config.tick);
        if !self.is_serving() {
            return;
        }
        self.ticks += 1;
        self.window.forget(self.ticks, &mut self.outcome.batch);
        let gossips = self.ticks.is_multiple_of(u64::from(self.config.gossip_ticks));
        self.with_catalog(fx, |catalog, out| {
            catalog.tick(out);
            if gossips {
                catalog.gossip(out);
            }
        });
        if self.is_lost() {
            return;
        }
        work::add(self.active.len());
        for id in self.active.iter().copied().collect::<Vec<_>>() {
            self.tick_quota(id, fx);
        }
        self.decide_counts(fx);
        self.tick_reads(fx);
    }

    /// Writes what the step has changed, with what waits for it.
    fn flush(&mut self, fx: &mut Effects<Site>) {
        let Outcome { mut batch, accounts, protocols, lists, catalog, promises, answers } = std::mem::take(&mut self.outcome);
        if catalog {
            batch.put_record(records::CATALOG, Vec::new(), record::encode(self.catalog.state()));
        }
        for id in accounts {
            if let Some(quota) = self.quotas.get(&id) {
                batch.put_record(records::ACCOUNTS, records::quota_key(id), record::encode(&quota.account));
            }
        }
        for id in protocols {
            if let Some(quota) = self.quotas.get(&id) {
                batch.put_record(records::PROTOCOLS, records::quota_key(id), quota.protocol.state());
            }
        }
        for id in lists {
            if let Some(quota) = self.quotas.get(&id) {
                batch.put_record(records::LISTS, records::quota_key(id), quota.protocol.lists());
            }
        }
        if batch.ops.is_empty() && promises.is_empty() && answers.is_empty() {
            return;
        }
        let mut persist = fx.persist(batch);
        for (to, promise) in promises {
            persist = persist.send(to, promise);
        }
        for (client, answer) in answers {
            persist = persist.answer(client, answer);
        }
    }
}

fn is_of_catalog(body: &Body<Note, Promise>) -> bool {
    matches!(body, Body::Note(Note::Catalog(_)) | Body::Promise(Promise::Catalog(_)))
}

/// The same refusal for all that was asked.
fn refuse_all(request: &Request, refusal: Refusal) -> Answer {
    match request {
        Request::Run(operations) => Answer::Ran(vec![Err(refusal); operations.len()]),
        Request::Create { .. } | Request::SetLimit { .. } | Request::Drop { .. } | Request::DeclareLost { .. } => {
            Answer::Changed(Err(refusal))
        }
        Request::Get { .. } => Answer::Got(Err(refusal)),
        Request::List => Answer::Listed(Vec::new()),
        Request::Status => unreachable!("a status is never refused"),
    }
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let waiting_max = self.config.waiting;
        self.catalog.tables(visit);
        self.window.tables(visit);
        visit(Table::new("quotas", self.quotas.len(), QUOTAS_MAX).stays());
        visit(Table::new("active", self.active.len(), QUOTAS_MAX).stays());
        visit(Table::new("waiting", self.waiting, waiting_max));
        visit(Table::new("waiting_ids", self.waiting_ids.len(), waiting_max));
        // A request waits at least for one of its operations, alone or with a retry of it.
        visit(Table::new("running", self.running.len(), waiting_max * RETRIES_ATTACHED_MAX));
        visit(Table::new("reads", self.reads.len(), READS_MAX));
        let sites = self.cluster.size() + self.cluster.lost.len();
        for quota in self.active.iter().filter_map(|id| self.quotas.get(id)) {
            let (operations, readers) = quota.waiting();
            visit(Table::new("quota.operations", operations, self.config.waiting_per_quota));
            visit(Table::new("quota.readers", readers, READERS_MAX));
            // Each of them for an operation at least.
            visit(Table::new("quota.waiting_below", quota.to_acquire.below.len() + quota.to_release.below.len(), waiting_max));
            visit(Table::new("quota.lists", quota.protocol.decided().len(), sites).stays());
        }
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
            Input::Start => {
                self.recover_next(fx);
                fx.set_timer(Timer::Tick, self.config.tick);
            }
            Input::Message { .. } if !self.is_serving() => {}
            // Whatever a lost site says, it is told that it is lost.
            Input::Message { from, .. } if self.cluster.is_lost(from) => self.with_catalog(fx, |catalog, out| catalog.tell(from, out)),
            Input::Message { body, .. } if self.is_lost() && !is_of_catalog(&body) => {}
            Input::Message { from, body: Body::Note(note) } => self.on_note(from, note, fx),
            Input::Message { from, body: Body::Promise(promise) } => self.on_promise(from, promise, fx),
            Input::Timer(Timer::Tick) => self.on_tick(fx),
            Input::Loaded { loaded, .. } => self.on_recovered(loaded, fx),
            Input::Persisted { .. } => unreachable!("nothing asks to be told"),
            Input::Client { id, request } => self.on_request(id, request, fx),
        }
        self.flush(fx);
    }
}
