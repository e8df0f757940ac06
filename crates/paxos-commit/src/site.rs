//! The actor: one site with its roles, and what they share.
//!
//! A site drops what arrives before it has recovered from its disk, as if it had been lost on the way.

use super::config::{CEILING_LEAD, Config, RECOVERY_PAGE, RUNNING_MAX, TICK};
use super::control::Control;
use super::coordinator::Coordinator;
use super::message::{Note, Promise};
use super::planted::Planted;
use super::reading::{Found, Reading};
use super::records::{self, CEILING, REGISTERS};
use super::replica::Replica;
use bytes::Bytes;
use rhumb_commit::clock_lease::ClockLease;
use rhumb_commit::one_shot::{Answer, Request};
use rhumb_commit::placement::Regions;
use rhumb_commit::timestamp_cache::TimestampCache;
use rhumb_commit::transaction::TxnError;
use rhumb_commit::votes::{Outcome, Vote};
use rhumb_core::actor::{RequestId, Token};
use rhumb_core::{
    Actor, Batch, Body, Effects, Input, Inspect, Load, Loaded, RegionId, Rules, SiteId, Table, Time, Timestamp, Topology, TxnId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The timers of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Time to look what is late.
    Tick,
}

/// What a load or a persist is for.
#[derive(Debug)]
pub(super) enum Job {
    /// The ceiling of an earlier life.
    RecoverCeiling,
    /// Its registers, a page of them.
    RecoverRegisters,
    /// A ceiling is durable.
    Ceiling(Timestamp),
    /// Rows of an attempt: for an execution of this round, or to validate it.
    Read { txn: TxnId, round: Option<u64>, reading: Reading, is_range: bool },
}

/// One site.
pub struct Site {
    pub(super) me: SiteId,
    pub(super) topology: Arc<Topology>,
    pub(super) config: Config,
    /// All regions: they vote.
    pub(super) regions: Regions,
    /// This site's clock at the current step.
    pub(super) now: Time,
    /// Ticks in this life.
    pub(super) ticks: u64,
    pub(super) clock: ClockLease,
    /// Up to which timestamp keys were read by what was voted for here.
    pub(super) timestamp_cache: TimestampCache,
    pub(super) control: Control,
    pub(super) coordinator: Coordinator,
    pub(super) replica: Replica,
    serving: bool,
    jobs: BTreeMap<Token, Job>,
    next_token: Token,
    pub(super) rules: Rules<Planted>,
}

impl Site {
    /// The site `me`, before its first step.
    ///
    /// # Panics
    /// If the cluster does not have it, or a region has more than one site.
    pub fn new(me: SiteId, topology: Arc<Topology>, config: Config) -> Site {
        assert!(topology.has(me), "a site belongs to its cluster");
        assert_eq!(topology.shard_count(), 1, "a region has one site");
        Site {
            me,
            regions: Regions::first(topology.region_count()),
            now: Time::ZERO,
            ticks: 0,
            clock: ClockLease::new(CEILING_LEAD),
            timestamp_cache: TimestampCache::default(),
            control: Control::new(config.concurrency),
            coordinator: Coordinator::default(),
            replica: Replica::default(),
            serving: false,
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

    /// Attempts that it has voted for and whose outcome it does not know.
    pub fn in_doubt(&self) -> usize {
        self.replica.in_doubt()
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

    /// The first identifier of a transaction, with room for all its attempts behind it; none before the ceiling on disk allows that.
    pub(super) fn issue(&mut self, fx: &mut Effects<Site>) -> Option<Timestamp> {
        let room = |began: Timestamp| Timestamp::from_bits(began.bits() + self.config.concurrency.attempts_max());
        let next = room(self.clock.last().next().max(Timestamp::from_time(self.now)));
        let bound = self.clock.raise(next, self.now);
        self.write_ceiling(bound, fx);
        if next > self.clock.bound() {
            return None;
        }
        let began = self.clock.issue(self.now)?;
        self.clock.observe(next);
        Some(began)
    }

    /// Writes a ceiling, if one is to be written.
    fn write_ceiling(&mut self, bound: Option<Timestamp>, fx: &mut Effects<Site>) {
        let Some(ceiling) = bound else { return };
        let mut batch = Batch::new();
        records::put_ceiling(&mut batch, ceiling);
        let token = self.job(Job::Ceiling(ceiling));
        fx.persist(batch).notify(token);
    }

    fn recover(&mut self, fx: &mut Effects<Site>) {
        let token = self.job(Job::RecoverCeiling);
        fx.load(token, Load::Records { space: CEILING, from: Bytes::new(), limit: 1, bytes: usize::MAX });
    }

    fn recover_registers(&mut self, from: Bytes, fx: &mut Effects<Site>) {
        let token = self.job(Job::RecoverRegisters);
        fx.load(token, Load::Records { space: REGISTERS, from, limit: RECOVERY_PAGE, bytes: usize::MAX });
    }

    fn on_loaded(&mut self, token: Token, loaded: Loaded, fx: &mut Effects<Site>) {
        match (self.jobs.remove(&token).expect("every load has its job"), loaded) {
            (Job::Read { txn, round, reading, is_range }, loaded) => self.on_read((txn, round, is_range), reading, loaded, fx),
            (Job::RecoverCeiling, Loaded::Records { records, .. }) => {
                if let Some((_, bytes)) = records.first() {
                    let ceiling = records::decode_ceiling(bytes).expect("a ceiling on disk is whole");
                    self.clock = self.clock.recovered(ceiling);
                }
                self.recover_registers(Bytes::new(), fx);
            }
            (Job::RecoverRegisters, Loaded::Records { records, more }) => {
                let mut last = None;
                for (key, bytes) in records {
                    let txn = records::decode_key(&key).expect("keys on disk are whole");
                    self.resume(txn, records::decode_register(&bytes).expect("registers on disk are whole"));
                    last = Some(key);
                }
                match last.filter(|_| more) {
                    Some(last) => self.recover_registers(Bytes::from([&last[..], &[0]].concat()), fx),
                    None => {
                        let bound = self.clock.renew(self.now);
                        self.write_ceiling(bound, fx);
                    }
                }
            }
            _ => unreachable!("records were asked for"),
        }
    }

    fn on_persisted(&mut self, token: Token, fx: &mut Effects<Site>) {
        let Some(Job::Ceiling(ceiling)) = self.jobs.remove(&token) else { unreachable!("only ceilings are waited for") };
        self.clock.on_durable(ceiling);
        if !self.serving {
            self.serving = true;
            fx.set_timer(Timer::Tick, TICK);
        }
    }

    fn on_tick(&mut self, fx: &mut Effects<Site>) {
        self.ticks += 1;
        fx.set_timer(Timer::Tick, TICK);
        let bound = self.clock.renew_ahead(self.now);
        self.write_ceiling(bound, fx);
        self.look_after_attempts(fx);
        self.look_after_clients(fx);
    }

    fn on_request(&mut self, id: RequestId, request: Request, fx: &mut Effects<Site>) {
        match request {
            Request::Admin(none) => match none {},
            _ if !self.serving => fx.answer(id, Answer::Failed(TxnError::Unavailable("the site is recovering".into()))),
            Request::Run(transaction) => self.on_run(id, transaction, fx),
            Request::Read { keys, ranges, .. } => self.on_read_only(id, keys, ranges, fx),
        }
    }

    /// A region's vote counts for an attempt that this site coordinates, and for one that it is in doubt about.
    fn take_vote(&mut self, region: RegionId, txn: TxnId, vote: Vote, fx: &mut Effects<Site>) {
        self.count_vote(region, txn, &vote, fx);
        self.on_voted(region, txn, vote, fx);
    }

    fn on_note(&mut self, from: SiteId, note: Note, fx: &mut Effects<Site>) {
        match note {
            Note::Execute { txn, transaction } => self.on_execute(txn, &transaction, fx),
            Note::Executed { txn, rows, ranges, more, above } => {
                self.on_executed(from.region, txn, Found { rows, ranges, more }, above, fx);
            }
            Note::Wounded { txn } => self.on_wounded(from.region, txn),
            Note::Release { txn } => self.on_release(txn, fx),
            Note::Prepare { txn, proposal } => self.on_prepare(txn, proposal, fx),
            Note::Decided { txn, committed } => {
                let outcome = if committed.is_some() { Outcome::Committed } else { Outcome::Aborted };
                self.apply(txn, committed, fx);
                self.conclude(txn, outcome, fx);
            }
            Note::Inquire { txn, doubter } => self.on_inquire(from, txn, doubter, fx),
            Note::Passed { txn, region, vote } => self.take_vote(region, txn, vote, fx),
        }
    }
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let everywhere = self.topology.region_count() * RUNNING_MAX;
        self.coordinator.tables(visit);
        self.replica.tables(everywhere, visit);
        self.timestamp_cache.tables(visit);
        visit(Table::new("jobs", self.jobs.len(), 2 * everywhere).resting_at(1));
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
            Input::Start => self.recover(fx),
            Input::Loaded { token, loaded } => self.on_loaded(token, loaded, fx),
            Input::Persisted { token } => self.on_persisted(token, fx),
            Input::Client { id, request } => self.on_request(id, request, fx),
            Input::Message { .. } if !self.serving => {}
            Input::Message { from, body: Body::Note(note) } => self.on_note(from, note, fx),
            Input::Message { from, body: Body::Promise(Promise::Voted { txn, vote }) } => self.take_vote(from.region, txn, vote, fx),
            Input::Message { from, body: Body::Promise(Promise::Pass { txn, vote, doubter }) } => {
                fx.send(doubter, Note::Passed { txn, region: from.region, vote });
            }
            Input::Timer(Timer::Tick) => self.on_tick(fx),
        }
    }
}
