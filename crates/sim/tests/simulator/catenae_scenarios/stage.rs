//! The stage of Catenae: three regions whose epochs are known 60 ms after one another's.
//!
//! Timers, loads, syncs, acknowledgements, progress, and entries that hold nothing are left out.

use crate::support::stage::{self, Staged};
use rhumb_catenae::stream_id::coordinator_of;
use rhumb_catenae::{Answer, ChainSites, Config as Protocol, Request, Site};
use rhumb_commit::one_shot::execution::{Outcome, Output};
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::actor::RequestId;
use rhumb_core::{RttMatrix, SiteId, Span};
use rhumb_sim::{Config, World};
use std::sync::Arc;

pub const A: SiteId = SiteId::new(0, 0);
pub const B: SiteId = SiteId::new(1, 0);
pub const C: SiteId = SiteId::new(2, 0);

/// How long everything runs before the story begins.
const PROLOGUE: Span = Span::from_millis(505);
const EPOCH: Span = Span::from_millis(50);
/// The seed of the shaken stage: of its few first ones, one whose regions run the ring in three orders.
const SEED: u64 = 1;

pub type Stage = stage::Stage<Site>;

/// Which regions there are, and what their clients ask for.
pub trait Epochs: Sized {
    fn new(goal: &str) -> Self {
        Self::set(goal, 1, Span::ZERO, Protocol::default())
    }

    /// With chain servers that work unevenly.
    fn shaken(goal: &str) -> Self {
        Self::set(goal, 1, Span::from_millis(3), Protocol::default())
    }

    /// With two sites in each region.
    fn with_secondaries(goal: &str) -> Self {
        Self::set(goal, 2, Span::ZERO, Protocol::default())
    }

    /// With chain servers on both of them.
    fn with_crossing_chains(goal: &str) -> Self {
        Self::set(goal, 2, Span::ZERO, Protocol { chain_sites: ChainSites::Every, ..Protocol::default() })
    }

    /// With two sites in each region, both of them coordinators.
    fn with_two_coordinators(goal: &str) -> Self {
        Self::set(goal, 2, Span::ZERO, Protocol { coordinators: 2, ..Protocol::default() })
    }

    fn set(goal: &str, sites: u16, jitter: Span, protocol: Protocol) -> Self;

    /// A client of `site` adds `amount` to each of `keys`, in one transaction.
    fn add(&mut self, site: SiteId, keys: &[&str], amount: i64) -> RequestId {
        let operations = keys.iter().map(|key| Operation::Add { key: (*key).into(), amount }).collect();
        self.ask(site, Transaction::new(operations))
    }

    /// A client of `site` asks for a transaction.
    fn ask(&mut self, site: SiteId, transaction: Transaction) -> RequestId;

    /// How far the execution epoch of `site` is behind its coordinator epoch.
    fn offset(&self, site: SiteId) -> u64;
}

impl Epochs for Stage {
    fn set(goal: &str, sites: u16, jitter: Span, protocol: Protocol) -> Stage {
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let config = Config { tracing: true, ..Config::new(RttMatrix::uniform(names, Span::from_millis(60)), sites) };
        let topology = Arc::new(config.topology.clone());
        let protocol = Protocol { epoch: EPOCH, window_epochs: 12, tolerance_epochs: 10, ahead_epochs: 40, ..protocol };
        let mut world = World::new(config, SEED, move |site, _| Site::new(site, Arc::clone(&topology), protocol.clone()));
        world.jitter_at_home(jitter);
        world.run_for(PROLOGUE).expect("nothing goes wrong");
        Stage::of(world, goal)
    }

    fn ask(&mut self, site: SiteId, transaction: Transaction) -> RequestId {
        let what = transaction.to_string();
        self.submit(site, Request::Run(transaction), &what)
    }

    fn offset(&self, site: SiteId) -> u64 {
        self.world.actor(site).expect("the site is up").status().offset()
    }
}

/// A key whose namespace belongs to that coordinator, of two.
pub fn key_of(coordinator: u16) -> &'static str {
    let add = |key: &str| Operation::Add { key: key.into(), amount: 1 }.into();
    ["x", "y", "z", "w"].into_iter().find(|key| coordinator_of(&add(key), 2) == coordinator).expect("one of four")
}

/// The number that a transaction of additions returned last.
pub fn number(answer: &Answer) -> i64 {
    match answer {
        Answer::Ran { outcome: Outcome::Done(outputs), .. } => match outputs.last() {
            Some(Output::Number(number)) => *number,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

impl Staged for Site {
    fn told(answer: &Answer) -> String {
        match answer {
            Answer::Ran { at, outcome: Outcome::Done(outputs) } => {
                let numbers = outputs.iter().map(|output| match output {
                    Output::Number(number) => number.to_string(),
                    other => format!("{other:?}"),
                });
                format!("{} at {at}", numbers.collect::<Vec<_>>().join(" "))
            }
            Answer::Failed(error) => format!("failed: {error}"),
            other => format!("{other:?}"),
        }
    }

    fn of_interest(line: &str) -> Option<&str> {
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        if line.contains(" Epoch ") {
            // Of a leader's entries the last is new. One that has taken over says something by that alone.
            let (head, last) = line.rsplit_once('#')?;
            let says = head.split('#').next().unwrap_or(head);
            let key = if has_content(last) { line } else { says };
            return (line.contains('←') && (has_content(last) || !says.contains(" 0@"))).then_some(key);
        }
        let chains = ["Visit", "Cross", "Claim", "Granted", "Through"];
        let streams = ["Prepare", "Promised", "Pull", "Forward", "Sealed"];
        let shown = has(&["fault:", "starts incarnation", " · "]) || has(&chains) || has(&streams);
        (shown && !line.contains("lost:")).then_some(line)
    }
}

fn has_content(entry: &str) -> bool {
    entry.contains('[') || entry.contains("vote")
}
