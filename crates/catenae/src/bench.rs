//! A bench for one role alone: what its site shares, and the exact effects of each step as lines.

use super::config::Config;
use super::context::{Context, Shared};
use super::epoch::Epoch;
use super::epochs::Epochs;
use super::log::Log;
use super::lone::Lone;
use super::message::{Answer, Entry, Identifier};
use super::records::{ENTRIES, PROGRESS, PROMISES};
use super::runs::Runs;
use super::stream_id::StreamId;
use super::streams::Streams;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::actor::Space;
use rhumb_core::{Effects, SiteId, Topology};
use rhumb_testkit::effects;
use std::sync::Arc;

/// What the roles of a site of three regions share.
pub struct Bench(Shared);

impl Bench {
    /// At the site `me`, where each region has two coordinators.
    pub fn new(me: SiteId) -> Bench {
        Bench::with(me, Lone::config())
    }

    /// The same with other settings.
    pub fn with(me: SiteId, config: Config) -> Bench {
        Bench(Shared::new(me, Arc::new(Topology::new(["a", "b", "c"].map(String::from).to_vec(), 2)), config))
    }

    /// Has a role act: what it returns, its effects, and what every site must agree on.
    pub fn act<T>(&mut self, act: impl FnOnce(&mut Context<'_>) -> T) -> (T, Vec<String>) {
        let mut fx = Effects::new(false).recording();
        let returned = act(&mut Context { shared: &mut self.0, fx: &mut fx });
        let effects = fx.take();
        (returned, effects.iter().map(effects::line).chain(effects::agreed(&mut fx)).collect())
    }

    /// The effects alone.
    pub fn effects(&mut self, act: impl FnOnce(&mut Context<'_>)) -> Vec<String> {
        self.act(act).1
    }

    /// What is returned alone; there are no effects.
    pub fn quietly<T>(&mut self, act: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let (returned, effects) = self.act(act);
        assert_eq!(effects, [""; 0]);
        returned
    }

    /// The log of the site as it begins, where every coordinator leads its stream.
    pub fn log(&mut self) -> Log {
        let mut log = Log { streams: Streams::new(&self.0), epochs: Epochs::default(), runs: Runs::default() };
        for id in self.0.streams() {
            assert_eq!(log.streams.on(id, super::agreement::Event::Start, &self.0), []);
        }
        log
    }

    /// The same, where these transactions of stream `id` are all of epoch 1, and scheduled.
    pub fn log_with(&mut self, id: StreamId, batch: Vec<Transaction>) -> Log {
        let mut log = self.log();
        self.act(|cx| {
            log.take_entry(id, entry(id, 1, batch), cx);
            assert_eq!(log.epochs.complete(Epoch(1)), [Epoch(1)]);
            log.schedule(Epoch(1), cx);
        });
        log
    }
}

/// An entry of the head of a stream, without votes.
pub fn entry(id: StreamId, epoch: u64, batch: Vec<Transaction>) -> Entry {
    Entry { author: id.head(), epoch: Epoch(epoch), batch, orders: Vec::new() }
}

/// A transaction of epoch 1.
pub fn identifier(stream: StreamId, place: u16) -> Identifier {
    Identifier { epoch: Epoch(1), stream, place }
}

/// Adds one to each of these keys.
pub fn add(keys: &[&str]) -> Transaction {
    Transaction::new(keys.iter().map(|key| Operation::Add { key: (*key).into(), amount: 1 }).collect())
}

impl effects::Shown for super::Site {
    fn record(space: Space) -> &'static str {
        match space {
            ENTRIES => "entry",
            PROMISES => "promise",
            PROGRESS => "progress",
            _ => "unknown",
        }
    }

    fn answer(answer: &Answer) -> String {
        match answer {
            Answer::Ran { at, outcome } => format!("ran at {at}: {outcome:?}"),
            Answer::Rows { at, rows, .. } => format!("{} rows at {at}", rows.len()),
            Answer::Failed(error) => format!("failed: {error}"),
            Answer::Admin(_) => "status".into(),
        }
    }
}
