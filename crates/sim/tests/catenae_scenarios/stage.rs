//! A small cluster whose every step is written down: what is sent and asked, what runs, what clients are told.
//!
//! Each line stands once: leaders repeat themselves. Timers, loads, syncs, acknowledgements, progress, and entries that hold nothing are left out.

use rhumb_commit::catenae::execution::{Outcome, Output};
use rhumb_commit::catenae::operation::{Operation, Transaction};
use rhumb_commit::catenae::{Answer, ChainSites, Config as Protocol, Request, Site};
use rhumb_core::actor::RequestId;
use rhumb_core::{RttMatrix, SiteId, Span};
use rhumb_sim::{Config, Fault, Reply, World};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

pub const A: SiteId = SiteId::new(0, 0);
pub const B: SiteId = SiteId::new(1, 0);
pub const C: SiteId = SiteId::new(2, 0);

/// How long everything runs before the story begins.
const PROLOGUE: Span = Span::from_millis(505);
const EPOCH: Span = Span::from_millis(50);

pub struct Stage {
    world: World<Site>,
    text: String,
    /// Bytes of the trace that are written down.
    written: usize,
    shown: BTreeSet<String>,
    replies: BTreeMap<RequestId, Reply<Answer>>,
}

impl Stage {
    pub fn new(goal: &str) -> Stage {
        Stage::set(goal, 1, Span::ZERO, ChainSites::Coordinator)
    }

    /// With chain servers that work unevenly.
    pub fn shaken(goal: &str) -> Stage {
        Stage::set(goal, 1, Span::from_millis(3), ChainSites::Coordinator)
    }

    /// With two sites in each region.
    pub fn with_secondaries(goal: &str) -> Stage {
        Stage::set(goal, 2, Span::ZERO, ChainSites::Coordinator)
    }

    /// With chain servers on both of them.
    pub fn with_crossing_chains(goal: &str) -> Stage {
        Stage::set(goal, 2, Span::ZERO, ChainSites::Every)
    }

    fn set(goal: &str, sites: u16, jitter: Span, chain_sites: ChainSites) -> Stage {
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let config = Config { tracing: true, ..Config::new(RttMatrix::uniform(names, Span::from_millis(60)), sites) };
        let topology = Arc::new(config.topology.clone());
        let waits = Protocol { window_epochs: 12, tolerance_epochs: 10, ahead_epochs: 40, ..Protocol::default() };
        let protocol = Protocol { epoch: EPOCH, chain_sites, ..waits };
        let mut world = World::new(config, SEED, move |site, _| Site::new(site, Arc::clone(&topology), protocol.clone()));
        world.jitter_at_home(jitter);
        world.run_for(PROLOGUE).expect("nothing goes wrong");
        let written = world.trace().len();
        let text = goal.lines().map(|line| format!("# {}\n", line.trim())).collect();
        Stage { world, text, written, shown: BTreeSet::new(), replies: BTreeMap::new() }
    }

    pub fn narrate(&mut self, what: &str) {
        writeln!(self.text, "\n-- {what}").expect("a string takes all");
    }

    pub fn strike(&mut self, fault: Fault) {
        self.world.strike_at(self.world.now(), fault);
        self.world.tick().expect("nothing goes wrong");
        self.write_down();
    }

    /// A client of `site` adds `amount` to each of `keys`, in one transaction.
    pub fn add(&mut self, site: SiteId, keys: &[&str], amount: i64) -> RequestId {
        let operations = keys.iter().map(|key| Operation::Add { key: (*key).into(), amount }).collect();
        self.ask(site, Transaction::new(operations))
    }

    /// A client of `site` asks for a transaction.
    pub fn ask(&mut self, site: SiteId, transaction: Transaction) -> RequestId {
        let id = self.world.submit(site, Request::Run(transaction.clone()));
        writeln!(self.text, "{} client → {site} request {id}: {transaction}", self.world.now()).expect("a string takes all");
        id
    }

    pub fn run(&mut self, span: Span) {
        let end = self.world.now() + span;
        while self.world.run_until_reply(end).expect("nothing goes wrong") {
            self.write_down();
            for reply in self.world.take_replies() {
                let told = reply.answer.as_ref().map_or("lost its site".into(), told);
                writeln!(self.text, "{} {} → client request {}: {told}", reply.at, reply.site, reply.id).expect("a string takes all");
                self.replies.insert(reply.id, reply);
            }
        }
        self.write_down();
    }

    fn write_down(&mut self) {
        let trace = self.world.trace();
        for line in trace[self.written..].lines() {
            let Some((_, what)) = line.split_once(' ') else { continue };
            if let Some(key) = of_interest(what)
                && self.shown.insert(key.to_owned())
            {
                self.text.push_str(line);
                self.text.push('\n');
            }
        }
        self.written = trace.len();
    }

    pub fn try_answer(&self, id: RequestId) -> Option<Answer> {
        self.replies.get(&id)?.answer.clone()
    }

    pub fn answer(&self, id: RequestId) -> Answer {
        self.try_answer(id).unwrap_or_else(|| panic!("request {id} is not answered:\n{}", self.text))
    }

    pub fn is_lost(&self, id: RequestId) -> bool {
        self.replies.get(&id).is_some_and(|reply| reply.answer.is_none())
    }

    pub fn text(&self, id: RequestId) -> String {
        told(&self.answer(id))
    }

    /// How far the execution epoch of `site` is behind its coordinator epoch.
    pub fn offset(&self, site: SiteId) -> u64 {
        self.world.actor(site).expect("the site is up").status().offset()
    }

    pub fn probe(&self, event: &str) -> u64 {
        self.world.probe(event)
    }

    /// Panics unless this is what is recorded under `name`. With `UPDATE_GOLDEN` set, records it instead.
    #[allow(clippy::disallowed_methods)] // the simulator does no I/O; its tests read what they recorded
    pub fn check(self, name: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &self.text).expect("the golden file can be written");
            return;
        }
        let recorded = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = recorded.lines().zip(self.text.lines()).find(|(recorded, now)| recorded != now);
        assert!(
            recorded == self.text,
            "{} differs, first at {differs:?} (recorded, now). If the change is meant, record it: UPDATE_GOLDEN=1",
            path.display()
        );
    }
}

/// The seed of the shaken stage: of its few first ones, one whose regions run the ring in three orders.
const SEED: u64 = 1;

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

/// What a line must differ in from all before it to be shown; `None` if it is not shown.
fn of_interest(line: &str) -> Option<&str> {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    if line.contains(" Epoch ") {
        // Of a leader's entries the last is new. One that has taken over says something by that alone.
        let (head, last) = line.rsplit_once('#')?;
        let says = head.split('#').next().unwrap_or(head);
        let key = if has_content(last) { line } else { says };
        return (line.contains('←') && (has_content(last) || !says.contains(" 0@"))).then_some(key);
    }
    let shown = has(&["fault:", "starts life", "Visit", "Cross", "Claim", "Granted", "Through", "Prepare", "Promised", "Pull", " · "])
        && !line.contains("lost:");
    shown.then_some(line)
}

fn has_content(entry: &str) -> bool {
    entry.contains('[') || entry.contains("vote")
}
