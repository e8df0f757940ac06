//! The actor: one site.
//!
//! A site drops what arrives before it has recovered from its disk, as if it had been lost on the way.

use super::config::{Config, RECOVERY_PAGE, RUNNING_MAX, TICK};
use super::context::{Context, Job, Shared};
use super::coordinator::Coordinator;
use super::message::{Note, Promise};
use super::planted::Planted;
use super::reading::Found;
use super::records::{self, CLOCK_BOUND, REGISTERS};
use super::replica::Replica;
use rhumb_commit::one_shot::{Answer, Request};
use rhumb_commit::pages::Pages;
use rhumb_commit::transaction::TxnError;
use rhumb_commit::votes::{Outcome, Vote};
use rhumb_core::actor::{RequestId, Space, Token};
use rhumb_core::{Actor, Body, Effects, Input, Inspect, Loaded, RegionId, Rules, SiteId, Table, Time, Topology, TxnId};
use std::sync::Arc;

/// What earlier incarnations have left, in the order in which it is read.
const RECOVERED: [Space; 2] = [CLOCK_BOUND, REGISTERS];

/// The timers of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Time to look what is late.
    Tick,
}

/// One site: its roles, and what they share.
pub struct Site {
    shared: Shared,
    roles: Roles,
}

/// The roles of a site.
struct Roles {
    coordinator: Coordinator,
    replica: Replica,
    recovery: Pages,
    serving: bool,
}

impl Site {
    /// The site `me`, before its first step.
    ///
    /// # Panics
    /// If the cluster does not have it, or a region has more than one site.
    pub fn new(me: SiteId, topology: Arc<Topology>, config: Config) -> Site {
        assert!(topology.has(me), "a site belongs to its cluster");
        assert_eq!(topology.shard_count(), 1, "a region has one site");
        let roles = Roles {
            coordinator: Coordinator::default(),
            replica: Replica::new(config.concurrency),
            recovery: Pages::new(&RECOVERED, RECOVERY_PAGE, usize::MAX),
            serving: false,
        };
        Site { shared: Shared::new(me, topology, config), roles }
    }

    /// The same site by other rules.
    pub fn with_rules(mut self, rules: Rules<Planted>) -> Site {
        self.shared.rules = rules;
        self
    }

    /// Attempts that it has voted for and whose outcome it does not know.
    pub fn in_doubt(&self) -> usize {
        self.roles.replica.in_doubt()
    }
}

impl Roles {
    /// Asks for what earlier incarnations have left; once all is read, for a bound of the clock, with which it serves.
    fn recover(&mut self, cx: &mut Context<'_>) {
        match self.recovery.next_load() {
            Some(load) => {
                let token = cx.jobs.begin(Job::Recover);
                cx.fx.load(token, load);
            }
            None => {
                let now = cx.now;
                let bound = cx.clock.renew(now);
                cx.write_bound(bound);
            }
        }
    }

    fn on_recovered(&mut self, loaded: Loaded, cx: &mut Context<'_>) {
        let (space, records) = self.recovery.take(loaded);
        for (key, bytes) in records {
            if space == CLOCK_BOUND {
                let bound = records::decode_clock_bound(&bytes).expect("a bound of the clock on disk is whole");
                cx.clock = cx.clock.recovered(bound);
            } else {
                let txn = records::decode_key(&key).expect("keys on disk are whole");
                self.replica.resume(txn, records::decode_register(&bytes).expect("registers on disk are whole"), cx);
            }
        }
        self.recover(cx);
    }

    fn on_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        match cx.jobs.end(token) {
            Job::Read { txn, round, reading, is_range } => self.replica.on_read((txn, round, is_range), reading, loaded, cx),
            Job::Recover => self.on_recovered(loaded, cx),
            Job::ClockBound(_) => unreachable!("it is written, not loaded"),
        }
    }

    fn on_persisted(&mut self, token: Token, cx: &mut Context<'_>) {
        let Job::ClockBound(bound) = cx.jobs.end(token) else { unreachable!("only bounds of the clock are waited for") };
        cx.clock.on_durable(bound);
        if !self.serving {
            self.serving = true;
            cx.fx.set_timer(Timer::Tick, TICK);
        }
    }

    fn on_tick(&mut self, cx: &mut Context<'_>) {
        cx.ticks += 1;
        cx.fx.set_timer(Timer::Tick, TICK);
        let now = cx.now;
        let bound = cx.clock.renew_ahead(now);
        cx.write_bound(bound);
        self.replica.look_after_attempts(cx);
        self.coordinator.look_after_clients(cx);
    }

    fn on_request(&mut self, id: RequestId, request: Request, cx: &mut Context<'_>) {
        match request {
            Request::Admin(none) => match none {},
            _ if !self.serving => cx.fx.answer(id, Answer::Failed(TxnError::Unavailable("the site is recovering".into()))),
            Request::Run(transaction) => self.coordinator.on_run(id, transaction, cx),
            Request::Read { keys, ranges, .. } => self.coordinator.on_read_only(id, keys, ranges, cx),
        }
    }

    /// A region's vote counts for an attempt that this site coordinates, and for one that it is in doubt about.
    fn take_vote(&mut self, region: RegionId, txn: TxnId, vote: Vote, cx: &mut Context<'_>) {
        self.replica.count_vote(region, txn, &vote, cx);
        self.coordinator.on_voted(region, txn, vote, cx);
    }

    fn on_note(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        match note {
            Note::Execute { txn, transaction } => self.replica.on_execute(txn, &transaction, cx),
            Note::Executed { txn, rows, ranges, more, above } => {
                self.coordinator.on_executed(from.region, txn, Found { rows, ranges, more }, above, cx);
            }
            Note::Wounded { txn } => self.coordinator.on_wounded(from.region, txn),
            Note::Release { txn } => self.replica.on_release(txn, cx),
            Note::Prepare { txn, proposal } => self.replica.on_prepare(txn, proposal, cx),
            Note::Decided { txn, committed } => {
                let outcome = if committed.is_some() { Outcome::Committed } else { Outcome::Aborted };
                self.replica.apply(txn, committed, cx);
                self.coordinator.conclude(txn, outcome, cx);
            }
            Note::Inquire { txn, doubter } => self.replica.on_inquire(from, txn, doubter, cx),
            Note::Passed { txn, region, vote } => self.take_vote(region, txn, vote, cx),
        }
    }
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let everywhere = self.shared.topology.region_count() * RUNNING_MAX;
        self.roles.coordinator.tables(visit);
        self.roles.replica.tables(everywhere, visit);
        visit(Table::new("jobs", self.shared.jobs.count(), 2 * everywhere).resting_at(1));
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
        let Site { shared, roles } = self;
        let cx = &mut Context { shared, fx };
        match input {
            Input::Start => roles.recover(cx),
            Input::Loaded { token, loaded } => roles.on_loaded(token, loaded, cx),
            Input::Persisted { token } => roles.on_persisted(token, cx),
            Input::Client { id, request } => roles.on_request(id, request, cx),
            Input::Message { .. } if !roles.serving => {}
            Input::Message { from, body: Body::Note(note) } => roles.on_note(from, note, cx),
            Input::Message { from, body: Body::Promise(Promise::Voted { txn, vote }) } => roles.take_vote(from.region, txn, vote, cx),
            Input::Message { from, body: Body::Promise(Promise::Pass { txn, vote, doubter }) } => {
                cx.fx.send(doubter, Note::Passed { txn, region: from.region, vote });
            }
            Input::Timer(Timer::Tick) => roles.on_tick(cx),
        }
    }
}
