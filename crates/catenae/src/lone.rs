//! One site, for tests: what it says, where the test speaks for all others. Its disk takes no time.

use super::config::{Config, Durability};
use super::epoch::Epoch;
use super::message::{Answer, Entry, Note, Promise, Request};
use super::planted::Planted;
use super::site::{Site, Timer};
use super::stream_id::{self, StreamId};
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::actor::RequestId;
use rhumb_core::{Body, Input, Inspect, Rules, SiteId, Span, Time, Topology};
use rhumb_testkit::empty_store;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

const EPOCH: Span = Span::from_millis(10);

pub type Said = rhumb_testkit::lone::SaidBy<Site>;

/// A site of three regions with two coordinators each. What a region has on its own disk counts.
pub struct Lone {
    lone: rhumb_testkit::Lone<Site>,
    me: SiteId,
    topology: Arc<Topology>,
    config: Config,
    rules: Rules<Planted>,
    /// How many entries each stream has, as far as the site has heard.
    said: BTreeMap<StreamId, u64>,
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
        let site = Site::new(me, Arc::clone(&topology), config.clone());
        let lone = rhumb_testkit::Lone::new(site, empty_store(), Time::from_micros(1_000_000));
        let mut lone = Lone { lone, me, topology, config, rules: Rules::HOLD, said: BTreeMap::new() };
        assert!(lone.site.is_serving());
        lone.end_epoch();
        lone
    }

    /// The same by other rules.
    pub fn with_rules(mut self, rules: Rules<Planted>) -> Lone {
        self.lone.site = self.lone.site.with_rules(rules);
        Lone { rules, ..self }
    }

    /// It crashes, and starts again with its disk.
    pub fn restart(&mut self) {
        let site = Site::new(self.me, Arc::clone(&self.topology), self.config.clone()).with_rules(self.rules);
        self.lone.restart(site);
        assert!(self.site.is_serving());
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

    pub fn run(&mut self, id: RequestId, transaction: Transaction) -> Vec<Said> {
        self.ask(id, Request::Run(transaction))
    }

    pub fn hear_note(&mut self, from: SiteId, note: Note) -> Vec<Said> {
        self.lone.hear(from, Body::Note(note))
    }

    pub fn hear(&mut self, from: SiteId, promise: Promise) -> Vec<Said> {
        self.lone.hear(from, Body::Promise(promise))
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

impl Deref for Lone {
    type Target = rhumb_testkit::Lone<Site>;

    fn deref(&self) -> &Self::Target {
        &self.lone
    }
}

impl DerefMut for Lone {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.lone
    }
}

/// The answer to a request, if it is among what was said.
pub fn answer(said: &[Said], id: RequestId) -> Option<&Answer> {
    said.iter().find_map(|said| match said {
        Said::Answer(of, answer) if *of == id => Some(answer),
        _ => None,
    })
}
