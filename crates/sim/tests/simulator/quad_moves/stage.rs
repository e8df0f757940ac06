//! Sites of QuAD 40 ms from one another, clients that ask them one thing at a time, and what the tests look at.

use rhumb_commit::reason::Reason;
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{RttMatrix, SiteId, Span, TxnId, Value};
use rhumb_quad::quorums::{CostWeights, Policy, Quorums, ScoreWeights, Settings};
use rhumb_quad::{Adaptation, Admin, Answer, Availability, Config as Protocol, Epoch, Explanation, Goal, Request, Site};
use rhumb_sim::{Config, Fault, Links, Place, World};
use std::collections::BTreeMap;

pub const A: SiteId = SiteId::new(0, 0);
pub const B: SiteId = SiteId::new(1, 0);
pub const C: SiteId = SiteId::new(2, 0);
pub const D: SiteId = SiteId::new(3, 0);
pub const E: SiteId = SiteId::new(4, 0);

/// `cores`, and `slaves` who ask them in this order.
pub fn quorums(cores: &[SiteId], slaves: &[SiteId]) -> Quorums {
    let preference: BTreeMap<SiteId, Vec<SiteId>> = cores.iter().chain(slaves).map(|site| (*site, cores.to_vec())).collect();
    Quorums::Cores { cores: cores.to_vec(), preference }
}

pub fn goal(cores: &[SiteId], slaves: &[SiteId]) -> Goal {
    Goal::of(quorums(cores, slaves), "a test's wish")
}

/// A world of so many sites, 40 ms from one another, that has run for a second.
pub fn world(sites: usize, first: Quorums) -> World<Site> {
    world_with(sites, first, None)
}

pub fn world_with(sites: usize, first: Quorums, adaptation: Option<Adaptation>) -> World<Site> {
    world_of(sites, first, Protocol { adaptation, ..Protocol::default() })
}

pub fn world_of(sites: usize, first: Quorums, protocol: Protocol) -> World<Site> {
    let names = ["a", "b", "c", "d", "e"][..sites].iter().map(|name| (*name).to_owned()).collect();
    let config = Config::new(RttMatrix::uniform(names, Span::from_millis(40)), 1);
    let mut world = World::new(config, 1, move |site, _| Site::new(site, first.clone(), protocol.clone()));
    world.run_for(Span::from_millis(1_000)).expect("nothing goes wrong");
    world
}

/// The answer to `id`, which must come within ten seconds.
pub fn answer(world: &mut World<Site>, id: RequestId) -> Answer {
    let end = world.now() + Span::from_secs(10);
    while world.run_until_reply(end).expect("nothing goes wrong") {
        if let Some(reply) = world.take_replies().into_iter().find(|reply| reply.id == id) {
            return reply.answer.expect("the site is up");
        }
    }
    panic!("request {id} is not answered");
}

pub fn ask(world: &mut World<Site>, at: SiteId, request: Request) -> Answer {
    let id = world.submit(at, request);
    answer(world, id)
}

/// The refusal of a change that takes these sites.
pub fn waits_for(missing: &[SiteId]) -> Answer {
    let why = Reason::from("the quorums cannot be changed without more of their sites; missing: ");
    Answer::Failed(TxnError::Unavailable(why.then(Reason::list(missing))))
}

pub fn change(world: &mut World<Site>, at: SiteId, goal: Goal) -> Answer {
    ask(world, at, Request::Admin(Admin::Change(goal)))
}

/// Reads `k` at `at` and commits; `value` is written if there is one.
pub fn transaction(world: &mut World<Site>, at: SiteId, value: Option<&str>) -> Result<Option<Value>, TxnError> {
    let txn = match ask(world, at, Request::Begin { mode: ReadMode::Locking }) {
        Answer::Began { txn } => txn,
        Answer::Failed(error) => return Err(error),
        other => panic!("{other:?}"),
    };
    let read = ask(world, at, Request::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] });
    let found = match read {
        Answer::Rows { rows, .. } => rows[0].value.clone(),
        Answer::Failed(error) => return Err(error),
        other => panic!("{other:?}"),
    };
    let writes = value.map(|value| ("k".into(), Some(value.into()))).into_iter().collect();
    match ask(world, at, Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() }) {
        Answer::Committed(_) => Ok(found),
        Answer::Failed(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// Writes so many rows at `at`.
pub fn fill(world: &mut World<Site>, at: SiteId, rows: usize) {
    let Answer::Began { txn } = ask(world, at, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
    let writes = (0..rows).map(|row| (format!("row {row:03}").as_str().into(), Some("v".into()))).collect();
    let committed = ask(world, at, Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() });
    assert!(matches!(committed, Answer::Committed(_)), "{committed:?}");
    world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
}

/// The same, again until it succeeds.
pub fn surely(world: &mut World<Site>, at: SiteId, value: Option<&str>) -> Option<Value> {
    for _ in 0..20 {
        if let Ok(found) = transaction(world, at, value) {
            return found;
        }
        world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
    }
    panic!("nothing commits at {at}");
}

pub fn epoch(world: &World<Site>, at: SiteId) -> Epoch {
    world.actor(at).expect("it is up").configuration().epoch
}

/// Two cores, or as many as `auto` asks for; periods of five seconds; a site can have a hundred transactions in progress.
pub fn adaptation(auto: Option<Availability>) -> Option<Adaptation> {
    let settings = Settings { policy: Policy::Quad, cores: 2, score: ScoreWeights::default(), cost: CostWeights::default() };
    Some(Adaptation { period: Span::from_secs(5), capacity: 100, settings, auto: auto.is_some(), availability: auto.unwrap_or_default() })
}

pub fn cores(world: &World<Site>, at: SiteId) -> Vec<SiteId> {
    let mut cores = world.actor(at).expect("it is up").configuration().quorums.cores().to_vec();
    cores.sort();
    cores
}

/// For `seconds` clients have twenty transactions in progress at `site`, of a second each, and think better of them.
pub fn load(world: &mut World<Site>, site: SiteId, seconds: u64) {
    for _ in 0..seconds {
        let end = world.now() + Span::from_secs(1);
        let begun: Vec<TxnId> = (0..20)
            .filter_map(|_| match ask(world, site, Request::Begin { mode: ReadMode::Locking }) {
                Answer::Began { txn } => Some(txn),
                _ => None,
            })
            .collect();
        world.run_for(end.since(world.now())).expect("nothing goes wrong");
        for txn in begun {
            ask(world, site, Request::Rollback { txn });
        }
    }
}

/// The sites are explained to an operator.
pub fn explained(world: &mut World<Site>, at: SiteId) -> Explanation {
    match ask(world, at, Request::Admin(Admin::Explain)) {
        Answer::Admin(explanation) => *explanation,
        other => panic!("{other:?}"),
    }
}

/// What the others say does not get to `site`; what it says gets to them.
pub fn deafen(world: &mut World<Site>, site: SiteId) {
    for other in [A, B, C, D].into_iter().filter(|other| *other != site) {
        world.strike(&Fault::Cut { links: Links::new(Place::Site(other), Place::Site(site)), span: None });
    }
}
