//! A site: gateway of its clients and replica in one actor. Here are dispatch, recovery, and who is up.

use super::config::{Config, RECOVERY_PAGE};
use super::gateway::Gateway;
use super::message::{Note, Promise};
use super::quorums::Quorums;
use super::records::{CEILING, DECISIONS, PREPARED, put_ceiling};
use super::replica::Replica;
use crate::replicated_commit::records::decode;
use crate::replicated_commit::{Answer, Request};
use crate::transaction::TxnError;
use rhumb_core::actor::{Actor, Body, Input, Load, Loaded, Space, Token};
use rhumb_core::{Batch, Effects, HybridClock, SiteId, Span, Time, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// A timer of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// See [`Config::tick`].
    Tick,
}

/// What a load is for.
#[derive(Debug)]
pub(super) enum Loading {
    /// A read under locks.
    Read { txn: TxnId, number: u32, session: Timestamp },
    /// Records, after a start.
    Recovery(Space),
}

/// A site. See the module's first lines.
#[derive(Debug)]
pub struct Site {
    pub(super) me: SiteId,
    pub(super) members: BTreeSet<SiteId>,
    pub(super) quorums: Quorums,
    pub(super) config: Config,
    pub(super) clock: HybridClock,
    /// No timestamp above it is issued: it is on disk.
    ceiling: Timestamp,
    /// The highest that is on its way to disk.
    pub(super) ceiling_written: Timestamp,
    /// Ceilings on their way, by token.
    ceilings: BTreeMap<Token, Timestamp>,
    /// Ticks of this life.
    pub(super) ticks: u64,
    /// The tick at which each site was last heard of.
    heard: BTreeMap<SiteId, u64>,
    serving: bool,
    loads: BTreeMap<Token, Loading>,
    tokens: Token,
    pub(super) gateway: Gateway,
    pub(super) replica: Replica,
    #[cfg(feature = "planted")]
    pub(super) planted: Option<super::planted::Planted>,
}

impl Site {
    /// The site `me` of a cluster with these quorums, before its start.
    pub fn new(me: SiteId, quorums: Quorums, config: Config) -> Site {
        Site {
            me,
            members: quorums.members(),
            quorums,
            config,
            clock: HybridClock::default(),
            ceiling: Timestamp::ZERO,
            ceiling_written: Timestamp::ZERO,
            ceilings: BTreeMap::new(),
            ticks: 0,
            heard: BTreeMap::new(),
            serving: false,
            loads: BTreeMap::new(),
            tokens: 0,
            gateway: Gateway::default(),
            replica: Replica::default(),
            #[cfg(feature = "planted")]
            planted: None,
        }
    }

    /// How many transactions wait for an outcome here, or are decided and not known to all.
    pub fn unresolved(&self) -> usize {
        self.replica.prepared() + self.gateway.undelivered()
    }

    /// The sites that are up, as far as this one knows.
    pub(super) fn up(&self) -> BTreeSet<SiteId> {
        let heard = |site: &SiteId| self.heard.get(site).is_some_and(|at| at + self.config.silent_ticks >= self.ticks);
        self.members.iter().copied().filter(|site| *site == self.me || heard(site)).collect()
    }

    /// True if a timestamp issued now would be one that no other life of this site issues.
    pub(super) fn may_issue(&self, now: Time) -> bool {
        self.clock.last().next().max(Timestamp::from_time(now)) < self.ceiling
    }

    pub(super) fn load(&mut self, loading: Loading, load: Load, fx: &mut Effects<Site>) {
        self.tokens += 1;
        self.loads.insert(self.tokens, loading);
        fx.load(self.tokens, load);
    }

    fn recover(&mut self, space: Space, from: Vec<u8>, fx: &mut Effects<Site>) {
        self.load(Loading::Recovery(space), Load::Records { space, from: from.into(), limit: RECOVERY_PAGE }, fx);
    }

    fn on_loaded(&mut self, now: Time, token: Token, loaded: Loaded, fx: &mut Effects<Site>) {
        match self.loads.remove(&token).expect("only what was asked for is loaded") {
            Loading::Read { txn, number, session } => self.on_read_loaded(txn, number, session, loaded, fx),
            Loading::Recovery(space) => self.on_records(now, space, loaded, fx),
        }
    }

    fn on_records(&mut self, now: Time, space: Space, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        const SOUND: &str = "the store holds what this protocol wrote";
        for (_, bytes) in &records {
            match space {
                CEILING => self.clock = HybridClock::above(decode(bytes).expect(SOUND)),
                DECISIONS => self.gateway.restore(decode(bytes).expect(SOUND)),
                _ => self.replica.restore(decode(bytes).expect(SOUND)),
            }
        }
        match (space, records.last()) {
            (_, Some((last, _))) if more => self.recover(space, [last, &[0][..]].concat(), fx),
            (CEILING, _) => self.recover(DECISIONS, Vec::new(), fx),
            (DECISIONS, _) => self.recover(PREPARED, Vec::new(), fx),
            _ => self.raise_ceiling(now, fx),
        }
    }

    /// Makes room for timestamps, well ahead of the clock.
    fn raise_ceiling(&mut self, now: Time, fx: &mut Effects<Site>) {
        let ahead = self.clock.last().max(Timestamp::from_time(now)).plus(self.config.ceiling_lead);
        let ceiling = ahead.max(self.ceiling_written);
        let mut batch = Batch::new();
        put_ceiling(&mut batch, ceiling);
        self.ceiling_written = ceiling;
        self.tokens += 1;
        self.ceilings.insert(self.tokens, ceiling);
        fx.persist(batch).notify(self.tokens);
    }

    fn on_tick(&mut self, now: Time, fx: &mut Effects<Site>) {
        fx.set_timer(Timer::Tick, self.config.tick);
        self.ticks += 1;
        for site in self.members.iter().filter(|site| **site != self.me) {
            fx.send(*site, Note::Ping);
        }
        if !self.serving {
            return;
        }
        let half = self.clock.last().max(Timestamp::from_time(now)).plus(Span::from_micros(self.config.ceiling_lead.as_micros() / 2));
        if half > self.ceiling_written || self.ceiling_written > self.ceiling && self.ceilings.is_empty() {
            self.raise_ceiling(now, fx);
        }
        self.tick_replica(now, fx);
        self.tick_gateway(fx);
    }

    fn on_note(&mut self, now: Time, from: SiteId, note: Note, fx: &mut Effects<Site>) {
        match note {
            Note::Ping => {}
            Note::Read { txn, number, query } => self.on_read(now, txn, number, query, fx),
            Note::Rows { txn, number, session, rows, more } => self.on_rows(from, (txn, number, session), (rows, more), fx),
            Note::Confirm { txn, session } => self.on_confirm(now, txn, session, fx),
            Note::Confirmed { txn } => self.on_confirmed(now, from, txn, fx),
            Note::Prepare { txn, session, writes } => self.on_prepare(now, (txn, session), writes, fx),
            Note::Refused { txn, session } => self.on_refused(from, txn, session, fx),
            Note::Abort { txn } => self.on_abort(now, txn, fx),
            Note::Inquire { txn } => self.on_inquire(from, txn, fx),
        }
    }

    fn on_promise(&mut self, now: Time, from: SiteId, promise: Promise, fx: &mut Effects<Site>) {
        match promise {
            Promise::Prepared { txn, clock } => self.on_prepared(now, from, txn, clock, fx),
            Promise::Commit { txn, at } => self.on_commit(now, txn, at, fx),
            Promise::Committed { txn } => self.on_committed(from, txn, fx),
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
        match input {
            Input::Start => {
                fx.set_timer(Timer::Tick, self.config.tick);
                self.recover(CEILING, Vec::new(), fx);
            }
            Input::Loaded { token, loaded } => self.on_loaded(now, token, loaded, fx),
            Input::Persisted { token } => {
                let ceiling = self.ceilings.remove(&token).expect("only ceilings ask for that");
                self.ceiling = self.ceiling.max(ceiling);
                self.serving = true;
            }
            Input::Timer(Timer::Tick) => self.on_tick(now, fx),
            Input::Client { id, .. } if !self.serving => {
                fx.answer(id, Answer::Failed(TxnError::Unavailable("this site is still reading its disk".into())));
            }
            Input::Client { id, request } => self.on_request(now, id, request, fx),
            Input::Message { from, body } => {
                self.heard.insert(from, self.ticks);
                match body {
                    _ if !self.serving => {}
                    Body::Note(note) => self.on_note(now, from, note, fx),
                    Body::Promise(promise) => self.on_promise(now, from, promise, fx),
                }
            }
        }
    }
}
