//! One role in a test, as site `r0.0` of three regions: events in, effects out, as text, in their order. The other roles are there to be seen, and
//! do nothing.

use super::catch_up::CatchUp;
use super::cohort::Cohort;
use super::config::Config;
use super::context::{Context, Local, Shared};
use super::coordinator::Coordinator;
use super::gateway::Gateway;
use super::message::{Answer, Attempt, Meta, Part, ReadCheck, Seen};
use super::mover::Mover;
use super::records::{CARRIED, LOG, NUMBERS, PLACEMENT, PREPARED, VOTES};
use super::roles::Roles;
use crate::Site;
use crate::views::{NearCatchUp, NearCohort, NearCoordinator, NearMover};
use rhumb_commit::placement::{Placement, Regions};
use rhumb_core::actor::{Effect, Space, Token};
use rhumb_core::{Effects, Loaded, Row, SiteId, Time, Timestamp, Topology, TxnId};
use rhumb_testkit::effects;
use std::sync::Arc;

/// The site itself, and those of its shard in the other regions.
pub(crate) const ME: SiteId = SiteId::new(0, 0);
pub(crate) const R1: SiteId = SiteId::new(1, 0);
pub(crate) const R2: SiteId = SiteId::new(2, 0);
/// The site of the other shard in its region, where there are two.
pub(crate) const OTHER: SiteId = SiteId::new(0, 1);

/// When every test begins.
const BEGINNING: Time = Time::from_micros(10_000_000);

/// The roles of the site, and what they share.
pub(crate) struct Stage {
    pub(crate) shared: Shared,
    pub(crate) roles: Roles,
    /// The last load or write that was to be told of.
    pub(crate) token: Token,
}

impl Stage {
    /// A site that has just begun to serve, with so many shards, settled in the first placement.
    pub(crate) fn new(shards: u16) -> Stage {
        let topology = Arc::new(Topology::new(["r0", "r1", "r2"].map(str::to_owned).to_vec(), shards));
        let mut shared = Shared::new(ME, topology, Placement::everywhere(3), Config::default());
        shared.now = BEGINNING;
        if let Some(bound) = shared.clock.renew(BEGINNING) {
            shared.clock.on_durable(bound);
        }
        for site in shared.topology.sites().collect::<Vec<_>>() {
            shared.peers.heard(site, BEGINNING);
        }
        let mut stage = Stage { shared, roles: Roles::new(), token: 0 };
        stage.move_on(|mover, near, cx| {
            mover.recover(None, cx);
            mover.next(near, cx);
        });
        stage
    }

    fn said<T>(&mut self, act: impl FnOnce(&mut Stage, &mut Effects<Site>) -> T) -> (T, Vec<String>) {
        let mut fx = Effects::new(false).recording();
        let result = act(self, &mut fx);
        let mut said = Vec::new();
        for effect in fx.take() {
            match effect {
                Effect::Load { token, .. } | Effect::Persist { token: Some(token), .. } => self.token = token,
                Effect::Count(_) => continue,
                _ => {}
            }
            said.push(effects::line(&effect));
        }
        while let Some(local) = self.shared.next_local() {
            said.push(match local {
                Local::Note(note) => format!("to {ME}: {note}"),
                local => format!("tell {local:?}"),
            });
        }
        said.extend(effects::agreed(&mut fx));
        (result, said)
    }

    /// Has the roles act together; returns what they did.
    pub(crate) fn act(&mut self, act: impl FnOnce(&mut Roles, &mut Context<'_>)) -> Vec<String> {
        self.said(|stage, fx| act(&mut stage.roles, &mut Context { shared: &mut stage.shared, fx })).1
    }

    /// Has the coordinator act; returns what it did.
    pub(crate) fn coordinate(&mut self, act: impl FnOnce(&mut Coordinator, &NearCoordinator<'_>, &mut Context<'_>)) -> Vec<String> {
        self.act(|roles, cx| roles.coordinate(|coordinator, near| act(coordinator, near, cx)))
    }

    /// Has the cohort act; returns what that returns, and what it did.
    pub(crate) fn replicate<T>(&mut self, act: impl FnOnce(&mut Cohort, &NearCohort<'_>, &mut Context<'_>) -> T) -> (T, Vec<String>) {
        self.said(|Stage { shared, roles, .. }, fx| roles.replicate(|cohort, near| act(cohort, near, &mut Context { shared, fx })))
    }

    /// Has catch-up act; returns what it did.
    pub(crate) fn follow(&mut self, act: impl FnOnce(&mut CatchUp, &NearCatchUp<'_>, &mut Context<'_>)) -> Vec<String> {
        self.act(|roles, cx| roles.follow(|catch_up, near| act(catch_up, near, cx)))
    }

    /// Has the mover act; returns what that returns, and what it did.
    pub(crate) fn move_on<T>(&mut self, act: impl FnOnce(&mut Mover, &NearMover<'_>, &mut Context<'_>) -> T) -> (T, Vec<String>) {
        self.said(|Stage { shared, roles, .. }, fx| roles.move_on(|mover, near| act(mover, near, &mut Context { shared, fx })))
    }

    /// Has the gateway act; returns what it did.
    pub(crate) fn serve(&mut self, act: impl FnOnce(&mut Gateway, &mut Context<'_>)) -> Vec<String> {
        self.act(|roles, cx| act(&mut roles.gateway, cx))
    }

    /// An attempt of a transaction of `gateway` to commit at `at` milliseconds, in the shards `participants`.
    pub(crate) fn meta(&self, gateway: SiteId, at: u64, participants: &[u16]) -> Meta {
        let at = ms(at);
        Meta {
            attempt: Attempt { txn: TxnId { began: at, gateway }, made: at },
            at,
            epoch: self.shared.placement.epoch,
            electorate: Regions::first(3),
            declares_lost: Regions::NONE,
            two_rounds: false,
            coordinator: participants[0],
            participants: participants.to_vec(),
        }
    }
}

/// So many milliseconds after the beginning, as a timestamp.
pub(crate) fn ms(at: u64) -> Timestamp {
    Timestamp::from_time(Time::from_micros(BEGINNING.as_micros() + at * 1_000))
}

/// A part that has read `read` at a version, and writes `written`.
pub(crate) fn part(read: Option<(&str, Timestamp)>, written: &str) -> Part {
    Part {
        reads: read
            .map(|(key, version)| ReadCheck { key: key.into(), seen: Seen { version, is_live: version > Timestamp::ZERO } })
            .into_iter()
            .collect(),
        ranges: Vec::new(),
        writes: vec![(written.into(), Some("new".into()))],
    }
}

/// Rows without values that were loaded, by key and version.
pub(crate) fn rows(versions: &[(&str, Timestamp)]) -> Loaded {
    let rows = versions.iter().map(|(key, version)| Row { key: (*key).into(), version: *version, value: None });
    Loaded::Rows { rows: rows.collect(), more: false }
}

impl effects::Shown for Site {
    fn record(space: Space) -> &'static str {
        match space {
            NUMBERS => "number",
            PLACEMENT => "placement",
            VOTES => "vote",
            PREPARED => "prepared",
            CARRIED => "carried",
            LOG => "log",
            _ => "unknown",
        }
    }

    fn answer(answer: &Answer) -> String {
        match answer {
            Answer::Began { txn } => format!("began {txn}"),
            Answer::Committed(committed) => format!("committed after {} trips", committed.trips),
            Answer::Failed(error) => format!("failed: {error}"),
            other => format!("{other:?}"),
        }
    }
}
