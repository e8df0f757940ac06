//! Puts clients' load on a world of any of the systems, and measures.
//!
//! *Closed*: every client asks again as soon as it is answered; what is answered after the warm-up counts. What was aborted it asks for
//! once more, until it commits, and its latency is counted from the first time: an order that was aborted is still to be placed.
//! *Open*: transactions come at random moments, whatever became of those before, and all of them count.

use super::meter::Meter;
use super::parameters as p;
use super::setup::{Clients, Setup};
use super::workload::Draw;
use crate::experiment::Progress;
use rhumb_commit::one_shot::execution::Outcome;
use rhumb_commit::one_shot::{Answer, OneShot, Request};
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::RequestId;
use rhumb_core::{Rng, SiteId, Span, Time};
use rhumb_sim::{Reply, SimError, World};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a run has no result. Each is a finding about the system measured.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LoadError {
    #[error(transparent)]
    Sim(#[from] SimError),
    #[error("{site} answers something else than it was asked: {answer}")]
    Nonsense { site: SiteId, answer: String },
}

/// How long sites recover before the first client asks.
const RECOVERY: Span = Span::from_millis(500);
/// Progress is told every so often.
const TOLD_EVERY: Span = Span::from_millis(500);

struct Load<'a, A: OneShot> {
    world: &'a mut World<A>,
    draws: Vec<(SiteId, Draw)>,
    under_way: BTreeMap<RequestId, Asked>,
    meter: Meter,
    /// What ended after this counts, up to the end.
    from: Time,
    end: Time,
    told: Time,
}

/// A request that is under way.
struct Asked {
    client: usize,
    /// When it was asked for the first time.
    since: Time,
    request: Request,
}

/// Runs the clients of `setup` on `world`.
pub(super) fn run<A>(world: &mut World<A>, setup: &Setup, progress: &mut dyn Progress) -> Result<Meter, LoadError>
where
    A: OneShot,
{
    world.run_for(RECOVERY)?;
    let mut rng = Rng::seeded(setup.seed);
    let sites: Vec<SiteId> = world.topology().sites().collect();
    let clients = match setup.clients {
        Clients::Closed(per_server) => per_server * p::SERVERS,
        Clients::Open { .. } => 1,
    };
    let places = sites.into_iter().flat_map(|site| (0..clients).map(move |_| site));
    let draws = places.zip(0..).map(|(site, client)| (site, Draw::new(setup.workload, client, rng.fork()))).collect();
    let start = world.now();
    let mut load = Load { world, draws, under_way: BTreeMap::new(), meter: Meter::default(), from: start, end: start, told: start };
    match setup.clients {
        Clients::Closed(_) => load.closed(setup, &mut rng, progress)?,
        Clients::Open { rate, count } => load.open(rate, count, &mut rng, progress)?,
    }
    load.meter.unanswered = load.under_way.len() as u64;
    load.meter.measured = load.end.since(load.from);
    Ok(load.meter)
}

impl<A> Load<'_, A>
where
    A: OneShot,
{
    fn closed(&mut self, setup: &Setup, rng: &mut Rng, progress: &mut dyn Progress) -> Result<(), LoadError> {
        self.from += setup.warm_up;
        self.end = self.from + setup.measured;
        let mut starts: Vec<(Time, usize)> =
            (0..self.draws.len()).map(|client| (self.told + Span::from_micros(rng.below(p::STAGGER.as_micros())), client)).collect();
        starts.sort_unstable();
        let begun = self.told;
        for (at, client) in starts {
            self.pass_to(at, begun, true, progress)?;
            self.ask(client);
        }
        self.pass_to(self.end, begun, true, progress)?;
        // What is under way at the end is cut off, not lost.
        self.under_way.clear();
        Ok(())
    }

    fn open(&mut self, rate: u64, count: u64, rng: &mut Rng, progress: &mut dyn Progress) -> Result<(), LoadError> {
        let begun = self.from;
        let mean = 1e6 / rate as f64;
        self.end = begun + Span::from_micros((mean * count as f64) as u64) + p::DRAINING;
        let mut due = 0.0;
        for _ in 0..count {
            due -= (1.0 - rng.unit()).ln() * mean;
            self.pass_to(begun + Span::from_micros(due as u64), begun, false, progress)?;
            let client = rng.below(self.draws.len() as u64) as usize;
            self.ask(client);
        }
        let last = self.world.now();
        while !self.under_way.is_empty() && self.world.now() < last + p::DRAINING {
            self.pass_to(self.world.now() + p::SETTLING, begun, false, progress)?;
        }
        // All regions count what they speculated on, also those that no client waits for.
        self.pass_to(self.world.now() + p::SETTLING, begun, false, progress)?;
        self.end = last;
        Ok(())
    }

    fn ask(&mut self, client: usize) {
        let request = self.draws[client].1.next();
        self.submit(Asked { client, since: self.world.now(), request });
    }

    fn submit(&mut self, asked: Asked) {
        let id = self.world.submit(self.draws[asked.client].0, asked.request.clone().widened());
        self.under_way.insert(id, asked);
    }

    /// Lets the world run up to `until`; clients that are answered ask again if `again`, for the same if it was aborted.
    fn pass_to(&mut self, until: Time, begun: Time, again: bool, progress: &mut dyn Progress) -> Result<(), LoadError> {
        while self.world.run_until_reply(until)? {
            for reply in self.world.take_replies() {
                let is_aborted = matches!(reply.answer, Some(Answer::Failed(TxnError::Conflict(_))));
                let asked = self.take(reply)?;
                match again {
                    true if is_aborted => self.submit(asked),
                    true => self.ask(asked.client),
                    false => {}
                }
            }
            if self.world.now().since(self.told) >= TOLD_EVERY {
                self.told = self.world.now();
                progress.passed(self.told.since(begun).as_micros(), self.end.since(begun).as_micros());
            }
        }
        Ok(())
    }

    /// Counts a reply. Returns what it was to.
    fn take(&mut self, reply: Reply<A::Answer>) -> Result<Asked, LoadError> {
        let asked = self.under_way.remove(&reply.id).expect("the world replies to what it was asked");
        if reply.at < self.from || reply.at >= self.end {
            return Ok(asked);
        }
        let took = reply.at.since(asked.since);
        match reply.answer {
            Some(Answer::Ran { outcome: Outcome::Done(_), .. } | Answer::Rows { .. }) => self.meter.commit(took),
            Some(Answer::Ran { outcome: Outcome::Rejected(_), .. }) => self.meter.rejected += 1,
            Some(Answer::Failed(TxnError::Conflict(_))) => self.meter.aborted += 1,
            Some(Answer::Failed(_)) | None => self.meter.failed += 1,
            Some(answer) => return Err(LoadError::Nonsense { site: reply.site, answer: format!("{answer:?}") }),
        }
        Ok(asked)
    }
}
