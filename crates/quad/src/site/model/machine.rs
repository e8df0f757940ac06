//! One site of the product on its disk, with its clients and operators.

use super::case::Case;
use super::digest::digest;
use super::disk::Disk;
use super::facts::{End, Facts};
use super::message::Message;
use crate::context::Context;
use crate::injected_load::LoadInjector;
use crate::site::{Roles, Site};
use crate::testing::site;
use crate::{Admin, Answer, Config, Request};
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::actor::{Effect, Gated};
use rhumb_core::{Actor, Body, Effects, Input, Key, Time, TxnId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// When the clocks of all sites stand still.
const NOW: Time = Time::from_micros(1_000_000);

/// The request of an operator. Those of clients have the number of their transaction.
const OPERATOR: u64 = u64::MAX;

/// More than a site asks in an epoch.
const QUESTIONS_OF_AN_EPOCH: u64 = 1_000;

/// What happens to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    /// An operator asks for the change of this number.
    Ask(usize),
    /// A client commits the transaction of this number.
    Commit(usize),
    /// These messages arrive, by their numbers.
    Hear(Vec<u32>),
    /// The site crashes, and starts again.
    Crash,
}

#[derive(Clone)]
pub(super) struct Machine {
    number: usize,
    case: Arc<Case>,
    site: Site,
    disk: Disk,
    /// The transaction that a client has begun last.
    began: Option<TxnId>,
    /// What clients were told of theirs.
    ends: BTreeMap<usize, End>,
}

/// The row that a transaction writes.
fn row_of(transaction: usize) -> Key {
    Key::new(format!("row {transaction}"))
}

impl Machine {
    /// A site that has begun to serve.
    pub(super) fn new(number: usize, case: Arc<Case>) -> Machine {
        let (site, disk) = (boot(number, &case), Disk::default());
        let mut machine = Machine { number, case, site, disk, began: None, ends: BTreeMap::new() };
        machine.start();
        machine.forget();
        machine
    }

    /// The site reads its disk and begins to serve. At its first tick it goes on with what it lacks.
    fn start(&mut self) -> Vec<Message> {
        let mut sent = self.step(Input::Start);
        let mut fx = Effects::new(false);
        let Site { shared, roles } = &mut self.site;
        roles.reconciler.tick(&mut Context { shared, fx: &mut fx });
        sent.extend(self.carry_out(fx));
        sent
    }

    /// Something happens; `heard` are the messages that arrive. Returns what is sent.
    pub(super) fn take(&mut self, event: &Event, heard: Vec<Message>) -> Vec<Message> {
        let client = |id, request| Input::Client { id, request };
        let sent = match event {
            Event::Ask(number) => self.step(client(OPERATOR, Request::Admin(Admin::Change(self.case.changes[*number].goal.clone())))),
            Event::Commit(transaction) => {
                let id = *transaction as u64;
                let mut sent = self.step(client(id, Request::Begin { mode: ReadMode::Locking }));
                let txn = self.began.take().expect("an open site begins what clients ask for");
                let writes = vec![(row_of(*transaction), Some("value".into()))];
                let commit = Request::Commit { txn, writes, expect: Vec::new(), options: CommitOptions::default() };
                sent.extend(self.step(client(id, commit)));
                sent
            }
            Event::Hear(_) => {
                let inputs = heard.into_iter().map(|message| Input::Message { from: message.from, body: message.body });
                inputs.flat_map(|input| self.step(input)).collect()
            }
            Event::Crash => {
                self.site = boot(self.number, &self.case);
                self.start()
            }
        };
        self.forget();
        let mut together = Vec::new();
        sent.into_iter().for_each(|message| message.add_to(&mut together));
        together
    }

    /// Makes those states equal from which the same follows.
    fn forget(&mut self) {
        let Site { shared, roles } = &mut self.site;
        // Whom it has sent the configuration: nobody, so that it answers whoever is behind. All hear of decisions anyway.
        shared.peers.begin_epoch();
        (roles.acceptor, roles.reconciler) = (roles.acceptor.uncounted(), roles.reconciler.uncounted());
        // How many questions it has asked in epochs that are over, unless those of an earlier incarnation are to be told apart.
        if self.case.frail.is_none_or(|frail| frail.site != self.number) {
            shared.jobs.skip_to(QUESTIONS_OF_AN_EPOCH * shared.configuration.epoch.0);
        }
    }

    fn step(&mut self, input: Input<Site>) -> Vec<Message> {
        let mut fx = Effects::new(false);
        self.site.step(NOW, input, &mut fx);
        self.carry_out(fx)
    }

    /// Does what the site wants done, and what follows from that.
    fn carry_out(&mut self, mut fx: Effects<Site>) -> Vec<Message> {
        let me = site(self.number as u16);
        let (mut sent, mut inputs) = (Vec::new(), VecDeque::new());
        loop {
            let (mut promises, mut synced) = (Vec::new(), Vec::new());
            for effect in fx.take() {
                match effect {
                    Effect::Send { to, note } => sent.push(Message::new(me, to, Body::Note(note), &self.case)),
                    Effect::Load { token, load } => inputs.push_back(Input::Loaded { token, loaded: self.disk.load(&load) }),
                    Effect::Answer { id, answer } => self.hear_answer(id, answer),
                    Effect::Persist { batch, token, then } => {
                        let promised = |gated| match gated {
                            Gated::Send { to, promise } => Message::new(me, to, Body::Promise(promise), &self.case),
                            Gated::Answer { .. } => unreachable!("no client waits for a write"),
                        };
                        self.disk.write(&batch);
                        promises.extend(then.into_iter().map(promised));
                        synced.extend(token);
                    }
                    Effect::SetTimer { .. } | Effect::Collect(_) | Effect::Count(_) | Effect::Trace(_) => {}
                }
            }
            sent.append(&mut promises);
            inputs.extend(synced.into_iter().map(|token| Input::Persisted { token }));
            let Some(input) = inputs.pop_front() else { return sent };
            self.site.step(NOW, input, &mut fx);
        }
    }

    fn hear_answer(&mut self, id: u64, answer: Answer) {
        let end = match answer {
            Answer::Began { txn } => {
                self.began = Some(txn);
                return;
            }
            _ if id == OPERATOR => return,
            Answer::Committed(_) => End::Committed,
            Answer::Failed(TxnError::Unknown(_)) => End::Unknown,
            _ => End::Failed,
        };
        self.ends.insert(id as usize, end);
    }

    pub(super) fn facts(&self) -> Facts {
        let Site { shared, roles } = &self.site;
        let mut nameless = self.site.clone();
        nameless.shared.jobs = Default::default();
        Facts {
            epoch: shared.configuration.epoch,
            is_open: roles.is_open(shared),
            holds: self.site.holds(),
            rows: (0..self.case.transactions.len()).filter(|transaction| self.disk.has_row(&row_of(*transaction))).collect(),
            ends: self.ends.clone(),
            unresolved: self.site.unresolved(),
            rest: digest(&(&nameless, &self.disk, &self.ends)),
        }
    }

    /// A number for all that is here.
    pub(super) fn digest(&self) -> u64 {
        digest(&(&self.site, &self.disk, &self.ends))
    }
}

/// A site before its start, which takes all others to be up.
fn boot(number: usize, case: &Case) -> Site {
    let mut booted = Site::new(site(number as u16), case.first.clone(), Config::default()).with_rules(case.rules);
    for other in (0..case.sites()).filter(|other| *other != number).map(|other| site(other as u16)) {
        booted.shared.peers.hear(other, 0);
        booted.shared.peers.answer(other, 0, Vec::new());
    }
    booted
}

impl Clone for Site {
    fn clone(&self) -> Site {
        let Roles { recovery, is_serving, gateway, replica, unnamed, acceptor, mover, reconciler, monitor, injector: _ } = &self.roles;
        let roles = Roles {
            recovery: recovery.clone(),
            is_serving: *is_serving,
            gateway: gateway.clone(),
            replica: replica.clone(),
            unnamed: unnamed.clone(),
            acceptor: acceptor.clone(),
            mover: mover.clone(),
            reconciler: reconciler.clone(),
            monitor: monitor.clone(),
            // Nobody injects a load in the model.
            injector: LoadInjector::default(),
        };
        Site { shared: self.shared.clone(), roles }
    }
}
