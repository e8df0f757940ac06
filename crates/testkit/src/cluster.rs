//! A cluster driven by hand: real sites over in-memory stores, on a network that delivers in the order sent, at once,
//! except for what a scenario holds up or loses. Time stands still until a scenario lets it pass.
//!
//! The driver keeps the contract of [`rhumb_core::actor`]: loads see all persists before them, and what is gated by a
//! persist leaves only once it is synced, which is at once unless the scenario stalls the disk.

use super::machine::{IN_MEMORY, Machine, Unsynced};
use super::protocol::{Envelope, Protocol};
use super::transcript::Transcript;
use rhumb_core::actor::{Effect, Gated, MESSAGE_BYTES_MAX, RequestId};
use rhumb_core::{Actor, Body, Effects, Input, RegionId, SiteId, Span, Time, Topology, record};
use rhumb_store::{MemoryEngine, Store};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// When every scenario begins.
const BEGINNING: Time = Time::from_micros(10_000_000);

const REGIONS: [&str; 5] = ["north", "east", "west", "south", "middle"];

/// The first site of the first region.
pub const R0: SiteId = SiteId::new(0, 0);
/// That of the second.
pub const R1: SiteId = SiteId::new(1, 0);
/// That of the third.
pub const R2: SiteId = SiteId::new(2, 0);
/// That of the fourth.
pub const R3: SiteId = SiteId::new(3, 0);
/// That of the fifth.
pub const R4: SiteId = SiteId::new(4, 0);

/// A predicate on messages.
type Which<P> = Box<dyn Fn(&Message<P>) -> bool>;
type Message<P> = Envelope<<P as Protocol>::Site>;
type Request<P> = <<P as Protocol>::Site as Actor>::Request;
type Answer<P> = <<P as Protocol>::Site as Actor>::Answer;

/// The sites of a protocol, the network between them, and what has happened.
pub struct Cluster<P: Protocol> {
    protocol: P,
    topology: Arc<Topology>,
    now: Time,
    machines: BTreeMap<SiteId, Machine<P::Site>>,
    /// In the order sent.
    wire: VecDeque<Message<P>>,
    /// Bytes of the largest message sent so far.
    largest: usize,
    held: Which<P>,
    cut: BTreeSet<RegionId>,
    answers: BTreeMap<RequestId, Answer<P>>,
    requests: RequestId,
    transcript: Transcript,
}

impl<P: Protocol> Cluster<P> {
    /// So many regions with `shards` sites each, all started. The goal heads the transcript.
    pub fn new(protocol: P, regions: usize, shards: u16, goal: &str) -> Cluster<P> {
        let topology = Arc::new(Topology::new(REGIONS[..regions].iter().map(ToString::to_string).collect(), shards));
        let mut cluster = Cluster {
            protocol,
            now: BEGINNING,
            machines: topology.sites().map(|site| (site, Machine::new())).collect(),
            wire: VecDeque::new(),
            largest: 0,
            held: Box::new(|_| false),
            cut: BTreeSet::new(),
            answers: BTreeMap::new(),
            requests: 0,
            transcript: Transcript::new(goal),
            topology,
        };
        Arc::clone(&cluster.topology).sites().for_each(|site| cluster.start(site));
        cluster
    }

    /// The regions and their sites.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A line of the story.
    pub fn narrate(&mut self, text: &str) {
        self.transcript.narrate(text);
    }

    /// Ends the scenario: what happened must be what `tests/golden/<name>.txt` records.
    pub fn check(&self, name: &str) {
        self.transcript.check(name);
    }

    /// Starts `site`, with what its disk holds.
    pub fn start(&mut self, site: SiteId) {
        let actor = self.protocol.site(site, &self.topology);
        self.machine(site).start(actor);
        self.step(site, Input::Start);
    }

    /// Crashes `site`: what is not synced is lost.
    pub fn kill(&mut self, site: SiteId) {
        self.kill_keeping(site, 0);
    }

    /// Crashes `site`. Of the writes not synced the first `writes` have reached the disk.
    pub fn kill_keeping(&mut self, site: SiteId, writes: usize) {
        self.machine(site).crash(writes);
    }

    /// From now on nothing that `site` writes reaches its disk.
    pub fn stall_disk(&mut self, site: SiteId) {
        self.machine(site).stalled = true;
    }

    /// The disk of `site` works again, and has all that was written.
    pub fn free_disk(&mut self, site: SiteId) {
        self.machine(site).stalled = false;
        let mut inputs = VecDeque::new();
        self.sync(site, &mut inputs);
        inputs.into_iter().for_each(|input| self.step(site, input));
    }

    /// From now on `site` reads its disk, and gets no answer.
    pub fn hold_loads(&mut self, site: SiteId) {
        self.machine(site).loads_held = true;
    }

    /// `site` gets the answers to what it has read, and again at once to what it reads from now on.
    pub fn answer_loads(&mut self, site: SiteId) {
        let machine = self.machine(site);
        machine.loads_held = false;
        let loaded = std::mem::take(&mut machine.running().loaded);
        loaded.into_iter().for_each(|(token, loaded)| self.step(site, Input::Loaded { token, loaded }));
    }

    /// Sets the clock of `site` ahead of the others.
    pub fn set_ahead(&mut self, site: SiteId, ahead: Span) {
        self.machine(site).ahead = ahead;
    }

    /// Cuts a region off: what it sends to others, and what they send to it, is lost.
    pub fn cut(&mut self, region: RegionId) {
        self.cut.insert(region);
    }

    /// Heals all cuts.
    pub fn heal(&mut self) {
        self.cut.clear();
    }

    /// Holds up the messages that `which` picks, in place of those held up before. What a site sends to itself is
    /// never held up, nor lost.
    pub fn hold(&mut self, which: impl Fn(&Message<P>) -> bool + 'static) {
        self.held = Box::new(move |envelope| envelope.from != envelope.to && which(envelope));
    }

    /// Holds nothing up any more.
    pub fn let_go(&mut self) {
        self.hold(|_| false);
    }

    /// Loses the messages under way that `which` picks.
    pub fn lose(&mut self, which: impl Fn(&Message<P>) -> bool) {
        let (lost, kept): (VecDeque<_>, VecDeque<_>) =
            self.wire.drain(..).partition(|envelope| envelope.from != envelope.to && which(envelope));
        lost.iter().for_each(|envelope| self.write_down(envelope, "(lost) "));
        self.wire = kept;
    }

    /// How many messages under way `which` picks.
    pub fn under_way(&self, which: impl Fn(&Message<P>) -> bool) -> usize {
        self.wire.iter().filter(|envelope| which(envelope)).count()
    }

    /// Bytes of the largest message sent since this was asked last.
    pub fn largest_message(&mut self) -> usize {
        std::mem::take(&mut self.largest)
    }

    /// Delivers the messages under way, and those that they cause, but for those held up.
    pub fn settle(&mut self) {
        while self.deliver_next() {}
    }

    /// Delivers the next so many messages under way, of those not held up; true if there were as many.
    pub fn deliver(&mut self, count: usize) -> bool {
        (0..count).all(|_| self.deliver_next())
    }

    fn deliver_next(&mut self) -> bool {
        let Some(next) = self.wire.iter().position(|envelope| !(self.held)(envelope)) else { return false };
        let envelope = self.wire.remove(next).expect("its position was just found");
        let Envelope { from, to, .. } = envelope;
        let is_cut = from.region != to.region && [from, to].iter().any(|site| self.cut.contains(&site.region));
        if is_cut || !self.is_up(to) {
            self.write_down(&envelope, "(lost) ");
        } else {
            self.write_down(&envelope, "");
            self.step(to, Input::Message { from, body: envelope.body });
        }
        true
    }

    /// Writes a message down, with what became of it.
    fn write_down(&mut self, envelope: &Message<P>, fate: &str) {
        if !P::is_background(envelope) {
            let Envelope { from, to, body } = envelope;
            self.transcript.line(format_args!("{from} → {to}"), format_args!("{fate}{body}"));
        }
    }

    /// Lets time pass: timers run out in the order in which they are due.
    pub fn advance(&mut self, span: Span) {
        let until = self.now + span;
        self.settle();
        while let Some((due, site, index)) = self.next_timer().filter(|(due, ..)| *due <= until) {
            self.now = due;
            let (_, timer) = self.machine(site).running().timers.remove(index);
            self.step(site, Input::Timer(timer));
            self.settle();
        }
        self.now = until;
    }

    fn next_timer(&self) -> Option<(Time, SiteId, usize)> {
        let running = self.machines.iter().filter_map(|(site, machine)| Some((*site, machine.running.as_ref()?)));
        running.flat_map(|(site, running)| running.timers.iter().enumerate().map(move |(index, (due, _))| (*due, site, index))).min()
    }

    /// Has a client of `site` ask.
    pub fn request(&mut self, site: SiteId, request: Request<P>) -> RequestId {
        self.transcript.line(format_args!("client → {site}"), P::request(&request));
        self.requests += 1;
        let id = self.requests;
        self.step(site, Input::Client { id, request });
        id
    }

    /// The answer to a request, if there is one yet.
    pub fn answer(&self, id: RequestId) -> Option<&Answer<P>> {
        self.answers.get(&id)
    }

    /// True if the client waits for the answer.
    pub fn waits(&self, id: RequestId) -> bool {
        self.answer(id).is_none()
    }

    /// True unless `site` has crashed.
    pub fn is_up(&self, site: SiteId) -> bool {
        self.machines[&site].running.is_some()
    }

    /// The running site itself, to be looked at.
    pub fn site(&self, site: SiteId) -> &P::Site {
        &self.machines[&site].running.as_ref().expect("it is up").actor
    }

    /// The disk of `site`, to be looked at.
    pub fn store(&self, site: SiteId) -> &Store<MemoryEngine> {
        &self.machines[&site].store
    }

    fn machine(&mut self, site: SiteId) -> &mut Machine<P::Site> {
        self.machines.get_mut(&site).expect("a site of the cluster")
    }

    /// Steps `site`, carries out the effects, and steps it with what those bring.
    fn step(&mut self, site: SiteId, input: Input<P::Site>) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.now;
            let machine = self.machine(site);
            let clock = now + machine.ahead;
            let mut fx = Effects::new(false).at_steady(now);
            machine.running().actor.step(clock, input, &mut fx);
            for effect in fx.take() {
                self.carry_out(site, effect, &mut inputs);
            }
        }
    }

    fn carry_out(&mut self, site: SiteId, effect: Effect<P::Site>, inputs: &mut VecDeque<Input<P::Site>>) {
        let now = self.now;
        let machine = self.machine(site);
        match effect {
            Effect::Send { to, note } => self.send(Envelope { from: site, to, body: Body::Note(note) }),
            Effect::SetTimer { timer, after } => machine.running().timers.push((now + after, timer)),
            Effect::Load { token, load } => {
                let loaded = machine.store.load(&load).expect(IN_MEMORY);
                if machine.loads_held {
                    machine.running().loaded.push_back((token, loaded));
                } else {
                    inputs.push_back(Input::Loaded { token, loaded });
                }
            }
            Effect::Persist { batch, token, then } => {
                machine.store.apply(&batch).expect(IN_MEMORY);
                let bytes = machine.store.engine().unsynced_bytes();
                machine.running().unsynced.push_back(Unsynced { token, then, bytes });
                let stalled = machine.stalled;
                let ops: Vec<String> = batch.ops.iter().filter_map(P::write).collect();
                if !ops.is_empty() {
                    let unsynced = if stalled { "(not synced) " } else { "" };
                    self.transcript.line(format_args!("{site} writes"), format_args!("{unsynced}{}", ops.join(" + ")));
                }
                if !stalled {
                    self.sync(site, inputs);
                }
            }
            Effect::Answer { id, answer } => self.answered(site, id, answer),
            Effect::Collect(collect) => {
                machine.store.collect(collect, usize::MAX).expect(IN_MEMORY);
            }
            Effect::Count(_) | Effect::Trace(_) => {}
        }
    }

    /// All that `site` has written is durable now.
    fn sync(&mut self, site: SiteId, inputs: &mut VecDeque<Input<P::Site>>) {
        let machine = self.machine(site);
        machine.store.sync().expect(IN_MEMORY);
        for write in std::mem::take(&mut machine.running().unsynced) {
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
    fn send(&mut self, envelope: Message<P>) {
        let bytes = record::encoded_bytes(&envelope.body);
        assert!(bytes <= MESSAGE_BYTES_MAX, "no wire carries a message of {bytes} bytes");
        P::assert_may_be_sent(&envelope);
        self.largest = self.largest.max(bytes);
        self.wire.push_back(envelope);
    }

    fn answered(&mut self, site: SiteId, id: RequestId, answer: Answer<P>) {
        self.transcript.line(format_args!("{site} → client"), P::answer(&answer));
        assert!(self.answers.insert(id, answer).is_none(), "a request is answered once");
    }
}
