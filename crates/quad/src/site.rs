//! The actor: one site, its roles, and which of them handles what arrives.
//!
//! A site drops what arrives before it has read its disk, as if it had been lost on the way. What one role wants of another comes back as a
//! value and is handed on here, in the same step; where an epoch ends, all of them take part ([`Roles::adopt`]).

#[cfg(test)]
mod model;

use super::acceptor::{Acceptor, NearAcceptor, Vote};
use super::config::{COLLECT_EVERY, Config, PAGE_BYTES_MAX, RECOVERY_PAGE};
use super::configuration::{Carried, Configuration, Cores, Epoch, Stamped};
use super::context::{Asked, Context, Job, Shared, Timer};
use super::explanation::{Explanation, SiteFacts};
use super::gateway::Gateway;
use super::injected_load::LoadInjector;
use super::leaving::without;
use super::manager::with_cores;
use super::message::{Note, Promise, TRANSACTION};
use super::monitor::{Activity, Monitor};
use super::mover::Mover;
use super::planted::Planted;
use super::quorums::Quorums;
use super::reconcile::Reconciler;
use super::records::{ACCEPTOR, ASIDE, BASE, Base, CLOCK_BOUND, CONFIGURATION, DECISIONS, PREPARED, put_versions};
use super::replica::Replica;
use super::request::{Admin, Answer, Request};
use super::source::Source;
use super::unnamed::{Unnamed, UnnamedQueue};
use rhumb_commit::pages::Pages;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{Actor, Body, Collect, Input, Loaded, RequestId, Space, Token};
use rhumb_core::record::{decode, encode};
use rhumb_core::{Batch, Effects, Inspect, Rules, SiteId, Table, Time, Timestamp};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// What a site reads after a start, in this order.
const RECOVERED: [Space; 7] = [CLOCK_BOUND, CONFIGURATION, BASE, ACCEPTOR, DECISIONS, PREPARED, ASIDE];

/// One site: its roles, and what they share.
#[derive(Debug)]
pub struct Site {
    shared: Shared,
    roles: Roles,
}

/// The roles of a site.
#[derive(Debug)]
struct Roles {
    /// What earlier incarnations left.
    recovery: Pages,
    /// True once all that was on disk is read.
    is_serving: bool,
    gateway: Gateway,
    replica: Replica,
    unnamed: UnnamedQueue,
    acceptor: Acceptor,
    mover: Mover,
    reconciler: Reconciler,
    monitor: Monitor,
    injector: LoadInjector,
}

impl Site {
    /// The site `me` of a cluster that began with these quorums, before its start. If it is in none of them, it may join.
    pub fn new(me: SiteId, quorums: Quorums, config: Config) -> Site {
        let mut configuration = Configuration::first(quorums);
        if let Some(adaptation) = &config.adaptation {
            configuration.cores = if adaptation.auto { Cores::Auto } else { Cores::Fixed(adaptation.settings.cores) };
        }
        let holds = configuration.bases.get(&me).copied().unwrap_or_default();
        let reconciler = Reconciler::new(Base { holds, kept: Epoch(0) });
        let roles = Roles {
            recovery: Pages::new(&RECOVERED, RECOVERY_PAGE, PAGE_BYTES_MAX),
            is_serving: false,
            gateway: Gateway::default(),
            replica: Replica::default(),
            unnamed: UnnamedQueue::default(),
            acceptor: Acceptor::default(),
            mover: Mover::default(),
            reconciler,
            monitor: Monitor::default(),
            injector: LoadInjector::default(),
        };
        Site { shared: Shared::new(me, configuration, config), roles }
    }

    /// The same site by other rules.
    pub fn with_rules(mut self, rules: Rules<Planted>) -> Site {
        self.shared.rules = rules;
        self
    }

    /// How many transactions wait for an outcome here, or are decided and not known to all.
    pub fn unresolved(&self) -> usize {
        self.roles.replica.prepared() + self.roles.gateway.undelivered()
    }

    /// The configuration that this site has adopted.
    pub fn configuration(&self) -> &Configuration {
        &self.shared.configuration
    }

    /// True if it has stopped serving its epoch.
    pub fn is_sealed(&self) -> bool {
        self.roles.acceptor.is_sealed()
    }

    /// True if all that was committed before its epoch is here.
    pub fn is_caught_up(&self) -> bool {
        self.holds() >= self.shared.configuration.epoch
    }

    /// All that was committed before this epoch is here, as far as the site knows.
    pub fn holds(&self) -> Epoch {
        self.roles.reconciler.holds()
    }

    /// What this site says of the quorums.
    pub fn explanation(&self) -> Explanation {
        let Site { shared, roles } = self;
        let (plan, up) = (roles.monitor.plan(shared), shared.up());
        let all: BTreeSet<SiteId> = shared.configuration.members().into_iter().chain([shared.me]).chain(roles.monitor.joining()).collect();
        let facts = |site: SiteId| {
            let score = plan.as_ref().and_then(|plan| plan.scores.get(&site)).copied();
            let facts = roles.monitor.facts(site, score, shared);
            let caught_up = if site == shared.me { self.is_caught_up() } else { facts.caught_up };
            SiteFacts { caught_up, ..facts }
        };
        Explanation {
            site: shared.me,
            epoch: shared.configuration.epoch,
            cores: shared.configuration.cores,
            cause: shared.configuration.cause,
            why: shared.configuration.why.clone(),
            sealed: self.is_sealed(),
            sites: all.into_iter().map(facts).collect(),
            planner: up.first().copied(),
            plan,
            unresolved: self.unresolved(),
            tally: roles.acceptor.tally(roles.reconciler.copied()),
            tables: self.list_tables(),
        }
    }
}

impl Roles {
    /// Reads what earlier incarnations left, a page at a time; begins to serve once all is read.
    fn recover(&mut self, cx: &mut Context<'_>) {
        match self.recovery.next_load() {
            Some(load) => cx.load(Job::Recover, load),
            None => self.begin_to_serve(cx),
        }
    }

    fn on_recovered(&mut self, loaded: Loaded, cx: &mut Context<'_>) {
        let (space, records) = self.recovery.take(loaded);
        for (_, bytes) in &records {
            match space {
                CLOCK_BOUND => cx.recover_bound(sound(bytes)),
                CONFIGURATION => cx.recover_configuration(sound(bytes)),
                BASE => self.reconciler.restore(sound(bytes)),
                ACCEPTOR => self.acceptor.restore(sound(bytes), cx.ticks),
                DECISIONS => self.gateway.restore(sound(bytes)),
                PREPARED => self.replica.restore(sound(bytes)),
                _ => self.reconciler.restore_aside(sound(bytes)),
            }
        }
        self.recover(cx);
    }

    /// All that was on disk is read. What the site begins with is written: the first configuration follows from settings, and they may be
    /// others at the next start.
    fn begin_to_serve(&mut self, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        batch.put_record(CONFIGURATION, Vec::new(), encode(&cx.configuration));
        self.reconciler.put_base(&mut batch);
        let now = cx.now;
        let bound = cx.clock.renew(now).expect("an incarnation begins at its bound");
        cx.write_bound(bound, batch);
    }

    fn on_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        match cx.jobs.end(token) {
            Job::Read { txn, number, session } => self.replica.on_read_loaded(txn, number, session, loaded, cx),
            Job::Recover => self.on_recovered(loaded, cx),
            Job::Differences { asked, before } => self.source().on_differences_loaded(asked, before, loaded, cx),
            Job::Versions { asked, epochs, next } => self.source().on_versions_loaded(asked, epochs, next, loaded, cx),
            Job::AllRows { asked, before } => self.source().on_all_rows_loaded(asked, before, loaded, cx),
            Job::Copies(asked) => self.source().on_copies_loaded(asked, loaded, cx),
            Job::Compared { from, page } => self.reconciler.on_compared(from, page, loaded, cx),
            Job::Old => self.reconciler.on_old_loaded(loaded, cx),
            Job::Counted => self.monitor.on_counted(loaded),
            Job::ClockBound(_) => unreachable!("it is written, not loaded"),
        }
    }

    /// The clock's bound on disk has risen: what waited for a timestamp goes on.
    fn on_persisted(&mut self, token: Token, cx: &mut Context<'_>) {
        let Job::ClockBound(bound) = cx.jobs.end(token) else { unreachable!("only bounds of the clock are waited for") };
        cx.clock.on_durable(bound);
        self.is_serving = true;
        for unnamed in self.unnamed.take() {
            match unnamed {
                Unnamed::Begin(id, request) => self.on_request(id, request, cx),
                Unnamed::Session(from, note) => self.on_note(from, note, cx),
            }
        }
    }

    fn on_tick(&mut self, cx: &mut Context<'_>) {
        cx.fx.set_timer(Timer::Tick, cx.shared.config.tick);
        cx.ticks += 1;
        // Those who may join, too.
        let asked: BTreeSet<SiteId> = cx.heard().chain(cx.configuration.members()).filter(|site| *site != cx.me).collect();
        for site in asked {
            cx.send(site, Note::Ping { sent: cx.now });
        }
        if !self.is_serving {
            return;
        }
        let now = cx.now;
        if let Some(bound) = cx.clock.renew_ahead(now) {
            cx.write_bound(bound, Batch::new());
        }
        if !self.acceptor.is_sealed() {
            self.replica.tick(cx);
            if let Some(goal) = self.replica.end_of_orphans(cx) {
                self.mover.change(goal, None, &self.acceptor, cx);
            }
        }
        self.gateway.tick(cx);
        if !self.mover.is_busy()
            && let Some(goal) = self.acceptor.tick(cx)
        {
            self.mover.attempt(goal, None, &self.acceptor, cx);
        }
        self.mover.tick(cx);
        self.reconciler.tick(cx);
        self.monitor.ask_to_join(cx);
        self.injector.tick(cx);
        if let Some(goal) = self.monitor.tick(self.activity(cx), cx) {
            self.mover.change(goal, None, &self.acceptor, cx);
        }
        if cx.ticks.is_multiple_of(COLLECT_EVERY) {
            // Reads and reconciliations ask for the newest version. Deletions are kept: a site that missed one would show the deleted row again.
            cx.fx.collect(Collect { horizon: cx.shared.clock.last(), deletions: Timestamp::ZERO });
        }
    }

    /// What the other roles are at, for the monitor.
    fn activity(&self, cx: &Shared) -> Activity {
        Activity {
            in_progress: self.gateway.in_progress() + self.injector.begins(),
            committed: self.gateway.commits(),
            injected_percent: self.injector.percent(),
            written: self.replica.written(),
            caught_up: self.reconciler.holds() >= cx.configuration.epoch,
            sealed: self.acceptor.is_sealed(),
            moving: self.mover.is_busy(),
        }
    }

    /// What this site can tell of the past.
    fn source(&self) -> Source<'_> {
        Source { base: self.reconciler.base(), replica: &self.replica, is_sealed: self.acceptor.is_sealed() }
    }

    /// True if transactions of the epoch go on here.
    fn is_open(&self, cx: &Shared) -> bool {
        cx.is_member() && (!self.acceptor.is_sealed() || cx.rules.breaks(Planted::OldEpochServed))
    }

    fn on_note(&mut self, from: SiteId, Stamped { epoch, said }: Stamped<Note>, cx: &mut Context<'_>) {
        match said {
            // These speak of epochs themselves.
            Note::Behind => drop(cx.is_of_now(from, Epoch(0))),
            Note::Decided { configuration } => self.adopt(*configuration, cx),
            Note::Pull(pull) => self.source().on_pull(from, epoch, pull, cx),
            Note::Fetch { number, keys } => self.source().on_fetch(Asked { by: from, number }, keys, cx),
            _ if !cx.is_of_now(from, epoch) => {}
            Note::Ping { sent } => self.monitor.on_ping(from, sent, cx),
            Note::Pong { sent, hears } => {
                let tick = cx.ticks;
                cx.peers.answer(from, tick, hears);
                self.monitor.on_pong(from, sent, cx);
            }
            Note::Measured { measured } => self.monitor.on_measured(from, measured, cx),
            Note::Join => self.monitor.on_join(from, cx.ticks),
            Note::Seal { ballot, goal } => {
                let near = NearAcceptor { replica: &self.replica, reconciler: &self.reconciler };
                let vote = self.acceptor.on_seal(from, ballot, goal, &near, cx);
                self.cast(vote, cx);
            }
            Note::Outbid { ballot } => self.mover.on_outbid(ballot, cx),
            Note::Reconcile { ballot, anchor, sources } => self.reconciler.on_reconcile(ballot, anchor, sources, cx),
            Note::Advances { ballot, pages } if ballot.leader == cx.me => self.mover.on_advances(from, ballot, pages, cx),
            Note::Advances { ballot, .. } => self.acceptor.on_advances(ballot, cx.ticks),
            Note::Accept { ballot, configuration } => {
                let vote = self.acceptor.on_accept(from, ballot, configuration, cx);
                self.cast(vote, cx);
            }
            _ if !self.is_open(cx) => {}
            said if self.unnamed.delays_session(&said, &self.replica, cx) => {
                self.unnamed.push(Unnamed::Session(from, Stamped { epoch, said }));
            }
            Note::Read { txn, number, query } => self.replica.on_read(txn, number, query, cx),
            Note::Rows(rows) => self.gateway.on_rows(from, rows, cx),
            Note::Confirm { txn, session } => self.replica.on_confirm(txn, session, cx),
            Note::Confirmed { txn } => self.gateway.on_confirmed(from, txn, cx),
            Note::Prepare { txn, session, writes } => self.replica.on_prepare(txn, session, writes, cx),
            Note::Refused { txn, session } => self.gateway.on_refused(from, txn, session, cx),
            Note::Abort { txn } => self.replica.on_abort(txn, cx),
            Note::Inquire { txn, committed } => self.gateway.on_inquire(from, txn, committed, cx),
            Note::Settled { txn } => self.replica.on_settled(txn, cx),
        }
    }

    fn on_promise(&mut self, from: SiteId, Stamped { epoch, said }: Stamped<Promise>, cx: &mut Context<'_>) {
        match said {
            // These speak of epochs themselves.
            Promise::Commits { number, commits, next } => self.reconciler.on_commits(from, number, commits, next, cx),
            Promise::Differences(page) => self.reconciler.on_differences(from, page, cx),
            Promise::Copies { number, rows } => self.reconciler.on_copies(from, number, rows, cx),
            _ if !cx.is_of_now(from, epoch) => {}
            Promise::Sealed { ballot, report } => self.mover.on_sealed(from, ballot, report, cx),
            Promise::Reconciled { ballot, .. } => self.mover.on_reconciled(from, ballot, cx),
            Promise::Accepted { ballot } => self.mover.on_accepted(from, ballot, cx),
            Promise::Committed { txn } => {
                // The decision is this site's own.
                self.gateway.on_committed(from, txn, cx);
                if self.is_open(cx) {
                    self.replica.on_confirmed_commit(from, txn, cx);
                }
            }
            _ if !self.is_open(cx) => {}
            Promise::Prepared { txn, clock } => self.gateway.on_prepared(from, txn, clock, cx),
            Promise::Commit { txn, at, participants } => self.replica.on_commit(txn, at, participants, cx),
        }
    }

    /// What the acceptor has promised goes to disk, and to the mover. If the site stops serving with that, its clients hear of it.
    fn cast(&mut self, vote: Option<Vote>, cx: &mut Context<'_>) {
        let Some(Vote { to, promise, batch, stops_serving }) = vote else { return };
        if stops_serving {
            self.gateway.interrupt(cx);
        }
        cx.promise(batch, to, promise);
    }

    /// The next configuration was decided: the epoch ends for all roles, and what it carried on counts.
    fn adopt(&mut self, next: Configuration, cx: &mut Context<'_>) {
        if next.epoch <= cx.configuration.epoch {
            return;
        }
        cx.fx.trace(|| format!("adopts {next}"));
        cx.fx.count("quad.adopted");
        let mut batch = Batch::new();
        self.replica.delete_prepared(&mut batch);
        let mut aside = self.reconciler.take_aside(&mut batch);
        for Carried { txn, at } in &next.carried {
            cx.observe(*at, &mut batch);
            // A site that was not reconciled for it catches up with these rows as with all others.
            if let Some(writes) = aside.remove(txn).map(|commit| commit.writes).or_else(|| self.replica.take_commit(*txn)) {
                cx.fx.agree(TRANSACTION, txn, &Some(*at));
                cx.fx.count("quad.carried");
                put_versions(&mut batch, Epoch(next.epoch.0 - 1), *at, writes);
            }
        }
        self.gateway.end_epoch(&next, &self.replica, &mut batch, cx);
        self.replica = Replica::default();
        cx.observe(next.floor, &mut batch);
        self.reconciler.end_epoch(&next, &mut batch, cx);
        self.acceptor.end_epoch(&next, &mut batch, cx.now);
        cx.adopt(next);
        self.monitor.begin_epoch();
        cx.fx.persist(batch);
        self.mover.end_attempt(cx);
        self.reconciler.begin_epoch(cx);
        for (id, request) in self.gateway.take_waiting() {
            self.on_request(id, request, cx);
        }
    }

    fn on_request(&mut self, id: RequestId, request: Request, cx: &mut Context<'_>) {
        if self.unnamed.delays_begin(&request, cx) {
            return self.unnamed.push(Unnamed::Begin(id, request));
        }
        self.gateway.on_request(id, request, self.acceptor.is_sealed(), cx);
    }

    fn on_admin(&mut self, id: RequestId, asked: Admin, cx: &mut Context<'_>) {
        let goal = match asked {
            Admin::Change(goal) => Ok(Some(goal)),
            Admin::Leave(leave) => without(leave, cx.me, self.monitor.situation(cx), &cx.configuration).map(Some),
            Admin::Cores(cores) => with_cores(cores, self.monitor.situation(cx), &cx.configuration),
            Admin::Join => {
                self.monitor.join();
                Ok(None)
            }
            Admin::InjectLoad(load) => return self.injector.on_inject_load(id, load, cx),
            Admin::Explain => unreachable!("the site explains itself"),
        };
        match goal {
            Ok(Some(goal)) => self.mover.change(goal, Some(id), &self.acceptor, cx),
            Ok(None) => cx.fx.answer(id, Answer::Done),
            Err(error) => cx.refuse(id, TxnError::Invalid(error)),
        }
    }
}

/// What a record of this protocol says.
fn sound<T: DeserializeOwned>(bytes: &[u8]) -> T {
    decode(bytes).expect("the store holds what this protocol wrote")
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let Site { shared, roles } = self;
        roles.gateway.tables(visit);
        roles.replica.tables(visit);
        roles.unnamed.tables(visit);
        roles.injector.tables(visit);
        roles.reconciler.tables(visit);
        shared.tables(visit);
    }
}

impl Actor for Site {
    type Note = Stamped<Note>;
    type Promise = Stamped<Promise>;
    type Timer = Timer;
    type Request = Request;
    type Answer = Answer;

    fn step(&mut self, now: Time, input: Input<Site>, fx: &mut Effects<Site>) {
        self.shared.now = now;
        let cx = &mut Context { shared: &mut self.shared, fx };
        let Some(input) = self.roles.injector.hold(input, &self.roles.replica, cx) else { return };
        let is_serving = self.roles.is_serving;
        match input {
            Input::Client { id, .. } if !is_serving => {
                cx.refuse(id, TxnError::Unavailable("this site is still reading its disk".into()));
            }
            Input::Client { id, request: Request::Admin(Admin::Explain) } => {
                let explanation = Box::new(self.explanation());
                fx.answer(id, Answer::Admin(explanation));
            }
            Input::Start => {
                cx.fx.set_timer(Timer::Tick, cx.shared.config.tick);
                self.roles.recover(cx);
            }
            Input::Loaded { token, loaded } => self.roles.on_loaded(token, loaded, cx),
            Input::Persisted { token } => self.roles.on_persisted(token, cx),
            Input::Timer(Timer::Tick) => self.roles.on_tick(cx),
            Input::Timer(Timer::Held(_)) => unreachable!("what was held is served in its place"),
            Input::Client { id, request: Request::Admin(asked) } => self.roles.on_admin(id, asked, cx),
            Input::Client { id, request } => self.roles.on_request(id, request, cx),
            Input::Message { from, body } => {
                let tick = cx.ticks;
                cx.peers.hear(from, tick);
                match body {
                    _ if !is_serving => {}
                    Body::Note(note) => self.roles.on_note(from, note, cx),
                    Body::Promise(promise) => self.roles.on_promise(from, promise, cx),
                }
            }
        }
    }
}
