//! The actor: one site.
//!
//! A site drops what arrives before it has recovered from its disk, as if it had been lost on the way. What its roles tell each other is
//! handled at the end of the same step.

use super::config::{Config, TRANSACTIONS_MAX};
use super::context::{Context, Shared};
use super::message::{Admin, Answer, Note, Promise, Request, Status};
use super::planted::Planted;
use super::roles::Roles;
use crate::job::Timer;
use rhumb_commit::placement::Placement;
use rhumb_core::{Actor, Body, Effects, Input, Inspect, Rules, SiteId, Table, Time, Topology};
use std::sync::Arc;

/// One site: its roles, and what they share.
#[derive(Clone, Debug)]
pub struct Site {
    shared: Shared,
    roles: Roles,
}

impl Site {
    /// The site `me`, before its first step.
    pub fn new(me: SiteId, topology: Arc<Topology>, placement: Placement, config: Config) -> Site {
        assert!(topology.has(me), "a site belongs to its cluster");
        assert!(!placement.voters.is_empty(), "somebody decides");
        assert!(config.keep_versions > config.forget_after, "what can still be prepared finds the versions that refuse it");
        Site { shared: Shared::new(me, topology, placement, config), roles: Roles::new() }
    }

    /// The same site by other rules.
    pub fn with_rules(mut self, rules: Rules<Planted>) -> Site {
        self.shared.rules = rules;
        self
    }

    /// True once it has recovered from its disk.
    pub fn is_serving(&self) -> bool {
        self.roles.is_serving()
    }

    /// The state of the site, for operators and tests.
    pub fn status(&self) -> Status {
        Status { tables: self.list_tables(), ..self.roles.status(&self.shared) }
    }
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let everywhere = self.shared.topology.sites().count() * TRANSACTIONS_MAX;
        self.roles.tables(everywhere, &self.shared, visit);
        self.shared.tables(everywhere, visit);
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
            Input::Start => roles.recover(cx),
            Input::Loaded { token, loaded } => roles.on_loaded(token, loaded, cx),
            Input::Persisted { token } => roles.on_persisted(token, cx),
            Input::Client { id, request } => roles.on_request(id, request, cx),
            Input::Message { .. } if !roles.is_serving() => {}
            Input::Message { from, body } => {
                cx.peers.heard(from, now);
                match body {
                    Body::Note(note) => roles.on_note(from, note, cx),
                    Body::Promise(promise) => roles.on_promise(from, promise, cx),
                }
            }
            Input::Timer(Timer::Tick) => roles.on_tick(cx),
            Input::Timer(Timer::RetryRead(retry)) => roles.on_retry_read(retry, cx),
        }
        roles.finish(cx);
    }
}
