//! One site, for tests: what it says, where the test speaks for all others. Its disk takes no time.

use super::config::{Config, Durability};
use super::epoch::Epoch;
use super::message::{Answer, Entry, Note, Promise, Request};
use super::planted::Planted;
use super::site::{Site, Timer};
use super::stream_id::{self, StreamId};
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::actor::{Effect, Gated, RequestId, Token};
use rhumb_core::{Actor, Batch, Body, Effects, Input, Inspect, Load, Rules, SiteId, Span, Time, Topology};
use rhumb_store::{MemoryEngine, Store};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const EPOCH: Span = Span::from_millis(10);

/// What a site says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Note(SiteId, Note),
    Promise(SiteId, Promise),
    Answer(RequestId, Answer),
}

/// A site of three regions with two coordinators each. What a region has on its own disk counts.
pub struct Lone {
    pub site: Site,
    me: SiteId,
    topology: Arc<Topology>,
    config: Config,
    rules: Rules<Planted>,
    store: Store<MemoryEngine>,
    now: Time,
    /// How many entries each stream has, as far as the site has heard.
    said: BTreeMap<StreamId, u64>,
    /// Loads that wait until the test lets them go, if it holds them.
    held_loads: Option<VecDeque<(Token, Load)>>,
}

impl Lone {
    /// `me`, once it has sealed an epoch.
    pub fn new(me: SiteId) -> Lone {
        Lone::with(me, Lone::config())
    }

    /// The settings of [`Lone::new`]: what it says is settled at once, without the other regions.
    pub fn config() -> Config {
        Config { durability: Durability::Region, coordinators: 2, ..Config::default() }
    }

    /// The same with other settings; epochs have their own length.
    pub fn with(me: SiteId, config: Config) -> Lone {
        let topology = Arc::new(Topology::new(["a", "b", "c"].map(String::from).to_vec(), 2));
        let config = Config { epoch: EPOCH, ..config };
        let store = Store::open(MemoryEngine::new()).expect("a new store");
        let mut lone = Lone {
            site: Site::new(me, Arc::clone(&topology), config.clone()),
            me,
            topology,
            config,
            rules: Rules::HOLD,
            store,
            now: Time::from_micros(1_000_000),
            said: BTreeMap::new(),
            held_loads: None,
        };
        lone.step(Input::Start);
        assert!(lone.site.is_serving());
        lone.end_epoch();
        lone
    }

    /// The same by other rules.
    #[cfg(feature = "planted")]
    pub fn with_rules(self, rules: Rules<Planted>) -> Lone {
        Lone { site: self.site.with_rules(rules), rules, ..self }
    }

    /// It crashes, and starts again with its disk.
    pub fn restart(&mut self) {
        self.site = Site::new(self.me, Arc::clone(&self.topology), self.config.clone()).with_rules(self.rules);
        self.step(Input::Start);
        assert!(self.site.is_serving());
    }

    fn step(&mut self, input: Input<Site>) -> Vec<Said> {
        let mut inputs = VecDeque::from([input]);
        let mut said = Vec::new();
        while let Some(input) = inputs.pop_front() {
            let mut fx = Effects::new(false);
            self.site.step(self.now, input, &mut fx);
            for effect in fx.take() {
                match effect {
                    Effect::Send { to, note } => said.push(Said::Note(to, note)),
                    Effect::Answer { id, answer } => said.push(Said::Answer(id, answer)),
                    Effect::Load { token, load } => match &mut self.held_loads {
                        Some(held) => held.push_back((token, load)),
                        None => inputs.push_back(self.loaded(token, &load)),
                    },
                    Effect::Persist { batch, token, then } => {
                        self.store.apply(&batch).expect("the store takes it");
                        said.extend(then.into_iter().map(|gated| match gated {
                            Gated::Send { to, promise } => Said::Promise(to, promise),
                            Gated::Answer { id, answer } => Said::Answer(id, answer),
                        }));
                        inputs.extend(token.map(|token| Input::Persisted { token }));
                    }
                    Effect::SetTimer { .. } | Effect::Collect(_) | Effect::Count(_) | Effect::Trace(_) => {}
                }
            }
        }
        said
    }

    fn loaded(&self, token: Token, load: &Load) -> Input<Site> {
        Input::Loaded { token, loaded: self.store.load(load).expect("the store is sound") }
    }

    /// Puts rows on its disk.
    pub fn write(&mut self, batch: &Batch) {
        self.store.apply(batch).expect("the store takes it");
    }

    /// From now on loads wait.
    pub fn hold_loads(&mut self) {
        self.held_loads = Some(VecDeque::new());
    }

    /// How many loads wait.
    pub fn held_loads(&self) -> usize {
        self.held_loads.as_ref().map_or(0, VecDeque::len)
    }

    /// Carries out the first of the loads that wait.
    pub fn release_load(&mut self) -> Vec<Said> {
        let (token, load) = self.held_loads.as_mut().and_then(VecDeque::pop_front).expect("a load waits");
        let loaded = self.loaded(token, &load);
        self.step(loaded)
    }

    /// Time passes until the end of the epoch, which the site seals.
    pub fn end_epoch(&mut self) -> Vec<Said> {
        self.now = Time::from_micros((self.now.as_micros() / EPOCH.as_micros() + 1) * EPOCH.as_micros());
        self.step(Input::Timer(Timer::Epoch))
    }

    /// So many epochs end.
    pub fn end_epochs(&mut self, count: u64) -> Vec<Said> {
        (0..count).flat_map(|_| self.end_epoch()).collect()
    }

    pub fn ask(&mut self, id: RequestId, request: Request) -> Vec<Said> {
        self.step(Input::Client { id, request })
    }

    pub fn run(&mut self, id: RequestId, transaction: Transaction) -> Vec<Said> {
        self.ask(id, Request::Run(transaction))
    }

    pub fn hear_note(&mut self, from: SiteId, note: Note) -> Vec<Said> {
        self.step(Input::Message { from, body: Body::Note(note) })
    }

    pub fn hear(&mut self, from: SiteId, promise: Promise) -> Vec<Said> {
        self.step(Input::Message { from, body: Body::Promise(promise) })
    }

    /// The head of a stream of another site says its next entry.
    pub fn hear_entry(&mut self, stream: StreamId, epoch: Epoch, batch: Vec<Transaction>) -> Vec<Said> {
        let said = self.said.entry(stream).or_default();
        *said += 1;
        let entry = Entry { author: stream.head(), epoch, batch, orders: Vec::new() };
        let promise = Promise::Epoch { stream, ballot: stream.first_ballot(), first: *said, entries: vec![entry] };
        self.hear(stream.head(), promise)
    }

    /// All other streams but `without` say that they have nothing up to `epoch`.
    pub fn hear_nothing_of_others(&mut self, epoch: Epoch, without: &[StreamId]) -> Vec<Said> {
        let own = StreamId::new(self.me.region, self.me.shard);
        let ids = stream_id::all(&self.topology, self.config.coordinators).filter(|id| *id != own && !without.contains(id));
        ids.flat_map(|id| self.hear_entry(id, epoch, Vec::new())).collect()
    }

    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// How full one of its tables is.
    pub fn table(&self, name: &str) -> usize {
        let tables = self.site.list_tables();
        tables.iter().find(|table| table.name == name).expect("it has such a table").size
    }

    /// The last epoch that it has sealed.
    pub fn sealed(&self) -> Epoch {
        self.site.status().coordinator
    }
}

/// The answer to a request, if it is among what was said.
pub fn answer(said: &[Said], id: RequestId) -> Option<&Answer> {
    said.iter().find_map(|said| match said {
        Said::Answer(of, answer) if *of == id => Some(answer),
        _ => None,
    })
}
