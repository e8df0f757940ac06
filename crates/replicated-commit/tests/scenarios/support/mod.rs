//! A cluster driven by hand: real sites over in-memory stores, on a network that delivers in the order sent, at once,
//! except for what a scenario holds up or loses. Time stands still until a scenario lets it pass.
//!
//! The driver keeps the contract of [`rhumb_core::actor`]: loads see all persists before them, and what is gated by a
//! persist leaves only once it is synced, which is at once unless the scenario stalls the disk.

mod client;
pub mod messages;
mod transcript;

use bytes::Bytes;
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::CommitOptions;
use rhumb_core::actor::{Effect, Gated, MESSAGE_BYTES_MAX, RequestId, Space, Token};
use rhumb_core::{Actor, Body, Effects, Input, Key, Load, Loaded, RegionId, SiteId, Span, Time, Timestamp, Topology, Value, record};
use rhumb_replicated_commit::message::Voted;
use rhumb_replicated_commit::{Answer, Config, Note, Promise, Request, Site, Timer};
use rhumb_store::{MemoryEngine, Store};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
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

/// A write that is not durable: what waits for it, and how many bytes are unsynced with it.
struct Unsynced {
    token: Option<Token>,
    then: Vec<Gated<Site>>,
    bytes: usize,
}

/// One site: its store, which outlives a crash, and its present life, which does not.
struct Machine {
    store: Store<MemoryEngine>,
    life: Option<Life>,
    /// Its clock is ahead by so much.
    ahead: Span,
    /// Nothing is synced while true.
    stalled: bool,
    /// What is loaded is not answered while true.
    loads_held: bool,
}

struct Life {
    site: Site,
    timers: Vec<(Time, Timer)>,
    /// What waits for a stalled disk.
    unsynced: VecDeque<Unsynced>,
    /// What was loaded and is not answered yet.
    loaded: VecDeque<(Token, Loaded)>,
}

/// A predicate on messages.
type Which = Box<dyn Fn(&Envelope) -> bool>;

pub struct Cluster {
    topology: Arc<Topology>,
    placement: Placement,
    /// How clients commit.
    pub options: CommitOptions,
    now: Time,
    machines: BTreeMap<SiteId, Machine>,
    /// What a new site is made into before it starts.
    make: fn(Site) -> Site,
    /// In the order sent.
    wire: VecDeque<Envelope>,
    /// Bytes of the largest message sent so far.
    largest: usize,
    held: Which,
    cut: BTreeSet<RegionId>,
    answers: BTreeMap<RequestId, Answer>,
    requests: RequestId,
    transcript: Transcript,
}

impl Cluster {
    /// Three regions with `shards` sites each, all serving and known to each other. The goal heads the transcript.
    pub fn new(shards: u16, goal: &str) -> Cluster {
        Cluster::with_sites(shards, goal, |site| site)
    }

    /// The same with one site in each region, of which not all are active.
    pub fn placed(placement: Placement, goal: &str) -> Cluster {
        Cluster::build(3, 1, placement, goal, |site| site)
    }

    /// The same with one site in each of `regions`.
    pub fn of_regions(regions: usize, placement: Placement) -> Cluster {
        Cluster::build(regions, 1, placement, "", |site| site)
    }

    /// The same with `shards` sites in each of `regions`.
    pub fn of_sites(regions: usize, shards: u16, placement: Placement) -> Cluster {
        Cluster::build(regions, shards, placement, "", |site| site)
    }

    /// The same of sites that `make` has changed: it can plant a bug in them.
    pub fn with_sites(shards: u16, goal: &str, make: fn(Site) -> Site) -> Cluster {
        Cluster::build(3, shards, Placement::everywhere(3), goal, make)
    }

    fn build(regions: usize, shards: u16, placement: Placement, goal: &str, make: fn(Site) -> Site) -> Cluster {
        let names = ["north", "east", "west", "south", "middle"][..regions].iter().map(ToString::to_string).collect();
        let topology = Arc::new(Topology::new(names, shards));
        let machine = || Machine {
            store: Store::open(MemoryEngine::new()).expect("an empty engine opens"),
            life: None,
            ahead: Span::ZERO,
            stalled: false,
            loads_held: false,
        };
        let mut cluster = Cluster {
            machines: topology.sites().map(|site| (site, machine())).collect(),
            topology,
            placement,
            options: CommitOptions::default(),
            make,
            now: BEGINNING,
            wire: VecDeque::new(),
            largest: 0,
            held: Box::new(|_| false),
            cut: BTreeSet::new(),
            answers: BTreeMap::new(),
            requests: 0,
            transcript: Transcript::new(goal),
        };
        let sites: Vec<SiteId> = cluster.machines.keys().copied().collect();
        sites.iter().for_each(|site| cluster.start(*site));
        // Everybody hears everybody once.
        cluster.advance(Config::default().tick);
        cluster
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
        let actor = (self.make)(Site::new(site, Arc::clone(&self.topology), self.placement.clone(), Config::default()));
        let machine = self.machines.get_mut(&site).expect("a site of the cluster");
        assert!(machine.life.is_none(), "{site} is up already");
        machine.life = Some(Life { site: actor, timers: Vec::new(), unsynced: VecDeque::new(), loaded: VecDeque::new() });
        self.step(site, Input::Start);
    }

    /// Ends the life of `site`: what is not synced is lost.
    pub fn kill(&mut self, site: SiteId) {
        self.kill_keeping(site, 0);
    }

    /// Ends the life of `site`. Of the writes not synced the first `writes` have reached the disk.
    pub fn kill_keeping(&mut self, site: SiteId, writes: usize) {
        let machine = self.machines.get_mut(&site).expect("a site of the cluster");
        let life = machine.life.take().expect("only the living die");
        let kept = life.unsynced.iter().take(writes).next_back().map_or(0, |write| write.bytes);
        (machine.stalled, machine.loads_held) = (false, false);
        let empty = Store::open(MemoryEngine::new()).expect("an empty engine opens");
        let mut engine = std::mem::replace(&mut machine.store, empty).into_engine();
        engine.crash(kept);
        machine.store = Store::open(engine).expect("what a crash leaves opens");
    }

    /// From now on nothing that `site` writes reaches its disk.
    pub fn stall_disk(&mut self, site: SiteId) {
        self.machines.get_mut(&site).expect("a site of the cluster").stalled = true;
    }

    /// The disk of `site` works again, and has all that was written.
    pub fn free_disk(&mut self, site: SiteId) {
        self.machines.get_mut(&site).expect("a site of the cluster").stalled = false;
        let mut inputs = VecDeque::new();
        self.sync(site, &mut inputs);
        inputs.into_iter().for_each(|input| self.step(site, input));
    }

    /// From now on `site` reads its disk, and is not told what it has read.
    pub fn hold_loads(&mut self, site: SiteId) {
        self.machines.get_mut(&site).expect("a site of the cluster").loads_held = true;
    }

    /// `site` is told what it has read, and is again as it reads.
    pub fn answer_loads(&mut self, site: SiteId) {
        let machine = self.machines.get_mut(&site).expect("a site of the cluster");
        machine.loads_held = false;
        let loaded = std::mem::take(&mut machine.life.as_mut().expect("only the living read").loaded);
        loaded.into_iter().for_each(|(token, loaded)| self.step(site, Input::Loaded { token, loaded }));
    }

    /// How many messages under way `which` picks.
    pub fn under_way(&self, which: impl Fn(&Envelope) -> bool) -> usize {
        self.wire.iter().filter(|envelope| which(envelope)).count()
    }

    /// Sets the clock of `site` ahead of the others.
    pub fn set_ahead(&mut self, site: SiteId, ahead: Span) {
        self.machines.get_mut(&site).expect("a site of the cluster").ahead = ahead;
    }

    /// Cuts a region off: what it sends, and what is sent to it, is lost.
    pub fn cut(&mut self, region: RegionId) {
        self.cut.insert(region);
    }

    /// Heals all cuts.
    pub fn heal(&mut self) {
        self.cut.clear();
    }

    /// Holds up the messages that `which` picks, in place of those held up before. What a site sends to itself is
    /// never held up, nor lost.
    pub fn hold(&mut self, which: impl Fn(&Envelope) -> bool + 'static) {
        self.held = Box::new(which);
    }

    /// Holds nothing up any more.
    pub fn let_go(&mut self) {
        self.hold(|_| false);
    }

    /// Loses the messages under way that `which` picks.
    pub fn lose(&mut self, which: impl Fn(&Envelope) -> bool) {
        let (lost, kept): (VecDeque<Envelope>, VecDeque<Envelope>) =
            self.wire.drain(..).partition(|envelope| !envelope.is_to_itself() && which(envelope));
        lost.iter().for_each(|envelope| self.transcript.lost(envelope));
        self.wire = kept;
    }

    /// Delivers the messages under way, and those that they cause, but for those held up.
    pub fn settle(&mut self) {
        while let Some(next) = self.wire.iter().position(|envelope| envelope.is_to_itself() || !(self.held)(envelope)) {
            let envelope = self.wire.remove(next).expect("its position was just found");
            let cut = self.cut.contains(&envelope.from.region) || self.cut.contains(&envelope.to.region);
            if (cut && envelope.from.region != envelope.to.region) || self.machines[&envelope.to].life.is_none() {
                self.transcript.lost(&envelope);
                continue;
            }
            self.transcript.delivered(&envelope);
            self.step(envelope.to, Input::Message { from: envelope.from, body: envelope.body });
        }
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
            let Some(machine) = self.machines.get_mut(&site) else { return };
            let Some(life) = machine.life.as_mut() else { return };
            let mut fx = Effects::new(false);
            life.site.step(self.now + machine.ahead, input, &mut fx);
            for effect in fx.take() {
                self.carry_out(site, effect, &mut inputs);
            }
        }
    }

    fn carry_out(&mut self, site: SiteId, effect: Effect<Site>, inputs: &mut VecDeque<Input<Site>>) {
        let machine = self.machines.get_mut(&site).expect("a site of the cluster");
        let life = machine.life.as_mut().expect("only the living act");
        match effect {
            Effect::Send { to, note } => self.send(Envelope { from: site, to, body: Body::Note(note) }),
            Effect::SetTimer { timer, after } => life.timers.push((self.now + after, timer)),
            Effect::Load { token, load } => {
                let loaded = machine.store.load(&load).expect("a store in memory does not fail");
                if machine.loads_held {
                    life.loaded.push_back((token, loaded));
                } else {
                    inputs.push_back(Input::Loaded { token, loaded });
                }
            }
            Effect::Persist { batch, token, then } => {
                machine.store.apply(&batch).expect("a store in memory does not fail");
                life.unsynced.push_back(Unsynced { token, then, bytes: machine.store.engine().unsynced_bytes() });
                let stalled = machine.stalled;
                self.transcript.written(site, &batch, stalled);
                if !stalled {
                    self.sync(site, inputs);
                }
            }
            Effect::Answer { id, answer } => self.answered(site, id, answer),
            Effect::Collect(collect) => {
                machine.store.collect(collect, usize::MAX).expect("a store in memory does not fail");
            }
            Effect::Count(_) | Effect::Trace(_) => {}
        }
    }

    /// All that `site` has written is durable now.
    fn sync(&mut self, site: SiteId, inputs: &mut VecDeque<Input<Site>>) {
        let machine = self.machines.get_mut(&site).expect("a site of the cluster");
        machine.store.sync().expect("a store in memory does not fail");
        let life = machine.life.as_mut().expect("only the living act");
        for write in std::mem::take(&mut life.unsynced) {
            for gated in write.then {
                match gated {
                    Gated::Send { to, promise } => self.send(Envelope { from: site, to, body: Body::Promise(promise) }),
                    Gated::Answer { id, answer } => self.answered(site, id, answer),
                }
            }
            inputs.extend(write.token.map(|token| Input::Persisted { token }));
        }
    }

    /// Puts a message on the wire, which carries none larger than a real one does.
    fn send(&mut self, envelope: Envelope) {
        let bytes = record::encoded_bytes(&envelope.body);
        assert!(bytes <= MESSAGE_BYTES_MAX, "no wire carries a message of {bytes} bytes");
        if let Body::Promise(Promise::Vote(Voted { meta, region, .. })) = &envelope.body {
            assert_eq!(envelope.from, SiteId { region: *region, shard: meta.coordinator }, "a region votes once");
        }
        self.largest = self.largest.max(bytes);
        self.wire.push_back(envelope);
    }

    /// Bytes of the largest message sent since this was asked last.
    pub fn largest_message(&mut self) -> usize {
        std::mem::take(&mut self.largest)
    }

    /// The number of records of `space` on the disk of `site`.
    pub fn records(&self, site: SiteId, space: Space) -> usize {
        let load = Load::Records { space, from: Bytes::new(), limit: usize::MAX, bytes: usize::MAX };
        let loaded = self.machines[&site].store.load(&load).expect("a store in memory does not fail");
        let Loaded::Records { records, .. } = loaded else { unreachable!("records were asked for") };
        records.len()
    }

    fn answered(&mut self, site: SiteId, id: RequestId, answer: Answer) {
        self.transcript.answered(site, &answer);
        assert!(self.answers.insert(id, answer).is_none(), "a request is answered once");
    }

    /// Has a client of `site` ask.
    pub fn request(&mut self, site: SiteId, request: Request) -> RequestId {
        self.transcript.requested(site, &request);
        self.requests += 1;
        let id = self.requests;
        self.step(site, Input::Client { id, request });
        id
    }

    /// The newest value of `key` at `site`, and its version; nothing is asked of the actor.
    pub fn stored(&self, site: SiteId, key: &str) -> (Timestamp, Option<String>) {
        self.stored_at(site, key, Timestamp::MAX)
    }

    /// The newest value of `key` up to `at`, and its version.
    pub fn stored_at(&self, site: SiteId, key: &str, at: Timestamp) -> (Timestamp, Option<String>) {
        let (version, value) = self.stored_row(site, Key::from(key), at);
        (version, value.map(|value| String::from_utf8_lossy(&value.0).into_owned()))
    }

    /// The placement that the row on the disk of `site` shows.
    pub fn stored_placement(&self, site: SiteId) -> Placement {
        let (_, value) = self.stored_row(site, Placement::key(0, &self.topology), Timestamp::MAX);
        Placement::decode(&value.expect("it was changed")).expect("a placement decodes")
    }

    fn stored_row(&self, site: SiteId, key: Key, at: Timestamp) -> (Timestamp, Option<Value>) {
        let load = Load::Get { keys: vec![key], at, bytes: usize::MAX };
        let loaded = self.machines[&site].store.load(&load).expect("a store in memory does not fail");
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        (rows[0].version, rows[0].value.clone())
    }
}

impl Envelope {
    fn is_to_itself(&self) -> bool {
        self.from == self.to
    }

    /// True for an `Accept`.
    pub fn is_accept(&self) -> bool {
        matches!(self.body, Body::Note(Note::Accept { .. }))
    }

    /// True for a `Vote`.
    pub fn is_vote(&self) -> bool {
        matches!(self.body, Body::Promise(Promise::Vote(_)))
    }

    /// True for an `Accept` or a `Vote` of a transaction of `gateway`.
    pub fn is_of(&self, gateway: SiteId) -> bool {
        match &self.body {
            Body::Note(Note::Accept { meta, .. }) | Body::Promise(Promise::Vote(Voted { meta, .. })) => meta.attempt.txn.gateway == gateway,
            _ => false,
        }
    }
}
