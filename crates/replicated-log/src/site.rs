//! The actor: one site, which is a replica of its shard, its leader at times, and the gateway of its clients.
//!
//! A site drops what arrives before it has recovered from its disk, as if it had been lost on the way. Each step ends with what has become chosen
//! being applied, and all that is to be written in one batch.

use crate::config::{Config, JOBS_MAX, LOADS_MAX, RECOVERY_BYTES, RECOVERY_RECORDS, TICK};
use crate::context::{Context, Job, Shared};
use crate::gateway::Gateway;
use crate::leader::{Asked, Leader, on_snapshot_loaded, read_snapshot};
use crate::message::{Note, Promise};
use crate::planted::Planted;
use crate::records::{self, CLOCK_BOUND, RECOVERED};
use crate::replica::{Found, Replica};
use crate::state::State;
use rhumb_commit::interactive::{Answer, Request};
use rhumb_commit::pages::Pages;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{RequestId, Token};
use rhumb_core::{Actor, Ballot, Body, Effects, Input, Inspect, Loaded, Rules, SiteId, Table, Time, Topology, TxnId};
use std::sync::Arc;

/// The timers of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Time to look what is late.
    Tick,
}

/// One site: its roles, and what they share.
pub struct Site {
    shared: Shared,
    recovery: Pages,
    found: Option<Found>,
    roles: Option<Roles>,
    serving: bool,
}

/// The roles of a site that has recovered.
struct Roles {
    replica: Replica,
    leader: Leader,
    gateway: Gateway,
}

impl Site {
    /// The site `me`, before its first step.
    ///
    /// # Panics
    /// If the cluster does not have it.
    pub fn new(me: SiteId, topology: Arc<Topology>, config: Config) -> Site {
        assert!(topology.has(me), "a site belongs to its cluster");
        let found = Some(Found::nothing(config.outcomes_max));
        let shared = Shared::new(me, topology, config);
        Site { shared, recovery: Pages::new(&RECOVERED, RECOVERY_RECORDS, RECOVERY_BYTES), found, roles: None, serving: false }
    }

    /// The same site by other rules.
    pub fn with_rules(mut self, rules: Rules<Planted>) -> Site {
        self.shared.rules = rules;
        self
    }

    /// What it has applied, once it has recovered.
    pub fn state(&self) -> Option<&State> {
        self.roles.as_ref().map(|roles| roles.replica.state())
    }

    /// Transactions that it has prepared and whose outcome it does not know.
    pub fn in_doubt(&self) -> usize {
        self.state().map_or(0, State::in_doubt)
    }

    /// The ballot in which it leads its group, if it does.
    pub fn leads(&self) -> Option<Ballot> {
        self.roles.as_ref().and_then(|roles| roles.replica.group().leads())
    }

    fn recover(&mut self, fx: &mut Effects<Site>) {
        let cx = &mut Context { shared: &mut self.shared, fx };
        match self.recovery.next_load() {
            Some(load) => {
                let token = cx.jobs.begin(Job::Recover);
                cx.fx.load(token, load);
            }
            None => {
                let found = self.found.take().expect("it recovers once");
                let replica = Replica::recovered(found, cx.shared);
                self.roles = Some(Roles { replica, leader: Leader::default(), gateway: Gateway::default() });
                let now = cx.now;
                let bound = cx.clock.renew(now);
                cx.write_bound(bound);
            }
        }
    }

    fn on_recovered(&mut self, loaded: Loaded, fx: &mut Effects<Site>) {
        let (space, found) = self.recovery.take(loaded);
        for (key, bytes) in found {
            if space == CLOCK_BOUND {
                self.shared.clock = self.shared.clock.recovered(records::decode_single(&bytes));
            } else {
                self.found.as_mut().expect("it recovers").take(space, &key, &bytes);
            }
        }
        self.recover(fx);
    }

    fn on_persisted(&mut self, token: Token, fx: &mut Effects<Site>) {
        let Job::ClockBound(bound) = self.shared.jobs.end(token) else { unreachable!("only bounds of the clock are waited for") };
        self.shared.clock.on_durable(bound);
        if !self.serving {
            self.serving = true;
            fx.set_timer(Timer::Tick, TICK);
        }
    }
}

impl Roles {
    fn on_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        match cx.jobs.end(token) {
            Job::Locked { txn, number, instance } => self.leader.on_locked_loaded((txn, number, instance), loaded, cx),
            Job::Expected { txn, instance } => self.leader.on_expected_loaded((txn, instance), loaded, &mut self.replica, cx),
            Job::Snapshot { to, txn, number, at, strict } => {
                let versions_from = self.replica.state().marks.versions_from;
                on_snapshot_loaded((to, txn, number, at, strict), loaded, versions_from, cx);
            }
            Job::Page { to, transfer, cursor } => self.replica.on_page_loaded((to, transfer, cursor), loaded, cx),
            Job::Recover | Job::ClockBound(_) => unreachable!("it has recovered, and bounds are not loaded"),
        }
    }

    fn on_tick(&mut self, cx: &mut Context<'_>) {
        cx.ticks += 1;
        cx.fx.set_timer(Timer::Tick, TICK);
        let now = cx.now;
        let bound = cx.clock.renew_ahead(now);
        cx.write_bound(bound);
        self.replica.on_tick(cx);
        self.leader.follow(&self.replica, cx);
        self.leader.on_tick(&mut self.replica, cx);
        self.gateway.on_tick(cx);
    }

    /// What only a leader does, this site does not.
    fn redirect(&mut self, from: SiteId, txn: TxnId, cx: &mut Context<'_>) {
        let leader = self.replica.group().leader().filter(|leader| *leader != cx.me);
        cx.send(from, Note::Elsewhere { txn, leader });
    }

    fn on_note(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        if note.is_of_leader() {
            cx.note_leader(from);
        }
        match note {
            Note::Group(note) => self.replica.on_note(from, note, cx),
            Note::Relay { from: sender, to, note } if to == cx.me => {
                cx.detour(sender, from);
                // If the link carries this, both ends go back to it.
                cx.fx.send(sender, Note::Straight);
                self.on_note(sender, *note, cx);
            }
            note @ Note::Relay { to, .. } => cx.fx.send(to, note),
            // It was heard, which is all.
            Note::Straight => {}
            Note::Fetch { transfer, cursor } => self.replica.on_fetch(from, transfer, cursor, cx),
            note @ Note::Page { .. } => self.replica.on_page(from, note, cx),
            note @ Note::Rows { .. } => self.gateway.on_rows(from, note, cx),
            Note::Refused { txn, number, why } => self.gateway.on_refused(txn, number, why, cx),
            Note::Wounded { txn } => self.gateway.on_wounded(txn, cx),
            Note::Outcome { txn, fate } => self.gateway.on_outcome(txn, fate, cx),
            Note::Elsewhere { txn, leader } => {
                match leader {
                    Some(leader) => cx.note_elsewhere(from, leader),
                    None => cx.pass_over(from),
                }
                self.gateway.on_elsewhere(txn, from, cx);
                self.leader.on_elsewhere(txn, from.shard);
            }
            Note::Snapshot { txn, number, at, query, strict } if !self.leader.serves() => {
                let marks = self.replica.state().marks;
                let is_here = !strict && at <= marks.closed && at >= marks.versions_from;
                if is_here && cx.jobs.count() < LOADS_MAX {
                    cx.fx.count("log.follower_read");
                    read_snapshot(from, (txn, number), at, &query, strict, cx);
                } else {
                    self.redirect(from, txn, cx);
                }
            }
            note => match note.for_leader() {
                Some(txn) if !self.leader.serves() => self.redirect(from, txn, cx),
                _ => self.on_led(from, note, cx),
            },
        }
    }

    /// What a leader is asked for.
    fn on_led(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        let Roles { replica, leader, .. } = self;
        match note {
            Note::Read { txn, number, session, query } => leader.on_read(txn, (number, session), query, replica, cx),
            Note::Snapshot { txn, number, at, query, strict } => {
                leader.on_snapshot(Asked { from, txn, number, at, query, strict }, replica, cx);
            }
            Note::Touch { txn } => leader.on_touch(txn, cx.ticks),
            Note::Release { txn } => leader.on_release(txn, cx),
            note @ Note::Prepare { .. } => leader.on_prepare(from, note, replica, cx),
            Note::Prepared { txn, at, shards } => leader.coordinator.on_prepared_elsewhere(from, (txn, at), &shards, replica, cx),
            Note::Vetoed { txn, shards, why } => leader.coordinator.on_vetoed(txn, &shards, why, replica, cx),
            Note::Decided { txn, committed } => leader.on_decided(from, txn, committed, replica, cx),
            Note::Finished { txn } => leader.coordinator.on_finished(from, txn, replica, cx.ticks),
            _ => unreachable!("all others are not for leaders"),
        }
    }

    /// Ends a step: applies what is chosen, and carries out what is to be sent and written. What is applied is written before anybody hears of it:
    /// whoever waited for a lock reads it.
    fn end_step(&mut self, cx: &mut Context<'_>) {
        loop {
            let applied = self.replica.apply();
            self.replica.carry_out(cx);
            let served = self.leader.serves();
            self.leader.follow(&self.replica, cx);
            if applied.is_empty() {
                break;
            }
            if served && self.leader.serves() {
                applied.iter().for_each(|applied| self.leader.on_applied(applied, &mut self.replica, cx));
            }
        }
        if self.leader.serves() {
            self.leader.snapshots.serve(&self.replica, cx);
        }
        self.replica.carry_out(cx);
    }
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        if let Some(roles) = &self.roles {
            roles.replica.tables(visit);
            roles.leader.tables(&self.shared.config, visit);
            roles.gateway.tables(visit);
        }
        visit(Table::new("site.jobs", self.shared.jobs.count(), JOBS_MAX));
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
        match input {
            Input::Start => return self.recover(fx),
            Input::Loaded { token, loaded } if self.roles.is_none() => {
                let Job::Recover = self.shared.jobs.end(token) else { unreachable!("it recovers") };
                return self.on_recovered(loaded, fx);
            }
            Input::Persisted { token } => return self.on_persisted(token, fx),
            Input::Client { id, .. } if !self.serving => {
                return fx.answer(id, Answer::Failed(TxnError::Unavailable("the site is recovering".into())));
            }
            _ if !self.serving => return,
            _ => {}
        }
        let Some(roles) = &mut self.roles else { return };
        let cx = &mut Context { shared: &mut self.shared, fx };
        roles.replica.at(cx);
        match input {
            Input::Loaded { token, loaded } => roles.on_loaded(token, loaded, cx),
            Input::Client { id, request } => on_request(roles, id, request, cx),
            Input::Message { from, body: Body::Note(note) } => {
                cx.heard(from);
                roles.on_note(from, note, cx);
            }
            Input::Message { from, body: Body::Promise(Promise::Group(promise)) } => {
                cx.heard(from);
                roles.replica.on_promise(from, promise);
            }
            Input::Timer(Timer::Tick) => roles.on_tick(cx),
            Input::Start | Input::Persisted { .. } => unreachable!("they were dealt with"),
        }
        roles.end_step(cx);
    }
}

fn on_request(roles: &mut Roles, id: RequestId, request: Request, cx: &mut Context<'_>) {
    roles.gateway.on_request(id, request, cx);
}
