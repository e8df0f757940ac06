//! The stage of QuAD: five sites, 40 ms from one another; a, b and c are cores, d and e slaves.
//!
//! Pings, reports, timers, loads and syncs are left out.

use crate::support::stage::{self, Staged};
use rhumb_commit::transaction::{CommitOptions, ReadMode};
use rhumb_core::actor::RequestId;
use rhumb_core::{RttMatrix, SiteId, Span, TxnId};
use rhumb_quad::quorums::Quorums;
use rhumb_quad::{Admin, Answer, Config as Protocol, Epoch, Goal, Request, Site};
use rhumb_sim::{Config, World};

pub const A: SiteId = SiteId::new(0, 0);
pub const B: SiteId = SiteId::new(1, 0);
pub const C: SiteId = SiteId::new(2, 0);
pub const D: SiteId = SiteId::new(3, 0);
pub const E: SiteId = SiteId::new(4, 0);

/// How long everything runs before the story begins.
const PROLOGUE: Span = Span::from_millis(1_000);
/// How long a scenario waits for an answer.
const PATIENCE: Span = Span::from_secs(20);

pub type Stage = stage::Stage<Site>;

/// These cores, of which each other member asks the first ones.
pub fn goal(cores: &[SiteId], slaves: &[SiteId], why: &str) -> Goal {
    let preference = cores.iter().chain(slaves).map(|site| (*site, cores.to_vec())).collect();
    Goal::of(Quorums::Cores { cores: cores.to_vec(), preference }, why)
}

/// What clients and operators do.
pub trait Transactions: Sized {
    fn new(goal: &str) -> Self;

    /// A client of `site` begins a transaction.
    fn begin(&mut self, site: SiteId) -> TxnId;

    /// It reads `key`.
    fn get(&mut self, site: SiteId, txn: TxnId, key: &str) -> RequestId;

    /// It commits, and writes `value` to `key` if they are given.
    fn commit(&mut self, site: SiteId, txn: TxnId, write: Option<(&str, &str)>) -> RequestId;

    /// An operator asks `site` for another configuration.
    fn change(&mut self, site: SiteId, goal: Goal) -> RequestId;

    /// Runs until `id` is answered.
    fn wait(&mut self, id: RequestId) -> Answer;

    /// The epoch of `site`.
    fn epoch(&self, site: SiteId) -> Epoch;

    /// A client of `site` writes `value` to `key` in a transaction of its own.
    fn put(&mut self, site: SiteId, key: &str, value: &str) -> RequestId {
        let txn = self.begin(site);
        self.commit(site, txn, Some((key, value)))
    }

    /// A client of `site` reads `key` in a transaction of its own.
    fn look(&mut self, site: SiteId, key: &str) -> RequestId {
        let txn = self.begin(site);
        self.get(site, txn, key)
    }
}

impl Transactions for Stage {
    fn new(goal_of_stage: &str) -> Stage {
        let names = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        let config = Config { tracing: true, ..Config::new(RttMatrix::uniform(names, Span::from_millis(40)), 1) };
        let first = goal(&[A, B, C], &[D, E], "").quorums;
        let mut world = World::new(config, 1, move |site, _| Site::new(site, first.clone(), Protocol::default()));
        world.run_for(PROLOGUE).expect("nothing goes wrong");
        Stage::of(world, goal_of_stage)
    }

    fn begin(&mut self, site: SiteId) -> TxnId {
        let id = self.submit(site, Request::Begin { mode: ReadMode::Locking }, "begin");
        match self.wait(id) {
            Answer::Began { txn } => txn,
            other => panic!("{other:?}"),
        }
    }

    fn get(&mut self, site: SiteId, txn: TxnId, key: &str) -> RequestId {
        let get = Request::Get { txn, mode: ReadMode::Locking, keys: vec![key.into()], expect: vec![] };
        self.submit(site, get, &format!("{txn} reads {key}"))
    }

    fn commit(&mut self, site: SiteId, txn: TxnId, write: Option<(&str, &str)>) -> RequestId {
        let what = write.map_or(format!("{txn} commits"), |(key, value)| format!("{txn} commits {key}={value}"));
        let writes = write.map(|(key, value)| (key.into(), Some(value.into()))).into_iter().collect();
        self.submit(site, Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() }, &what)
    }

    fn change(&mut self, site: SiteId, goal: Goal) -> RequestId {
        let what = format!("change: {}", goal.why);
        self.submit(site, Request::Admin(Admin::Change(goal)), &what)
    }

    fn wait(&mut self, id: RequestId) -> Answer {
        let end = self.world.now() + PATIENCE;
        while self.try_answer(id).is_none() && self.world.now() < end {
            self.run(Span::from_millis(1));
        }
        self.answer(id)
    }

    fn epoch(&self, site: SiteId) -> Epoch {
        self.world.actor(site).expect("the site is up").configuration().epoch
    }
}

impl Staged for Site {
    fn told(answer: &Answer) -> String {
        match answer {
            Answer::Began { txn } => format!("began {txn}"),
            Answer::Rows { rows, .. } => {
                let shown = rows.iter().map(|row| match &row.value {
                    Some(value) => format!("{}={}", row.key, String::from_utf8_lossy(&value.0)),
                    None => format!("no {}", row.key),
                });
                shown.collect::<Vec<_>>().join(" ")
            }
            Answer::Committed(committed) => format!("committed at {}", committed.at),
            Answer::Done => "done".into(),
            Answer::Failed(error) => format!("failed: {error}"),
            other => format!("{other:?}"),
        }
    }

    fn of_interest(line: &str) -> Option<&str> {
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        let is_shown = line.contains('←') || has(&["fault:", "starts incarnation", " · "]);
        (is_shown && !has(&["← client,", " ping", " pong", " measured", "lost:"])).then_some(line)
    }
}
