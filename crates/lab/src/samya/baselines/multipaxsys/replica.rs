//! A replica: gateway, acceptor and, if it has to, candidate and leader.

use super::acceptor::Acceptor;
use super::command::Entry;
use super::gateway::Gateway;
use super::leader::{Leader, Turn};
use super::message::{Note, Promise};
use super::state::State;
use super::{ELECTION, ELECTION_STAGGER, Effects, HEARTBEAT, Settings};
use rhumb_core::actor::{Actor, Body, Input, RequestId};
use rhumb_core::{Ballot, SiteId, Span, Time};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request, Status};
use std::collections::BTreeMap;

const LOAD_TOKEN: u64 = 0;

/// The one timer, set again each time it runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer;

/// What a voter is at the moment. A site that does not vote is a follower for ever.
enum Role {
    Follower,
    Candidate(Candidacy),
    Leader(Leader),
}

/// An attempt to lead.
struct Candidacy {
    ballot: Ballot,
    since: Time,
    promises: BTreeMap<SiteId, Vec<(u64, Ballot, Entry)>>,
}

/// A replica.
pub struct Replica {
    me: SiteId,
    sites: Vec<SiteId>,
    voters: Vec<SiteId>,
    settings: Settings,
    gateway: Gateway,
    acceptor: Acceptor,
    state: State,
    role: Role,
    /// When it last heard from a leader, or started.
    heard: Time,
    /// The highest number of a ballot that it knows of.
    round: u64,
    /// False until its records are read from disk.
    serving: bool,
}

impl Replica {
    /// The replica of `me` among `sites`, of which `voters` keep the log. The first voter leads first.
    pub fn new(me: SiteId, sites: Vec<SiteId>, voters: Vec<SiteId>, settings: Settings) -> Replica {
        Replica {
            me,
            sites,
            voters,
            settings,
            gateway: Gateway::new(me),
            acceptor: Acceptor::default(),
            state: State::default(),
            role: Role::Follower,
            heard: Time::ZERO,
            round: 0,
            serving: false,
        }
    }

    /// True if it leads.
    pub fn leads(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    /// The state as of the log applied here.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn rank(&self) -> Option<u64> {
        self.voters.iter().position(|voter| *voter == self.me).map(|rank| rank as u64)
    }

    fn client(&mut self, now: Time, id: RequestId, request: Request, fx: &mut Effects) {
        match request {
            Request::List => fx.answer(id, Answer::Listed(self.state.list(self.me))),
            Request::Status => fx.answer(
                id,
                Answer::Status(Status {
                    serving: self.serving,
                    quotas: self.state.quota_count(),
                    waiting: self.gateway.waiting(),
                    redistributing: 0,
                    lost: Vec::new(),
                    unsettled: 0,
                    tables: Vec::new(),
                }),
            ),
            request => self.gateway.ask(now, id, request, fx),
        }
    }

    fn note(&mut self, now: Time, from: SiteId, note: Note, fx: &mut Effects) {
        match note {
            Note::Forward { id, request } => {
                if let Role::Leader(leader) = &mut self.role {
                    leader.enqueue(id, request);
                    self.take_turns(now, fx);
                }
            }
            Note::Reply { id, answer } => self.gateway.reply(id, answer, fx),
            Note::Heartbeat { ballot, chosen, sent } => self.heartbeat(now, (ballot, chosen, sent), fx),
            Note::Heard { ballot, sent } => {
                if let Some(leader) = self.leader_of(ballot) {
                    leader.heard_by(from, sent);
                }
            }
            Note::Prepare { ballot, applied } => {
                if self.may_vote_for(now, ballot) {
                    self.yield_to(ballot);
                    self.acceptor.prepare(from, ballot, applied, &self.state, fx);
                }
            }
            Note::Accept { ballot, slot, entry } => {
                self.yield_to(ballot);
                self.acceptor.accept(from, (ballot, slot, entry), self.state.applied(), fx);
            }
            Note::Chosen { ballot, slot } => self.apply_accepted(ballot, slot, fx),
            Note::Outdone { promised } => self.yield_to(promised),
            Note::Fetch { applied } => {
                if applied < self.state.applied() {
                    fx.send(from, Note::Snapshot { state: self.state.clone() });
                }
            }
            Note::Snapshot { state } => self.install(state, fx),
        }
    }

    fn promise(&mut self, now: Time, from: SiteId, promise: Promise, fx: &mut Effects) {
        match promise {
            Promise::Promised { ballot, accepted, state } => self.promised(now, from, ballot, accepted, state, fx),
            Promise::Accepted { ballot, slot } => {
                if let Some(leader) = self.leader_of(ballot) {
                    leader.stored(from, slot);
                    self.apply_chosen(now, fx);
                }
            }
        }
    }

    fn leader_of(&mut self, ballot: Ballot) -> Option<&mut Leader> {
        match &mut self.role {
            Role::Leader(leader) if leader.ballot == ballot => Some(leader),
            _ => None,
        }
    }

    /// While a leader is heard of, nobody else gets this vote: that is what its lease rests on.
    fn may_vote_for(&self, now: Time, ballot: Ballot) -> bool {
        ballot.leader == self.me || now.since(self.heard) >= ELECTION
    }

    /// Stops leading, or trying to, in a ballot below `ballot`.
    fn yield_to(&mut self, ballot: Ballot) {
        self.round = self.round.max(ballot.number);
        let mine = match &self.role {
            Role::Follower => return,
            Role::Candidate(candidacy) => candidacy.ballot,
            Role::Leader(leader) => leader.ballot,
        };
        if mine < ballot {
            self.role = Role::Follower;
        }
    }

    fn heartbeat(&mut self, now: Time, (ballot, chosen, sent): (Ballot, u64, Time), fx: &mut Effects) {
        if let Some(promised) = self.acceptor.promised().filter(|promised| *promised > ballot) {
            return fx.send(ballot.leader, Note::Outdone { promised });
        }
        self.yield_to(ballot);
        self.gateway.led_by(now, ballot, fx);
        self.heard = now;
        if self.rank().is_none() {
            return;
        }
        fx.send(ballot.leader, Note::Heard { ballot, sent });
        self.apply_accepted(ballot, chosen, fx);
        if self.state.applied() < chosen {
            fx.send(ballot.leader, Note::Fetch { applied: self.state.applied() });
        }
    }

    /// Applies what the leader of `ballot` says is chosen, as far as it was accepted here from that very leader.
    fn apply_accepted(&mut self, ballot: Ballot, chosen: u64, fx: &mut Effects) {
        while self.state.applied() < chosen
            && let Some(entry) = self.acceptor.entry(self.state.applied() + 1, ballot)
        {
            self.state.apply(self.state.applied() + 1, entry);
            self.acceptor.applied(&self.state, fx);
        }
    }

    /// As leader: applies what is chosen, answers, says so, and goes on with the queue.
    fn apply_chosen(&mut self, now: Time, fx: &mut Effects) {
        let before = self.state.applied();
        let Role::Leader(leader) = &mut self.role else { return };
        while let Some(entry) = leader.take_chosen(self.state.applied() + 1) {
            for (id, outcome) in self.state.apply(self.state.applied() + 1, &entry) {
                fx.send(id.gateway, Note::Reply { id, answer: outcome.into() });
            }
            self.acceptor.applied(&self.state, fx);
        }
        let slot = self.state.applied();
        if slot > before {
            for &voter in self.voters.iter().filter(|voter| **voter != self.me) {
                fx.send(voter, Note::Chosen { ballot: leader.ballot, slot });
            }
            self.take_turns(now, fx);
        }
    }

    fn take_turns(&mut self, now: Time, fx: &mut Effects) {
        let Role::Leader(leader) = &mut self.role else { return };
        while let Turn::Read(id, request) = leader.turn(now, fx) {
            let answer = match request {
                Request::Get { name, read } if leader.holds_lease(now) => self.state.info(&name, self.me, read),
                _ => Err(Refusal::Unavailable("the leader is not sure that it still leads".into())),
            };
            fx.send(id.gateway, Note::Reply { id, answer: Answer::Got(answer) });
        }
    }

    fn install(&mut self, state: State, fx: &mut Effects) {
        if state.applied() > self.state.applied() {
            fx.count("multipaxsys.snapshot");
            self.state = state;
            self.acceptor.write_snapshot(&self.state, fx);
        }
    }

    fn campaign(&mut self, now: Time, fx: &mut Effects) {
        self.round += 1;
        let ballot = Ballot { number: self.round, leader: self.me };
        fx.count("multipaxsys.election");
        for &voter in &self.voters {
            fx.send(voter, Note::Prepare { ballot, applied: self.state.applied() });
        }
        self.role = Role::Candidate(Candidacy { ballot, since: now, promises: BTreeMap::new() });
    }

    fn promised(
        &mut self,
        now: Time,
        from: SiteId,
        ballot: Ballot,
        accepted: Vec<(u64, Ballot, Entry)>,
        state: Option<State>,
        fx: &mut Effects,
    ) {
        let majority = self.voters.len() / 2 + 1;
        let Role::Candidate(candidacy) = &mut self.role else { return };
        if candidacy.ballot != ballot {
            return;
        }
        candidacy.promises.insert(from, accepted);
        let elected = candidacy.promises.len() >= majority;
        let promises = if elected { std::mem::take(&mut candidacy.promises) } else { BTreeMap::new() };
        if let Some(state) = state {
            self.install(state, fx);
        }
        if elected {
            let open = newest_entries(promises.into_values().flatten(), self.state.applied());
            let (shape, log) = ((self.voters.clone(), self.settings), (now, self.state.applied()));
            self.role = Role::Leader(Leader::new(ballot, shape, log, open, fx));
            fx.trace(|| format!("leads in {ballot}"));
            self.say_that_it_leads(now, fx);
        }
    }

    fn say_that_it_leads(&self, now: Time, fx: &mut Effects) {
        if let Role::Leader(leader) = &self.role {
            for &site in &self.sites {
                fx.send(site, Note::Heartbeat { ballot: leader.ballot, chosen: self.state.applied(), sent: now });
            }
        }
    }

    fn tick(&mut self, now: Time, fx: &mut Effects) {
        fx.set_timer(Timer, HEARTBEAT);
        self.gateway.tick(now, fx);
        self.say_that_it_leads(now, fx);
        let Some(rank) = self.rank().filter(|_| self.serving) else { return };
        let patience = ELECTION + ELECTION_STAGGER * rank;
        match &mut self.role {
            Role::Leader(leader) => leader.send_again(now, fx),
            Role::Candidate(candidacy) if now.since(candidacy.since) < patience => {}
            Role::Follower if now.since(self.heard) < patience => {}
            Role::Follower | Role::Candidate(_) => self.campaign(now, fx),
        }
    }
}

/// For each slot after `applied`, the entry accepted in the highest ballot.
fn newest_entries(accepted: impl Iterator<Item = (u64, Ballot, Entry)>, applied: u64) -> BTreeMap<u64, Entry> {
    let mut newest: BTreeMap<u64, (Ballot, Entry)> = BTreeMap::new();
    for (slot, ballot, entry) in accepted.filter(|(slot, ..)| *slot > applied) {
        if newest.get(&slot).is_none_or(|(known, _)| *known < ballot) {
            newest.insert(slot, (ballot, entry));
        }
    }
    newest.into_iter().map(|(slot, (_, entry))| (slot, entry)).collect()
}

impl Actor for Replica {
    type Note = Note;
    type Promise = Promise;
    type Timer = Timer;
    type Request = Request;
    type Answer = Answer;

    fn step(&mut self, now: Time, input: Input<Self>, fx: &mut Effects) {
        match input {
            Input::Start => {
                self.gateway.start(now);
                self.heard = now;
                Acceptor::load(LOAD_TOKEN, fx);
                fx.set_timer(Timer, Span::ZERO);
            }
            Input::Loaded { loaded, .. } => {
                (self.acceptor, self.state) = Acceptor::recover(loaded);
                self.round = self.acceptor.promised().map_or(0, |ballot| ballot.number);
                self.serving = true;
            }
            Input::Client { id, request } => self.client(now, id, request, fx),
            // Before its records are read it does not know what it promised.
            Input::Message { body: Body::Note(note), from } if self.serving => self.note(now, from, note, fx),
            Input::Message { body: Body::Promise(promise), from } if self.serving => self.promise(now, from, promise, fx),
            Input::Timer(Timer) => self.tick(now, fx),
            Input::Message { .. } | Input::Persisted { .. } => {}
        }
    }
}
