//! The world: sites, network, disks, clocks and clients in virtual time, all decided by one seed.
//!
//! Generic over the [`Actor`]; a driver of its contract. [`World::run_until`] and its like take one event after the
//! other off the schedule. True time exists here only; a site sees its own clock.
//!
//! Invariants: nothing but the seed, the configuration and the calls made decides a run; an actor is never stepped from
//! within a step; nothing of an incarnation acts on a later one, except the store and messages under way.

mod agreement;
mod clocks_compared;
mod drive;
mod folder;
pub(crate) mod healing;
mod site;
mod strike;

pub(crate) use drive::panic_message;

use crate::client::{Client, ClientEvent, ClientProgram, Reply};
use crate::clock::{ClockSkew, SiteClock};
use crate::config::Config;
use crate::error::SimError;
use crate::fault::Fault;
use crate::network::Network;
use crate::plan::FaultPlan;
use crate::planted::Planted;
use crate::schedule::Schedule;
use crate::trace::Trace;
use agreement::Agreements;
use bytes::Bytes;
use drive::Event;
use rhumb_core::actor::{Actor, Input, RequestId, Space};
use rhumb_core::{KeyRange, Load, Loaded, RegionId, Rng, Row, Rules, SiteId, Span, Time, Timestamp, Topology, record};
use rhumb_store::{MemoryEngine, Store};
use serde::Serialize;
use site::Site;
use std::collections::BTreeMap;

/// The last events before a livelock is declared are traced even in a run that is not.
const LIVELOCK_TRACED: u64 = 1_000;

/// How long a client waits to be told that its site is down.
pub const REFUSED_AFTER: Span = Span::from_millis(1);

/// Checks an invariant of the whole world; what it returns ends the run.
pub type Observer<A> = Box<dyn FnMut(&World<A>) -> Result<(), String>>;

/// Who waits for a request's answer.
pub(crate) struct Outstanding {
    pub(crate) site: SiteId,
    /// A client's index; none: whoever called [`World::submit`].
    pub(crate) client: Option<usize>,
}

/// Sites hold so many bytes of the newest versions in their stores: none, a row or two, some, or all.
const NEWEST_BYTES: [u64; 4] = [0, 400, 4_000, 1 << 18];

/// A world of actors.
pub struct World<A: Actor> {
    pub(crate) config: Config,
    pub(crate) now: Time,
    pub(crate) schedule: Schedule<Event<A>>,
    pub(crate) network: Network,
    pub(crate) sites: BTreeMap<SiteId, Site<A>>,
    pub(crate) factory: Box<dyn Fn(SiteId, u64) -> A>,
    pub(crate) clients: Vec<Client<A>>,
    pub(crate) outstanding: BTreeMap<RequestId, Outstanding>,
    pub(crate) replies: Vec<Reply<A::Answer>>,
    pub(crate) trace: Trace,
    pub(crate) probes: BTreeMap<&'static str, u64>,
    pub(crate) rng: Rng,
    /// Faults scheduled before the last healing do not happen; this counts healings.
    pub(crate) healings: u64,
    pub(crate) failure: Option<SimError>,
    /// The pairs of sites that have met, with their processes then.
    pub(crate) met: BTreeMap<(SiteId, SiteId), (u64, u64)>,
    /// The site that stepped in the last event, if one did.
    pub(crate) stepped: Option<SiteId>,
    /// What actors have recorded as agreed on; none if nobody compares it.
    pub(crate) agreements: Option<Agreements>,
    pub(crate) rules: Rules<Planted>,
    requests: RequestId,
    events: u64,
    observers: Vec<Observer<A>>,
}

impl<A: Actor> World<A> {
    /// A world at time zero; its first events are the sites' starts. `factory` makes the actor of a site for each of its incarnations,
    /// which count from 1.
    pub fn new(config: Config, seed: u64, factory: impl Fn(SiteId, u64) -> A + 'static) -> World<A> {
        let mut rng = Rng::seeded(seed);
        let newest_bytes = *Rng::seeded(!seed).pick(&NEWEST_BYTES).expect("there are some to pick from");
        let mut world = World {
            now: Time::ZERO,
            schedule: Schedule::new(),
            network: Network::new(config.rtt.clone(), config.local.message, rng.fork()),
            sites: config.topology.sites().map(|site| (site, Site::new(config.local.sync, newest_bytes))).collect(),
            factory: Box::new(factory),
            clients: Vec::new(),
            outstanding: BTreeMap::new(),
            replies: Vec::new(),
            trace: Trace::new(config.tracing),
            probes: BTreeMap::new(),
            rng,
            healings: 0,
            failure: None,
            met: BTreeMap::new(),
            stepped: None,
            agreements: None,
            rules: Rules::HOLD,
            requests: 0,
            events: 0,
            observers: Vec::new(),
            config,
        };
        world.start(world.sites.keys().copied().collect());
        world
    }

    /// The true time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What the clock of `site` shows.
    pub fn clock(&self, site: SiteId) -> Time {
        self.site(site).clock.read(self.now)
    }

    /// What the world is made of.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The shape of the cluster.
    pub fn topology(&self) -> &Topology {
        &self.config.topology
    }

    /// The actor of `site`, unless it is down.
    pub fn actor(&self, site: SiteId) -> Option<&A> {
        self.site(site).process.as_ref().map(|process| &process.actor)
    }

    /// The store of `site`, with what is written but not yet durable.
    pub fn store(&self, site: SiteId) -> &Store<MemoryEngine> {
        &self.site(site).store
    }

    /// The newest versions at `site`, deletions included.
    pub fn newest(&self, site: SiteId) -> Vec<Row> {
        let load = Load::Scan { range: KeyRange::prefix(&[]), at: Timestamp::MAX, limit: usize::MAX, bytes: usize::MAX, reverse: false };
        let loaded = self.store(site).load(&load).expect("the store of a healed site can be read");
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        rows
    }

    /// The records of `site` in `space`.
    pub fn records(&self, site: SiteId, space: Space) -> Vec<Bytes> {
        let load = Load::Records { space, from: Bytes::new(), limit: usize::MAX, bytes: usize::MAX };
        let loaded = self.store(site).load(&load).expect("the store of a site can be read");
        let Loaded::Records { records, .. } = loaded else { unreachable!("records were asked for") };
        records.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// True if `site` is up.
    pub fn is_up(&self, site: SiteId) -> bool {
        self.site(site).process.is_some()
    }

    /// True if `site` is lost for good.
    pub fn is_lost(&self, site: SiteId) -> bool {
        self.site(site).is_lost
    }

    /// The sites that are not lost for good.
    pub fn sites_left(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.sites.iter().filter(|(_, state)| !state.is_lost).map(|(site, _)| *site)
    }

    /// The site whose actor took a step in the last event, if one did: no other one's state has changed.
    pub fn stepped(&self) -> Option<SiteId> {
        self.stepped
    }

    /// How often `site` has started.
    pub fn incarnation(&self, site: SiteId) -> u64 {
        self.site(site).incarnation
    }

    /// A generator for a workload, different at each call, decided by the seed.
    pub fn fork_rng(&mut self) -> Rng {
        self.rng.fork()
    }

    /// How many events have happened.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The trace so far; empty unless the configuration asks for it.
    pub fn trace(&self) -> &str {
        if self.config.tracing { self.trace.text() } else { "" }
    }

    /// How often each event was counted by an actor ([`Effect::Count`](rhumb_core::actor::Effect::Count)).
    pub fn probes(&self) -> &BTreeMap<&'static str, u64> {
        &self.probes
    }

    /// How often `event` was counted.
    pub fn probe(&self, event: &str) -> u64 {
        self.probes.get(event).copied().unwrap_or(0)
    }

    /// Sets how the clock of `site` differs from true time, as if it had always done so. Before the world runs.
    ///
    /// # Panics
    /// If the world has run: a clock under way changes only by a jump.
    pub fn skew_clock(&mut self, site: SiteId, skew: ClockSkew) {
        assert_eq!(self.events, 0, "clocks are skewed before the world runs");
        self.site_mut(site).clock = SiteClock::new(skew);
    }

    /// Has the driver go by these rules.
    pub fn set_rules(&mut self, rules: Rules<Planted>) {
        self.rules = rules;
    }

    /// Lets the messages of each site to itself take up to `jitter` longer, at random: parts of a site that work side by side
    /// finish in any order.
    pub fn jitter_at_home(&mut self, jitter: Span) {
        self.network.jitter_at_home(jitter);
    }

    /// Gives `site` a processor of another speed, in percent of the configured one: steps and rows take longer or shorter. Before the
    /// world runs.
    ///
    /// # Panics
    /// If the world has run, or the speed is zero.
    pub fn set_speed(&mut self, site: SiteId, percent: u64) {
        assert!(self.events == 0 && percent > 0, "a processor has a speed, and keeps it");
        self.site_mut(site).speed_percent = percent;
    }

    /// Lets `fault` strike at `at`, at once if that has passed; not at all if the world is healed before.
    pub fn strike_at(&mut self, at: Time, fault: Fault) {
        self.schedule.push(at.max(self.now), Event::Fault { healings: self.healings, fault });
    }

    /// Schedules all that `plan` holds. Before the world runs.
    pub fn follow(&mut self, plan: &FaultPlan) {
        for (&site, &skew) in &plan.clocks {
            self.skew_clock(site, skew);
        }
        for (at, fault) in &plan.faults {
            self.strike_at(*at, fault.clone());
        }
    }

    /// Adds an invariant that is checked after each event.
    pub fn observe(&mut self, observer: impl FnMut(&World<A>) -> Result<(), String> + 'static) {
        self.observers.push(Box::new(observer));
    }

    /// Compares from now on what actors [record](rhumb_core::Effects::agree) as agreed on.
    pub fn compare_agreed(&mut self) {
        self.agreements = Some(Agreements::default());
    }

    /// The same, unless a site of `regions` says that it is `value`.
    pub fn compare_agreed_but(&mut self, regions: impl Iterator<Item = RegionId>, value: &impl Serialize) {
        self.agreements = Some(Agreements::but(regions.collect(), record::encode(value).to_vec()));
    }

    /// The keys under which actors have recorded something of `topic`, if that is compared.
    pub fn agreed(&self, topic: &'static str) -> impl Iterator<Item = &str> {
        self.agreements.iter().flat_map(move |agreements| agreements.keys(topic))
    }

    /// Connects a client to `site`; it starts now.
    pub fn add_client(&mut self, site: SiteId, program: impl ClientProgram<A> + 'static) {
        self.clients.push(Client { site, program: Box::new(program), done: false });
        self.schedule.push(self.now, Event::Client { client: self.clients.len() - 1, event: ClientEvent::Started });
    }

    /// How many clients are not done.
    pub fn clients_left(&self) -> usize {
        self.clients.iter().filter(|client| !client.done).count()
    }

    /// The requests without an answer so far, each with its site.
    pub fn outstanding(&self) -> impl Iterator<Item = (RequestId, SiteId)> + '_ {
        self.outstanding.iter().map(|(id, outstanding)| (*id, outstanding.site))
    }

    /// Sends `request` to `site` now; what becomes of it is found in [`World::take_replies`].
    pub fn submit(&mut self, site: SiteId, request: A::Request) -> RequestId {
        self.request(site, request, None)
    }

    /// The replies to [`World::submit`] since the last call, in the order they came.
    pub fn take_replies(&mut self) -> Vec<Reply<A::Answer>> {
        std::mem::take(&mut self.replies)
    }

    /// Lets all happen up to `end`, that instant included.
    pub fn run_until(&mut self, end: Time) -> Result<(), SimError> {
        while self.schedule.next_at().is_some_and(|at| at <= end) {
            self.tick()?;
        }
        self.now = self.now.max(end);
        Ok(())
    }

    /// Lets all happen up to `end` like [`World::run_until`], but stops at the first reply to [`World::submit`]. True if
    /// there is one to take.
    pub fn run_until_reply(&mut self, end: Time) -> Result<bool, SimError> {
        while self.replies.is_empty() && self.schedule.next_at().is_some_and(|at| at <= end) {
            self.tick()?;
        }
        if self.replies.is_empty() {
            self.now = self.now.max(end);
        }
        Ok(!self.replies.is_empty())
    }

    /// Lets the world run for `span`.
    pub fn run_for(&mut self, span: Span) -> Result<(), SimError> {
        self.run_until(self.now + span)
    }

    /// Lets the world run until all clients are done, but not past `deadline`. True if they are.
    pub fn run_clients(&mut self, deadline: Time) -> Result<bool, SimError> {
        while self.clients.iter().any(|client| !client.done) {
            if self.schedule.next_at().is_none_or(|at| at > deadline) {
                self.now = self.now.max(deadline);
                return Ok(false);
            }
            self.tick()?;
        }
        Ok(true)
    }

    /// Lets one event happen. False if there is none left. A world that failed stays so.
    pub fn tick(&mut self) -> Result<bool, SimError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let Some((at, event)) = self.schedule.pop() else { return Ok(false) };
        self.now = at;
        self.events += 1;
        self.stepped = None;
        if self.events + LIVELOCK_TRACED >= self.config.events_max {
            self.trace.turn_on();
        }
        self.happen(event);
        self.check_observers();
        if self.events >= self.config.events_max {
            let tail = self.trace.tail().to_owned();
            self.fail(SimError::Livelock { events: self.events, at, tail });
        }
        self.failure.clone().map_or(Ok(true), Err)
    }

    fn check_observers(&mut self) {
        let mut observers = std::mem::take(&mut self.observers);
        for observer in &mut observers {
            if let Err(what) = observer(self) {
                self.fail(SimError::Violation { at: self.now, what });
            }
        }
        self.observers = observers;
    }

    /// Ends the run, unless something ended it before.
    pub(crate) fn fail(&mut self, failure: SimError) {
        self.failure.get_or_insert(failure);
    }

    pub(crate) fn request(&mut self, site: SiteId, request: A::Request, client: Option<usize>) -> RequestId {
        self.requests += 1;
        let id = self.requests;
        self.outstanding.insert(id, Outstanding { site, client });
        if self.is_up(site) {
            self.input(site, Input::Client { id, request });
        } else {
            self.schedule.push(self.now + REFUSED_AFTER, Event::Refused(id));
        }
        id
    }

    /// # Panics
    /// If the cluster has no such site.
    pub(crate) fn site(&self, site: SiteId) -> &Site<A> {
        self.sites.get(&site).unwrap_or_else(|| panic!("the cluster has no site {site}"))
    }

    pub(crate) fn site_mut(&mut self, site: SiteId) -> &mut Site<A> {
        self.sites.get_mut(&site).unwrap_or_else(|| panic!("the cluster has no site {site}"))
    }
}
