//! Changes of configuration as whole sites of the product bring them about, on every schedule that departs from the plain one in a few
//! places.
//!
//! A plain schedule takes messages and syncs in the order in which they were sent and written; when there are none left, all sites tick.
//! What is said each tick only to learn who is up is never departed from.
//!
//! One client commits one transaction, at a moment that is part of the case; operators ask for changes. Of each schedule what
//! [`World::violation`] says must not happen.

use rhumb_commit::transaction::ReadMode;
use rhumb_core::actor::{Actor, Body, Effect, Gated, Input, Load, Loaded, Token};
use rhumb_core::{Batch, Effects, Key, Rules, SiteId, Span, Time, Timestamp};
use rhumb_quad::message::{Note, Promise};
use rhumb_quad::planted::Planted;
use rhumb_quad::{Admin, Answer, Config, Configuration, Epoch, Goal, Request, Site, Stamped, Timer};
use rhumb_store::{MemoryEngine, Store};
use rhumb_testkit::departures::{Bounds, Departure, Searched, Violation, search};
use std::collections::{BTreeMap, VecDeque};

/// The longest that a schedule may take until all is well again.
const TICKS_MAX: usize = 120;
/// Longer than anybody is patient with a silent site.
const ISOLATED_TICKS: usize = 5;
const TICK: Span = Span::from_millis(250);
/// Requests by name.
const BEGIN: u64 = 1;
const COMMIT: u64 = 2;
const CHANGE: u64 = 3;
const AFTERWARDS: u64 = 100;

/// What is asked of the sites.
#[derive(Clone)]
pub struct Case {
    /// The first configuration.
    pub first: Configuration,
    pub sites: usize,
    /// The site whose client commits.
    pub gateway: usize,
    /// Changes: after how many steps, at which site, for what. The later ones once the earlier are through.
    pub changes: Vec<(usize, usize, Goal)>,
    /// Sites that may be lost.
    pub may_be_lost: Vec<usize>,
    pub rules: Rules<Planted>,
}

type Message = Body<Stamped<Note>, Stamped<Promise>>;

/// What happens next, unless it is departed from.
enum Event {
    Message {
        from: SiteId,
        to: usize,
        body: Message,
    },
    /// The next write of that incarnation of the site becomes durable.
    Sync {
        at: usize,
        incarnation: usize,
    },
}

/// A write that is not durable.
struct Write {
    then: Vec<Gated<Site>>,
    token: Option<Token>,
}

struct Machine {
    site: Site,
    incarnation: usize,
    /// All that was written; `durable` of it is.
    log: Vec<Batch>,
    durable: usize,
    waiting: VecDeque<Write>,
    /// What loads see.
    store: Store<MemoryEngine>,
    lost: bool,
    /// Syncs wait until this tick.
    stalled: usize,
    /// Nothing reaches or leaves it until this tick.
    isolated: usize,
}

/// A run of one schedule.
pub struct World<'a> {
    case: &'a Case,
    machines: Vec<Machine>,
    queue: VecDeque<Event>,
    /// What was put off, until which tick.
    late: VecDeque<(usize, Event)>,
    ticks: usize,
    /// Steps that may be departed from, so far.
    steps: usize,
    departures: &'a [(usize, Departure)],
    decided: BTreeMap<Epoch, Configuration>,
    /// The client's transaction was acknowledged in that epoch.
    acknowledged: Option<Epoch>,
    /// Changes asked for.
    asked: usize,
    answers: BTreeMap<u64, Answer>,
    violation: Option<String>,
    trace: Vec<String>,
}

fn site(n: usize) -> SiteId {
    SiteId::new(n as u16, 0)
}

fn index(site: SiteId) -> usize {
    usize::from(site.region.0)
}

fn key() -> Key {
    "k".into()
}

/// Short patience: what waits for a site that is away goes on soon.
fn config() -> Config {
    Config {
        tick: TICK,
        silent_ticks: 2,
        patience_ticks: 4,
        unknown_ticks: 6,
        doubt_ticks: 2,
        move_ticks: 6,
        sealed_ticks: 3,
        orphaned_ticks: 8,
        page_rows: 1,
        ..Config::default()
    }
}

impl Case {
    /// The case of as many sites as `first` has members, none of which may be lost.
    pub fn new(first: Configuration, gateway: usize, changes: Vec<(usize, usize, Goal)>) -> Case {
        let sites = first.members().len();
        Case { first, sites, gateway, changes, may_be_lost: Vec::new(), rules: Rules::HOLD }
    }

    /// Runs all schedules within those bounds.
    ///
    /// # Errors
    /// The first violation.
    pub fn search(&self, bounds: Bounds) -> Result<Searched, String> {
        let each = |way: fn(usize) -> Departure| (0..self.sites).map(way);
        let losses = self.may_be_lost.iter().copied().map(Departure::Lose);
        let ways = [Departure::Drop, Departure::PutOff].into_iter().chain(each(Departure::Crash)).chain(each(Departure::Isolate));
        search(bounds, &ways.chain(losses).collect::<Vec<_>>(), |schedule| World::run(self, schedule))
    }
}

impl<'a> World<'a> {
    /// Runs a schedule to its end. Returns how many steps it had that can be departed from; or the violation.
    pub fn run(case: &'a Case, departures: &'a [(usize, Departure)]) -> Result<usize, Violation> {
        let machines = (0..case.sites).map(|_| Machine::new(case, site(0))).collect();
        let mut world = World {
            case,
            machines,
            queue: VecDeque::new(),
            late: VecDeque::new(),
            ticks: 0,
            steps: 0,
            departures: &[],
            decided: BTreeMap::new(),
            acknowledged: None,
            asked: 0,
            answers: BTreeMap::new(),
            violation: None,
            trace: Vec::new(),
        };
        for at in 0..case.sites {
            world.machines[at].site = new_site(case, site(at));
            world.step(at, Input::Start);
        }
        (0..2).for_each(|_| world.tick());
        // All know who is up: from now on the schedule may be departed from.
        (world.steps, world.departures) = (0, departures);
        world.step(case.gateway, Input::Client { id: BEGIN, request: Request::Begin { mode: ReadMode::Locking } });
        while world.violation.is_none() && !world.is_well() {
            if world.ticks == TICKS_MAX {
                world.violation = Some("the sites do not get on".into());
                break;
            }
            world.tick();
        }
        match world.violation {
            None => Ok(world.steps),
            Some(what) => Err(Violation { what, trace: world.trace }),
        }
    }

    fn now(&self) -> Time {
        Time::from_micros(1_000_000 + self.ticks as u64 * TICK.as_micros())
    }

    /// All that is under way arrives; then all sites tick.
    fn tick(&mut self) {
        self.drain();
        self.ticks += 1;
        for at in 0..self.machines.len() {
            if !self.machines[at].lost {
                self.step(at, Input::Timer(Timer::Tick));
            }
        }
        let ticks = self.ticks;
        while self.late.front().is_some_and(|(until, _)| *until <= ticks) {
            let (_, event) = self.late.pop_front().expect("there is one");
            self.queue.push_back(event);
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(event) = self.queue.pop_front() {
            if self.violation.is_some() {
                return;
            }
            self.take(event);
        }
    }

    fn take(&mut self, event: Event) {
        if let Event::Message {
            body: Body::Note(Stamped { said: Note::Ping { .. } | Note::Pong { .. } | Note::Measured { .. }, .. }),
            ..
        } = event
        {
            return self.carry_on(event);
        }
        let step = self.steps;
        self.steps += 1;
        self.ask_for_changes();
        for departure in self.departures.iter().filter(|(at, _)| *at == step).map(|(_, departure)| *departure).collect::<Vec<_>>() {
            self.trace.push(format!("  #{step}: {departure:?}"));
            match (departure, &event) {
                (Departure::Drop, Event::Message { from, to, body }) => return self.trace.push(format!("lost: {from} → {to} {body}")),
                (Departure::Drop, Event::Sync { .. }) => {}
                (Departure::PutOff, Event::Sync { at, .. }) => self.machines[*at].stalled = self.ticks + 2,
                (Departure::PutOff, Event::Message { .. }) => return self.late.push_back((self.ticks + 2, event)),
                (Departure::Crash(at), _) => self.crash(at),
                (Departure::Lose(at), _) => self.machines[at].lost = true,
                (Departure::Isolate(at), _) => self.machines[at].isolated = self.ticks + ISOLATED_TICKS,
            }
        }
        self.carry_on(event);
    }

    fn carry_on(&mut self, event: Event) {
        match event {
            Event::Message { from, to, body } => {
                let is_cut = |at: usize| self.machines[at].lost || self.machines[at].isolated > self.ticks;
                if !is_cut(to) && (to == index(from) || !is_cut(index(from))) {
                    self.trace.push(format!("#{} {from} → {} {body}", self.steps.saturating_sub(1), site(to)));
                    self.step(to, Input::Message { from, body });
                }
            }
            Event::Sync { at, incarnation } if self.machines[at].incarnation == incarnation && !self.machines[at].lost => {
                let stalled = self.machines[at].stalled;
                if stalled > self.ticks {
                    return self.late.push_back((stalled, event));
                }
                let Some(write) = self.machines[at].waiting.pop_front() else { return };
                self.machines[at].durable += 1;
                for gated in write.then {
                    match gated {
                        Gated::Send { to, promise } => self.send(at, to, Body::Promise(promise)),
                        Gated::Answer { id, answer } => self.on_answer(at, id, answer),
                    }
                }
                if let Some(token) = write.token {
                    self.step(at, Input::Persisted { token });
                }
            }
            Event::Sync { .. } => {}
        }
    }

    fn ask_for_changes(&mut self) {
        let has_failed = self.asked > 0 && matches!(self.answers.remove(&(CHANGE + self.asked as u64)), Some(Answer::Failed(_)));
        if has_failed && self.machines.iter().all(|machine| machine.site.configuration().epoch.0 <= self.asked as u64) {
            // The operator asks again.
            self.asked -= 1;
        }
        let Some((after, at, goal)) = self.case.changes.get(self.asked) else { return };
        let may_ask = self.steps > *after
            && !self.machines[*at].lost
            && self.machines.iter().any(|machine| machine.site.configuration().epoch.0 > self.asked as u64);
        if may_ask {
            self.asked += 1;
            self.step(*at, Input::Client { id: CHANGE + self.asked as u64, request: Request::Admin(Admin::Change(goal.clone())) });
        }
    }

    fn step(&mut self, at: usize, input: Input<Site>) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.now();
            let mut effects = Effects::new(false);
            self.machines[at].site.step(now, input, &mut effects);
            for effect in effects.take() {
                match effect {
                    Effect::Send { to, note } => self.send(at, to, Body::Note(note)),
                    Effect::Answer { id, answer } => self.on_answer(at, id, answer),
                    Effect::Load { token, load } => {
                        let loaded = self.machines[at].store.load(&load).expect("memory does not fail");
                        inputs.push_back(Input::Loaded { token, loaded });
                    }
                    Effect::Persist { batch, token, then } => {
                        let machine = &mut self.machines[at];
                        machine.store.apply(&batch).expect("memory does not fail");
                        machine.log.push(batch);
                        machine.waiting.push_back(Write { then, token });
                        self.queue.push_back(Event::Sync { at, incarnation: machine.incarnation });
                    }
                    Effect::SetTimer { .. } | Effect::Collect(_) | Effect::Count(_) | Effect::Trace(_) => {}
                }
            }
        }
        self.look(at);
    }

    fn send(&mut self, from: usize, to: SiteId, body: Message) {
        self.queue.push_back(Event::Message { from: site(from), to: index(to), body });
    }

    fn on_answer(&mut self, at: usize, id: u64, answer: Answer) {
        self.trace.push(format!("{} answers {id}: {answer:?}", site(at)));
        match &answer {
            Answer::Began { txn } if id == BEGIN => {
                let writes = vec![(key(), Some("v".into()))];
                let commit = Request::Commit { txn: *txn, writes, expect: Vec::new(), options: Default::default() };
                self.step(at, Input::Client { id: COMMIT, request: commit });
            }
            Answer::Committed(_) if id == COMMIT => self.acknowledged = Some(self.machines[at].site.configuration().epoch),
            _ => {}
        }
        self.answers.insert(id, answer);
    }

    /// It starts again from what is durable.
    fn crash(&mut self, at: usize) {
        if self.machines[at].lost {
            return;
        }
        let machine = &mut self.machines[at];
        let mut again = Machine::new(self.case, site(at));
        again.incarnation = machine.incarnation + 1;
        again.log = std::mem::take(&mut machine.log);
        again.log.truncate(machine.durable);
        again.durable = machine.durable;
        again.log.iter().for_each(|batch| again.store.apply(batch).expect("memory does not fail"));
        self.machines[at] = again;
        self.step(at, Input::Start);
    }

    /// Looks at what a step of a site has brought about.
    fn look(&mut self, at: usize) {
        let machine = &self.machines[at];
        let configuration = machine.site.configuration();
        let known = self.decided.entry(configuration.epoch).or_insert_with(|| configuration.clone());
        if known != configuration {
            self.violation = Some(format!("two configurations of {}: {known}, and {configuration}", configuration.epoch));
        }
        let claims = |epoch: Epoch| machine.site.holds() > epoch;
        if self.acknowledged.is_some_and(claims) && !machine.has_row() {
            self.violation =
                Some(format!("{} says that it holds all before {}, and lacks what was acknowledged", site(at), machine.site.holds()));
        }
    }

    /// True if nothing is left to be done: all changes have come about, all sites serve the same epoch, and a client finds what was
    /// acknowledged.
    fn is_well(&mut self) -> bool {
        if self.asked < self.case.changes.len() && self.ticks < TICKS_MAX / 2 {
            return false;
        }
        let latest = self.decided.keys().copied().max().unwrap_or(Epoch::FIRST);
        let members = self.decided[&latest].members();
        let up: Vec<usize> = (0..self.machines.len()).filter(|at| !self.machines[*at].lost && members.contains(&site(*at))).collect();
        let serves = |at: &usize| {
            let site = &self.machines[*at].site;
            site.configuration().epoch == latest && !site.is_sealed() && site.is_caught_up()
        };
        if !up.iter().all(serves) || !self.late.is_empty() {
            return false;
        }
        // What is read to see that is no part of the schedule.
        let (departures, steps) = (std::mem::take(&mut self.departures), self.steps);
        let reads = self.reads(up[0]);
        (self.departures, self.steps) = (departures, steps);
        reads
    }

    /// A client reads at that site; true if it is answered.
    fn reads(&mut self, at: usize) -> bool {
        let id = AFTERWARDS + 2 * self.ticks as u64;
        self.step(at, Input::Client { id, request: Request::Begin { mode: ReadMode::Locking } });
        self.drain();
        let Some(Answer::Began { txn }) = self.answers.get(&id) else { return false };
        let get = Request::Get { txn: *txn, mode: ReadMode::Locking, keys: vec![key()], expect: Vec::new() };
        let id = id + 1;
        self.step(at, Input::Client { id, request: get });
        self.drain();
        let Some(Answer::Rows { rows, .. }) = self.answers.get(&id) else { return false };
        if self.acknowledged.is_some() && rows.iter().all(|row| row.value.is_none()) {
            self.violation = Some(format!("{} does not show what was acknowledged", site(at)));
        }
        true
    }
}

fn new_site(case: &Case, me: SiteId) -> Site {
    Site::new(me, case.first.quorums.clone(), config()).with_rules(case.rules)
}

impl Machine {
    fn new(case: &Case, me: SiteId) -> Machine {
        let store = Store::open(MemoryEngine::new()).expect("an empty engine opens");
        let (site, log, waiting) = (new_site(case, me), Vec::new(), VecDeque::new());
        Machine { site, incarnation: 0, log, durable: 0, waiting, store, lost: false, stalled: 0, isolated: 0 }
    }

    /// True if the client's row is here.
    fn has_row(&self) -> bool {
        let load = Load::Get { keys: vec![key()], at: Timestamp::MAX, bytes: usize::MAX };
        let Ok(Loaded::Rows { rows, .. }) = self.store.load(&load) else { panic!("rows were asked for") };
        rows.iter().any(|row| row.value.is_some())
    }
}
