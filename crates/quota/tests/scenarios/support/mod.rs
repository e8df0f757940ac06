//! A cluster driven by hand: real sites over in-memory stores, on a network that delivers in the order sent, at once,
//! except for what a scenario holds up or loses. Time stands still until a scenario lets it pass.
//!
//! The driver keeps the contract of [`rhumb_core::actor`]: loads see all persists before them, and what is gated by a
//! persist leaves only once it is synced, which is at once.

pub mod client;
mod transcript;

use rhumb_core::actor::{Effect, Gated, RequestId};
use rhumb_core::{Actor, Body, Effects, Input, SiteId, Span, Time, Topology};
use rhumb_quota::avantan::{self, any, majority};
use rhumb_quota::catalog::{self, Change};
use rhumb_quota::count;
use rhumb_quota::message::{Note, Promise};
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::site::Timer;
use rhumb_quota::{Config, Site};
use rhumb_store::{MemoryEngine, Store};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use transcript::Transcript;

/// When every scenario begins.
const BEGINNING: Time = Time::from_micros(10_000_000);

pub const R0: SiteId = SiteId::new(0, 0);
pub const R1: SiteId = SiteId::new(1, 0);
pub const R2: SiteId = SiteId::new(2, 0);
pub const R3: SiteId = SiteId::new(3, 0);
pub const R4: SiteId = SiteId::new(4, 0);

/// A message under way.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub from: SiteId,
    pub to: SiteId,
    pub body: Body<Note, Promise>,
}

/// One site: its store, which outlives a crash, and its present life, which does not.
struct Machine {
    store: Store<MemoryEngine>,
    life: Option<Life>,
}

struct Life {
    site: Site,
    timers: Vec<(Time, Timer)>,
}

/// A predicate on messages.
type Which = Box<dyn Fn(&Envelope) -> bool>;

pub struct Cluster {
    topology: Topology,
    now: Time,
    machines: BTreeMap<SiteId, Machine>,
    /// What a new site is made into before it starts.
    make: fn(Site) -> Site,
    /// In the order sent.
    wire: VecDeque<Envelope>,
    held: Which,
    cut: BTreeSet<SiteId>,
    answers: BTreeMap<RequestId, Answer>,
    requests: RequestId,
    transcript: Transcript,
}

impl Cluster {
    /// So many regions with one site each, all serving. The goal heads the transcript.
    pub fn new(regions: usize, goal: &str) -> Cluster {
        Cluster::with_sites(regions, goal, |site| site)
    }

    /// The same of sites that `make` has changed: it can plant a bug in them.
    pub fn with_sites(regions: usize, goal: &str, make: fn(Site) -> Site) -> Cluster {
        let names = ["north", "east", "west", "south", "centre"];
        let topology = Topology::new(names[..regions].iter().map(ToString::to_string).collect(), 1);
        let machine = || Machine { store: Store::open(MemoryEngine::new()).expect("an empty engine opens"), life: None };
        let mut cluster = Cluster {
            machines: topology.sites().map(|site| (site, machine())).collect(),
            topology,
            make,
            now: BEGINNING,
            wire: VecDeque::new(),
            held: Box::new(|_| false),
            cut: BTreeSet::new(),
            answers: BTreeMap::new(),
            requests: 0,
            transcript: Transcript::new(goal),
        };
        cluster.sites().into_iter().for_each(|site| cluster.start(site));
        cluster
    }

    pub fn sites(&self) -> Vec<SiteId> {
        self.machines.keys().copied().collect()
    }

    /// A line of the story.
    pub fn narrate(&mut self, text: &str) {
        self.transcript.narrate(text);
    }

    /// Ends the scenario: what happened must be what `tests/golden/<name>.txt` records.
    pub fn check(self, name: &str) {
        self.transcript.check(name);
    }

    /// Begins a life of `site`.
    pub fn start(&mut self, site: SiteId) {
        let actor = (self.make)(Site::new(site, &self.topology, Config::default()));
        let machine = self.machines.get_mut(&site).expect("a site of the cluster");
        assert!(machine.life.is_none(), "{site} is up already");
        machine.life = Some(Life { site: actor, timers: Vec::new() });
        self.step(site, Input::Start);
    }

    /// Ends the life of `site`.
    pub fn kill(&mut self, site: SiteId) {
        let machine = self.machines.get_mut(&site).expect("a site of the cluster");
        machine.life.take().expect("only the living die");
        let empty = Store::open(MemoryEngine::new()).expect("an empty engine opens");
        let mut engine = std::mem::replace(&mut machine.store, empty).into_engine();
        engine.crash(0);
        machine.store = Store::open(engine).expect("what a crash leaves opens");
    }

    /// Cuts a site off: what it sends, and what is sent to it, is lost.
    pub fn cut(&mut self, site: SiteId) {
        self.cut.insert(site);
    }

    /// Heals all cuts.
    pub fn heal(&mut self) {
        self.cut.clear();
    }

    /// Holds up the messages that `which` picks, in place of those held up before.
    pub fn hold(&mut self, which: impl Fn(&Envelope) -> bool + 'static) {
        self.held = Box::new(which);
    }

    /// Holds nothing up any more.
    pub fn let_go(&mut self) {
        self.hold(|_| false);
    }

    /// Loses the messages under way that `which` picks.
    pub fn lose(&mut self, which: impl Fn(&Envelope) -> bool) {
        let (lost, kept): (VecDeque<Envelope>, VecDeque<Envelope>) = self.wire.drain(..).partition(which);
        lost.iter().for_each(|envelope| self.transcript.lost(envelope));
        self.wire = kept;
    }

    /// Delivers the messages under way, and those that they cause, but for those held up.
    pub fn settle(&mut self) {
        while self.deliver_next() {}
    }

    fn deliver_next(&mut self) -> bool {
        let Some(next) = self.wire.iter().position(|envelope| !(self.held)(envelope)) else { return false };
        let envelope = self.wire.remove(next).expect("its position was just found");
        let cut = self.cut.contains(&envelope.from) || self.cut.contains(&envelope.to);
        if cut || self.machines[&envelope.to].life.is_none() {
            self.transcript.lost(&envelope);
            return true;
        }
        self.transcript.delivered(&envelope);
        self.step(envelope.to, Input::Message { from: envelope.from, body: envelope.body });
        true
    }

    /// Delivers the next so many messages under way, of those not held up; true if there were as many.
    pub fn deliver(&mut self, count: usize) -> bool {
        (0..count).all(|_| self.deliver_next())
    }

    /// Messages under way of those held up.
    pub fn under_way(&self) -> usize {
        self.wire.iter().filter(|envelope| (self.held)(envelope)).count()
    }

    /// Lets time pass: timers run out in the order in which they are due.
    pub fn advance(&mut self, span: Span) {
        let until = self.now + span;
        self.settle();
        while let Some((due, site, index)) = self.next_timer().filter(|(due, ..)| *due <= until) {
            self.now = due;
            let life = self.machines.get_mut(&site).and_then(|machine| machine.life.as_mut()).expect("a timer belongs to a life");
            let (_, timer) = life.timers.remove(index);
            self.step(site, Input::Timer(timer));
            self.settle();
        }
        self.now = until;
    }

    fn next_timer(&self) -> Option<(Time, SiteId, usize)> {
        let lives = self.machines.iter().filter_map(|(site, machine)| Some((*site, machine.life.as_ref()?)));
        lives.flat_map(|(site, life)| life.timers.iter().enumerate().map(move |(index, (due, _))| (*due, site, index))).min()
    }

    /// Steps `site`, carries out the effects, and steps it with what those bring.
    fn step(&mut self, site: SiteId, input: Input<Site>) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let life = self.machines.get_mut(&site).and_then(|machine| machine.life.as_mut()).expect("only the living act");
            let mut fx = Effects::new(false);
            life.site.step(self.now, input, &mut fx);
            for effect in fx.take() {
                self.carry_out(site, effect, &mut inputs);
            }
        }
    }

    fn carry_out(&mut self, site: SiteId, effect: Effect<Site>, inputs: &mut VecDeque<Input<Site>>) {
        let machine = self.machines.get_mut(&site).expect("a site of the cluster");
        let life = machine.life.as_mut().expect("only the living act");
        match effect {
            Effect::Send { to, note } => self.wire.push_back(Envelope { from: site, to, body: Body::Note(note) }),
            Effect::SetTimer { timer, after } => life.timers.push((self.now + after, timer)),
            Effect::Load { token, load } => {
                let loaded = machine.store.load(&load).expect("a store in memory does not fail");
                inputs.push_back(Input::Loaded { token, loaded });
            }
            Effect::Persist { batch, then, .. } => {
                machine.store.apply(&batch).expect("a store in memory does not fail");
                machine.store.sync().expect("a store in memory does not fail");
                self.transcript.written(site, &batch);
                for gated in then {
                    match gated {
                        Gated::Send { to, promise } => self.wire.push_back(Envelope { from: site, to, body: Body::Promise(promise) }),
                        Gated::Answer { id, answer } => self.answered(site, id, answer),
                    }
                }
            }
            Effect::Answer { id, answer } => self.answered(site, id, answer),
            Effect::Collect(_) => unreachable!("a quota site has no rows"),
            Effect::Count(_) | Effect::Trace(_) => {}
        }
    }

    fn answered(&mut self, site: SiteId, id: RequestId, answer: Answer) {
        self.transcript.answered(site, &answer);
        assert!(self.answers.insert(id, answer).is_none(), "a request is answered once");
    }

    /// Has a client of `site` ask.
    fn request(&mut self, site: SiteId, request: Request) -> RequestId {
        self.transcript.requested(site, &request);
        self.requests += 1;
        let id = self.requests;
        self.step(site, Input::Client { id, request });
        id
    }

    /// The living site itself, to be looked at.
    pub fn site(&self, site: SiteId) -> &Site {
        &self.machines[&site].life.as_ref().expect("only the living can be looked at").site
    }
}

impl Envelope {
    fn majority(&self) -> Option<&majority::Promise> {
        match &self.body {
            Body::Promise(Promise::Avantan(_, avantan::Promise::Majority(promise))) => Some(promise),
            _ => None,
        }
    }

    fn any(&self) -> Option<&any::Promise> {
        match &self.body {
            Body::Promise(Promise::Avantan(_, avantan::Promise::Any(promise))) => Some(promise),
            _ => None,
        }
    }

    /// True for what a site says to another's look at its tokens.
    pub fn is_seen(&self) -> bool {
        matches!(self.body, Body::Note(Note::Seen(..)))
    }

    /// True for all that is said in a count.
    pub fn is_of_a_count(&self) -> bool {
        matches!(self.body, Body::Promise(Promise::Count(..)) | Body::Note(Note::Count(..)))
    }

    /// True for the call to stand still for a count.
    pub fn is_stand(&self) -> bool {
        matches!(self.body, Body::Promise(Promise::Count(_, count::Promise::Stand { .. })))
    }

    /// True for the word that a site has stood still until it was told to go on.
    pub fn is_stood(&self) -> bool {
        matches!(self.body, Body::Promise(Promise::Count(_, count::Promise::Stood { .. })))
    }

    /// True for the proposal to book what lost sites have.
    pub fn is_booking(&self) -> bool {
        matches!(&self.body, Body::Promise(Promise::Catalog(catalog::Promise::Accept { command, .. })) if matches!(command.change, Change::Book { .. }))
    }

    /// True for the outcome of a count.
    pub fn is_counted(&self) -> bool {
        matches!(self.body, Body::Promise(Promise::Count(_, count::Promise::Counted { .. })))
    }

    /// True for the word that a count has come to nothing.
    #[cfg(feature = "planted")]
    pub fn is_void(&self) -> bool {
        matches!(self.body, Body::Note(Note::Count(_, count::Note::Void { .. })))
    }

    /// True for an `ElectionOk`.
    pub fn is_election_ok(&self) -> bool {
        matches!(self.majority(), Some(majority::Promise::ElectionOk { .. })) || matches!(self.any(), Some(any::Promise::ElectionOk { .. }))
    }

    /// True for an `Accept`.
    pub fn is_accept(&self) -> bool {
        matches!(self.majority(), Some(majority::Promise::Accept { .. })) || matches!(self.any(), Some(any::Promise::Accept { .. }))
    }

    /// True for an `AcceptOk`.
    pub fn is_accept_ok(&self) -> bool {
        matches!(self.majority(), Some(majority::Promise::AcceptOk { .. })) || matches!(self.any(), Some(any::Promise::AcceptOk { .. }))
    }

    /// True for a `Decided`.
    pub fn is_decided(&self) -> bool {
        let noted = matches!(self.body, Body::Note(Note::Avantan(_, avantan::Note::Majority(majority::Note::Decided { .. }))));
        noted || matches!(self.any(), Some(any::Promise::Decided { .. }))
    }
}
